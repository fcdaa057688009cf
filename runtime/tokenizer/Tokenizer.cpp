#include "runtime/tokenizer/Tokenizer.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/SerializedTokenizer.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tokenizer/Utf8Stream.h"

#include <algorithm>

using namespace llmc;

static void checkIds(const TokenizerData &data) {
  const auto count = static_cast<int64_t>(data.tokens.size());
  auto check = [&](int32_t id, const char *what) {
    if (id < -1 || id >= count)
      throw Error(std::string("tokenizer: expected ") + what + " below " + std::to_string(count) + ", got " +
                  std::to_string(id));
  };
  check(data.bosId, "a beginning-of-sequence id");
  check(data.padId, "a padding id");
  check(data.unkId, "an unknown-token id");
  for (int32_t id : data.eosIds)
    check(id, "an end-of-sequence id");
  for (const AddedToken &token : data.added) {
    check(token.id, "an added token's id");
    if (token.id < 0)
      throw Error("tokenizer: expected an id for the added token '" + token.content + "', got none");
  }
}

Tokenizer Tokenizer::create(const TokenizerData &data) { return create(data, BytePairs(data)); }

Tokenizer Tokenizer::load(std::string_view bytes) {
  SerializedTokenizer read = SerializedTokenizer::read(bytes);
  return create(read.data, BytePairs(read.data, read.merges));
}

Tokenizer Tokenizer::create(const TokenizerData &data, BytePairs pairs) {
  checkIds(data);
  Tokenizer t;
  t.pairs = std::move(pairs);
  std::vector<AddedToken> raw, normalized;
  t.special.resize(data.tokens.size());
  for (const AddedToken &token : data.added) {
    t.special[token.id] = token.special;
    if (!token.normalized) {
      raw.push_back(token);
      continue;
    }
    normalized.push_back(token);
    if (data.nfc)
      normalized.back().content = normalizeNFC(utf8::sanitize(token.content));
  }
  t.rawAdded = AddedTokens(raw);
  t.normalizedAdded = AddedTokens(normalized);
  for (const std::string &pattern : data.splitPatterns)
    t.patterns.emplace_back(pattern);
  t.added = data.added;
  t.eos = data.eosIds;
  t.bos = data.bosId;
  t.pad = data.padId;
  t.bosByDefault = data.addBos && data.bosId >= 0;
  t.nfc = data.nfc;
  t.addPrefixSpace = data.addPrefixSpace;
  return t;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool parseSpecial, bool addBos) const {
  std::vector<int32_t> ids;
  if (addBos && bos >= 0)
    ids.push_back(bos);
  std::string sanitized;
  if (utf8::firstInvalid(text) != text.size()) {
    sanitized = utf8::sanitize(text);
    text = sanitized;
  }
  for (const TextSegment &outer : rawAdded.cut(text, parseSpecial)) {
    if (outer.id >= 0) {
      ids.push_back(outer.id);
      continue;
    }
    std::string composed;
    std::string_view plain = outer.text;
    if (nfc) {
      composed = normalizeNFC(plain);
      plain = composed;
    }
    for (const TextSegment &inner : normalizedAdded.cut(plain, parseSpecial)) {
      if (inner.id >= 0)
        ids.push_back(inner.id);
      else
        encodeText(inner.text, ids);
    }
  }
  return ids;
}

/// Splits one stretch without added tokens. The patterns apply one after the
/// other, each within the pieces of the one before.
void Tokenizer::encodeText(std::string_view text, std::vector<int32_t> &ids) const {
  std::vector<std::string_view> pieces{text}, next;
  for (size_t i = 0; i + 1 < patterns.size(); ++i) {
    next.clear();
    for (std::string_view piece : pieces)
      patterns[i].split(piece, next);
    pieces.swap(next);
  }
  for (std::string_view piece : pieces) {
    std::string prefixed;
    if (addPrefixSpace && !piece.starts_with(' ')) { // of the ByteLevel step, the last one
      (prefixed = " ").append(piece);
      piece = prefixed;
    }
    next.clear();
    if (patterns.empty())
      next.push_back(piece);
    else
      patterns.back().split(piece, next);
    for (std::string_view last : next)
      pairs.encode(last, ids);
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skipSpecial) const {
  Utf8Stream stream;
  std::string out;
  for (int32_t id : ids)
    if (!skipSpecial || !isSpecial(id))
      out += stream.feed(tokenBytes(id));
  return out += stream.flush();
}

bool Tokenizer::isSpecial(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < special.size() && special[id];
}

bool Tokenizer::isEos(int32_t id) const { return std::find(eos.begin(), eos.end(), id) != eos.end(); }

int32_t Tokenizer::idOf(std::string_view spelling) const {
  for (const AddedToken &token : added)
    if (token.content == spelling)
      return token.id;
  std::string bytes;
  return appendAlphabetBytes(spelling, bytes) ? pairs.idOfBytes(bytes) : -1;
}
