#include "runtime/tokenizer/Vocabulary.h"

#include "llmc/Support/Error.h"
#include "llmc/Support/HexDigit.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

using namespace llmc;

//===----------------------------------------------------------------------===//
// The byte-level alphabet: printable Latin-1 bytes stand for themselves, the
// other 68 for U+0100 onwards in ascending order.
//===----------------------------------------------------------------------===//

namespace {
struct Alphabet {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, 0x144> byte{};

  constexpr Alphabet() {
    for (auto &b : byte)
      b = -1;
    uint16_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      character[b] = itself ? static_cast<uint16_t>(b) : next++;
      byte[character[b]] = static_cast<int16_t>(b);
    }
  }
};
constexpr Alphabet kAlphabet;
} // namespace

bool llmc::appendAlphabetBytes(std::string_view spelling, std::string &bytes) {
  const size_t before = bytes.size();
  bytes.resize(before + spelling.size());
  char *out = bytes.data() + before;
  const size_t n = spelling.size();
  for (size_t i = 0; i < n;) {
    auto lead = static_cast<unsigned char>(spelling[i]);
    uint32_t c = lead;
    if (lead < 0x80) {
      ++i;
    } else if (lead >= 0xC2 && lead <= 0xC5 && i + 1 < n && utf8::isContinuation(spelling[i + 1])) {
      c = (lead & 0x1Fu) << 6 | (static_cast<unsigned char>(spelling[i + 1]) & 0x3Fu);
      i += 2;
    } else { // beyond the alphabet, which ends at U+0143
      bytes.resize(before);
      return false;
    }
    if (c >= kAlphabet.byte.size() || kAlphabet.byte[c] < 0) {
      bytes.resize(before);
      return false;
    }
    *out++ = static_cast<char>(kAlphabet.byte[c]);
  }
  bytes.resize(static_cast<size_t>(out - bytes.data()));
  return true;
}

std::string llmc::toAlphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes)
    utf8::append(out, kAlphabet.character[static_cast<unsigned char>(c)]);
  return out;
}

int llmc::byteOfSpelling(std::string_view s) {
  if (s.size() != 6 || !s.starts_with("<0x") || s[5] != '>')
    return -1;
  int high = hexDigit(s[3]), low = hexDigit(s[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

uint64_t llmc::hashBytes(std::string_view bytes) {
  uint64_t h = bytes.size();
  const char *p = bytes.data();
  size_t n = bytes.size();
  for (; n > 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = mixWords(h, word);
  }
  uint64_t word = 0;
  if (n >= 4) { // two overlapping words instead of a copy of unknown length
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    word = low | static_cast<uint64_t>(high) << 32;
  } else if (n) {
    word = static_cast<unsigned char>(p[0]) | static_cast<uint64_t>(static_cast<unsigned char>(p[n / 2])) << 8 |
           static_cast<uint64_t>(static_cast<unsigned char>(p[n - 1])) << 16;
  }
  return mixWords(h, word);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static bool isOneCharacter(std::string_view text) {
  return text.empty() || utf8::decode(text).length == text.size();
}

Vocabulary::Vocabulary(const TokenizerData &data) : alphabet(data.byteLevel()) {
  const size_t count = data.tokens.size();
  hiddenIds.resize(count);
  addedIds.resize(count);
  for (const AddedToken &token : data.added)
    if (token.id >= 0 && static_cast<size_t>(token.id) < count) {
      addedIds[token.id] = true;
      hiddenIds[token.id] = token.special && !isOneCharacter(token.content);
    }
  for (size_t id = 0; id < std::min(count, data.kinds.size()); ++id) {
    PieceKind kind = data.kinds[id];
    if (kind == PieceKind::Unknown || kind == PieceKind::Control || kind == PieceKind::Byte)
      hiddenIds[id] = true;
  }
  if (data.byteFallback && data.kinds.empty())
    for (size_t id = 0; id < count; ++id)
      if (byteOfSpelling(data.tokens[id]) >= 0)
        hiddenIds[id] = true;
  append(data);
}

void Vocabulary::append(const TokenizerData &data) {
  const size_t count = data.tokens.size();
  std::vector<const AddedToken *> added(count, nullptr);
  for (const AddedToken &token : data.added)
    if (token.id >= 0 && static_cast<size_t>(token.id) < count)
      added[token.id] = &token;
  size_t total = 0;
  for (size_t id = 0; id < count; ++id)
    total += added[id] ? added[id]->content.size() : data.tokens[id].size();
  if (total > UINT32_MAX)
    throw Error("tokenizer: expected at most 4 GiB of token spellings, got " + std::to_string(total) + " bytes");
  arena.reserve(total);
  offsets.reserve(count + 1);
  slots.resize(std::bit_ceil(std::max<size_t>(16, count + count / 2)));
  offsets.push_back(0);
  std::vector<int32_t> early, late;
  early.reserve(count);
  for (size_t id = 0; id < count; ++id) {
    bool known = true;
    if (added[id]) {
      // An added token is spelled in plain UTF-8. Where both spellings agree the
      // token may also be one of the vocabulary, after the others.
      const std::string &content = added[id]->content;
      arena += content;
      known = false;
      if (!alphabet || std::all_of(content.begin(), content.end(), [](char c) { return c > ' ' && c < 0x7F; }))
        late.push_back(static_cast<int32_t>(id));
    } else if (!alphabet) {
      arena += data.tokens[id];
    } else if (!appendAlphabetBytes(data.tokens[id], arena)) {
      arena += data.tokens[id]; // unreachable from text, decodes to itself
      known = false;
    }
    offsets.push_back(static_cast<uint32_t>(arena.size()));
    if (known)
      early.push_back(static_cast<int32_t>(id));
  }
  insert(early);
  insert(late);
}

void Vocabulary::insert(const std::vector<int32_t> &ids) {
  constexpr size_t kAhead = 16; // the table does not fit in the cache: ask for slots before they are needed
  std::array<uint32_t, kAhead> hashes;
  const size_t mask = slots.size() - 1;
  for (size_t i = 0; i < ids.size() + kAhead; ++i) {
    if (i >= kAhead)
      insert(ids[i - kAhead], hashes[i % kAhead]);
    if (i < ids.size()) {
      hashes[i % kAhead] = static_cast<uint32_t>(hashBytes(bytesOf(ids[i])) >> 16);
      __builtin_prefetch(&slots[hashes[i % kAhead] & mask]);
    }
  }
}

void Vocabulary::insert(int32_t id, uint32_t hash) {
  std::string_view bytes = bytesOf(id);
  if (bytes.empty())
    return;
  const size_t mask = slots.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    if (slots[i].id < 0) {
      slots[i] = {hash, id};
      return;
    }
    if (slots[i].hash == hash && bytesOf(slots[i].id) == bytes)
      return; // the first one wins
  }
}

int32_t Vocabulary::idOf(std::string_view bytes) const {
  if (bytes.empty() || slots.empty())
    return -1;
  auto hash = static_cast<uint32_t>(hashBytes(bytes) >> 16);
  const size_t mask = slots.size() - 1;
  for (size_t i = hash & mask; slots[i].id >= 0; i = (i + 1) & mask)
    if (slots[i].hash == hash && bytesOf(slots[i].id) == bytes)
      return slots[i].id;
  return -1;
}

int32_t Vocabulary::idOfSpelling(std::string_view spelling) const {
  if (!alphabet)
    return idOf(spelling);
  std::string bytes;
  return appendAlphabetBytes(spelling, bytes) ? idOf(bytes) : -1;
}
