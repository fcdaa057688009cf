#include "runtime/tokenizer/Tokenizer.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/BytePairs.h"
#include "runtime/tokenizer/DecodeStream.h"
#include "runtime/tokenizer/PieceCache.h"
#include "runtime/tokenizer/SerializedTokenizer.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <mutex>

using namespace llmc;

//===----------------------------------------------------------------------===//
// Memory of encoders
//===----------------------------------------------------------------------===//

struct Tokenizer::Scratch {
  PieceCache cache;
  PreTokenizer::Scratch split;
};

/// One Scratch a thread that encodes; kept for the next call, caches warm.
struct Tokenizer::Pool {
  static constexpr size_t kKept = 16;
  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> idle;

  std::unique_ptr<Scratch> take(const PreTokenizer &preTokenizer) {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto taken = std::move(idle.back());
        idle.pop_back();
        return taken;
      }
    }
    return std::unique_ptr<Scratch>(new Scratch{PieceCache(), preTokenizer.makeScratch()});
  }
  void give(std::unique_ptr<Scratch> scratch) {
    std::lock_guard lock(mutex);
    if (idle.size() < kKept)
      idle.push_back(std::move(scratch));
  }
};

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

static void checkIds(const TokenizerData &data) {
  const auto count = static_cast<int64_t>(data.tokens.size());
  auto check = [&](int32_t id, const char *what) {
    if (id < -1 || id >= count)
      throw Error(std::string("tokenizer: expected ") + what + " below " + std::to_string(count) + ", got " +
                  std::to_string(id));
  };
  check(data.bosId, "a beginning-of-sequence id");
  for (int32_t id : data.prefixIds)
    check(id, "an id in front of the text");
  for (int32_t id : data.suffixIds)
    check(id, "an id behind the text");
  check(data.padId, "a padding id");
  check(data.unkId, "an unknown-token id");
  for (int32_t id : data.eosIds)
    check(id, "an end-of-sequence id");
  for (const AddedToken &token : data.added) {
    check(token.id, "an added token's id");
    if (token.id < 0)
      throw Error("tokenizer: expected an id for the added token '" + token.content + "', got none");
  }
  if (data.byteLevel() && data.model != TokenizerData::Model::BPE)
    throw Error("tokenizer: expected BPE as the model of a byte-level tokenizer, got model " +
                std::to_string(static_cast<uint32_t>(data.model)));
}

/// Steps with the short forms written out.
static std::vector<NormalizerStep> normalizersOf(const TokenizerData &data) {
  std::vector<NormalizerStep> steps = data.normalizers;
  if (data.nfc)
    steps.push_back({NormalizerStep::Kind::NFC});
  return steps;
}

static std::vector<PreTokenizerStep> preTokenizersOf(const TokenizerData &data) {
  std::vector<PreTokenizerStep> steps = data.preTokenizers;
  if (data.model != TokenizerData::Model::BPE || !steps.empty() || !data.normalizers.empty() || !data.decoders.empty())
    return steps;
  for (const std::string &pattern : data.splitPatterns) {
    PreTokenizerStep step;
    step.pattern = pattern;
    steps.push_back(step);
  }
  PreTokenizerStep bytes;
  bytes.kind = PreTokenizerStep::Kind::ByteLevel;
  bytes.addPrefixSpace = data.addPrefixSpace;
  if (!steps.empty() && steps.back().pattern == kGPT2Pattern) { // the step has it itself, after its prefix
    steps.pop_back();
    bytes.useRegex = true;
  }
  steps.push_back(bytes);
  return steps;
}

Tokenizer Tokenizer::create(const TokenizerData &data) {
  auto vocabulary = std::make_unique<Vocabulary>(data);
  std::vector<MergeIds> merges = BytePairs::resolveAll(data, *vocabulary);
  return create(data, std::move(merges), std::move(vocabulary));
}

Tokenizer Tokenizer::load(std::string_view bytes) {
  SerializedTokenizer read = SerializedTokenizer::read(bytes);
  auto vocabulary = std::make_unique<Vocabulary>(read.data);
  return create(read.data, std::move(read.merges), std::move(vocabulary));
}

Tokenizer Tokenizer::create(const TokenizerData &data, std::vector<MergeIds> merges,
                            std::unique_ptr<Vocabulary> vocabulary) {
  checkIds(data);
  Tokenizer tokenizer;
  tokenizer.build(data, std::move(merges), std::move(vocabulary));
  return tokenizer;
}

void Tokenizer::build(const TokenizerData &data, std::vector<MergeIds> merges, std::unique_ptr<Vocabulary> all) {
  vocabulary = std::move(all);
  model = makeTokenModel(data, *vocabulary, std::move(merges));
  std::vector<std::pair<std::string_view, int32_t>> whole;
  for (size_t i = 0; i < data.kinds.size(); ++i)
    if (const auto id = static_cast<int32_t>(i);
        data.kinds[i] == PieceKind::UserDefined && !vocabulary->bytesOf(id).empty())
      whole.emplace_back(vocabulary->bytesOf(id), id);
  userDefined = PrefixTable(whole);
  std::vector<NormalizerStep> normalizers = normalizersOf(data);
  normalizer = Normalizer(normalizers, userDefined);
  bool alphabet = std::any_of(normalizers.begin(), normalizers.end(), [](const NormalizerStep &step) {
    return step.kind == NormalizerStep::Kind::ByteLevel;
  });
  preTokenizer = PreTokenizer(preTokenizersOf(data), alphabet);
  decoder = Decoder(data);
  readAdded(data);
  pool = std::make_unique<Pool>();
  eos = data.eosIds;
  bos = data.bosId;
  prefix = data.prefixIds;
  std::erase(prefix, -1);
  if (prefix.empty() && bos >= 0)
    prefix = {bos};
  pad = data.padId;
  suffix = data.suffixIds;
  std::erase(suffix, -1);
  if (suffix.empty() && !eos.empty())
    suffix = {eos.front()};
  bosByDefault = data.addBos && data.bosId >= 0;
  eosByDefault = data.addEos && !suffix.empty();
}

void Tokenizer::readAdded(const TokenizerData &data) {
  std::vector<AddedToken> raw, normalized;
  special.resize(data.tokens.size());
  for (size_t i = 0; i < data.kinds.size(); ++i)
    special[i] = data.kinds[i] == PieceKind::Control || data.kinds[i] == PieceKind::Unknown;
  for (const AddedToken &token : data.added) {
    special[token.id] = token.special;
    if (!token.normalized) {
      raw.push_back(token);
      continue;
    }
    normalized.push_back(token);
    std::string content = normalizer.apply(utf8::sanitize(token.content));
    if (content != token.content) {
      std::string bytes; // of a normaliser that writes the byte alphabet
      normalizedContents[token.id] = vocabulary->byteLevel() && appendAlphabetBytes(content, bytes) ? bytes : content;
    }
    normalized.back().content = std::move(content);
  }
  rawAdded = AddedTokens(raw);
  normalizedAdded = AddedTokens(normalized);
  added = data.added;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

/// Pieces to ids: independent parts of them from the cache, the others from the model.
class Tokenizer::Encoder final : public PieceSink {
public:
  Encoder(const Tokenizer &tokenizer, std::vector<int32_t> &ids)
      : tokenizer(tokenizer), ids(ids), unknown(tokenizer.model->fusedUnknown()),
        scratch(tokenizer.pool->take(tokenizer.preTokenizer)) {}
  ~Encoder() { tokenizer.pool->give(std::move(scratch)); }

  void text(std::string_view text, bool first) {
    tokenizer.preTokenizer.run(text, first, scratch->split, *this);
  }

  void piece(std::string_view piece) override {
    bool inner = false; // behind a cut of our own, over which a run of unknown characters may reach
    while (!piece.empty()) {
      std::string_view part = piece.substr(0, tokenizer.model->independentPrefix(piece));
      piece.remove_prefix(part.size());
      const size_t before = ids.size();
      encodePart(part);
      if (inner && unknown >= 0 && ids.size() > before && ids[before] == unknown && ids[before - 1] == unknown)
        ids.erase(ids.begin() + static_cast<ptrdiff_t>(before));
      inner |= ids.size() > before;
    }
  }

private:
  void encodePart(std::string_view part) {
    if (part.size() > PieceCache::kMaxBytes)
      return tokenizer.model->encode(part, ids);
    const uint64_t hash = PieceCache::hash(part);
    if (scratch->cache.find(part, hash, ids))
      return;
    const size_t before = ids.size();
    tokenizer.model->encode(part, ids);
    scratch->cache.store(part, hash, ids.data() + before, ids.size() - before);
  }

  const Tokenizer &tokenizer;
  std::vector<int32_t> &ids;
  const int32_t unknown;
  std::unique_ptr<Scratch> scratch;
};

/// The parts of `ranges` within text from `begin` to `end`, counted from `begin`.
static std::vector<TextRange> rangesWithin(std::span<const TextRange> ranges, size_t begin, size_t end) {
  std::vector<TextRange> inner;
  for (const TextRange &range : ranges)
    if (size_t from = std::max(range.begin, begin), to = std::min(range.end, end); from < to)
      inner.push_back({from - begin, to - begin});
  return inner;
}

/// Where the borders of `ranges` lie in the normalised text: a border is where the normalised
/// text before it stops being the start of the whole.
std::vector<TextRange> Tokenizer::rangesAfterNormalising(std::string_view text, std::string_view normalized,
                                                         std::span<const TextRange> ranges) const {
  auto moved = [&](size_t border) {
    if (border == 0 || border == text.size())
      return border ? normalized.size() : 0;
    std::string before = normalizer.apply(text.substr(0, border));
    auto [end, ignored] = std::mismatch(before.begin(), before.end(), normalized.begin(), normalized.end());
    return static_cast<size_t>(end - before.begin());
  };
  std::vector<TextRange> out;
  for (const TextRange &range : ranges)
    out.push_back({moved(range.begin), moved(range.end)});
  return out;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, std::span<const TextRange> ranges, bool addBos) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  if (addBos)
    ids.insert(ids.end(), prefix.begin(), prefix.end());
  Encoder encoder(*this, ids);
  for (const TextSegment &outer : rawAdded.cut(text, ranges)) {
    if (outer.id >= 0) {
      ids.push_back(outer.id);
      continue;
    }
    const auto begin = static_cast<size_t>(outer.text.data() - text.data());
    std::string normalized;
    std::string_view plain = outer.text;
    if (!normalizer.empty()) {
      normalized = normalizer.apply(plain);
      plain = normalized;
    }
    std::vector<TextRange> inside;
    if (normalizedAdded.hasSpecial()) {
      inside = rangesWithin(ranges, begin, begin + outer.text.size());
      if (!normalizer.empty())
        inside = rangesAfterNormalising(outer.text, plain, inside);
    }
    for (const TextSegment &inner : normalizedAdded.cut(plain, inside)) {
      if (inner.id >= 0)
        ids.push_back(inner.id);
      else
        encoder.text(inner.text, begin == 0 && inner.text.data() == plain.data());
    }
  }
  return ids;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool parseSpecial, bool addBos, bool addEos) const {
  std::string sanitized;
  if (utf8::firstInvalid(text) != text.size()) {
    sanitized = utf8::sanitize(text);
    text = sanitized;
  }
  const TextRange whole{0, text.size()};
  std::vector<int32_t> ids = encode(text, std::span<const TextRange>(&whole, parseSpecial ? 1 : 0), addBos);
  if (addEos)
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  return ids;
}

std::vector<int32_t> Tokenizer::encode(std::span<const TextPart> parts, bool addBos) const {
  std::string text;
  std::vector<TextRange> ranges;
  for (const TextPart &part : parts) {
    const size_t begin = text.size();
    text += utf8::sanitize(part.text);
    if (!part.parseSpecial || begin == text.size())
      continue;
    if (!ranges.empty() && ranges.back().end == begin)
      ranges.back().end = text.size();
    else
      ranges.push_back({begin, text.size()});
  }
  return encode(text, ranges, addBos);
}

//===----------------------------------------------------------------------===//
// Decoding and tables
//===----------------------------------------------------------------------===//

DecodeStream::DecodeStream(const Tokenizer &tokenizer, bool skipSpecial, std::vector<int32_t> kept)
    : tokenizer(&tokenizer), skipSpecial(skipSpecial), kept(std::move(kept)), state(tokenizer.decoder) {}

void DecodeStream::feed(int32_t id, std::string &out) {
  const Vocabulary &vocabulary = *tokenizer->vocabulary;
  if (id < 0 || static_cast<size_t>(id) >= vocabulary.size())
    return;
  if (skipSpecial && tokenizer->isSpecial(id) && std::find(kept.begin(), kept.end(), id) == kept.end())
    return;
  std::string_view bytes = vocabulary.bytesOf(id);
  if (!tokenizer->normalizedContents.empty())
    if (auto found = tokenizer->normalizedContents.find(id); found != tokenizer->normalizedContents.end())
      bytes = found->second;
  if (!vocabulary.byteLevel() || tokenizer->decoder.wantsBytes() || vocabulary.isAdded(id))
    state.token(bytes, out);
  else
    state.token(toAlphabet(bytes), out);
}

std::string DecodeStream::feed(int32_t id) {
  std::string out;
  feed(id, out);
  return out;
}

std::string DecodeStream::flush() {
  std::string out;
  state.finish(out);
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skipSpecial) const {
  DecodeStream stream(*this, skipSpecial);
  std::string out;
  for (int32_t id : ids)
    stream.feed(id, out);
  return out += stream.flush();
}

std::string_view Tokenizer::tokenBytes(int32_t id) const { return vocabulary->bytesOf(id); }

size_t Tokenizer::size() const { return vocabulary->size(); }

bool Tokenizer::isSpecial(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < special.size() && special[id];
}

bool Tokenizer::isEos(int32_t id) const { return std::find(eos.begin(), eos.end(), id) != eos.end(); }

int32_t Tokenizer::idOf(std::string_view spelling) const {
  for (const AddedToken &token : added)
    if (token.content == spelling)
      return token.id;
  return vocabulary->idOfSpelling(spelling);
}
