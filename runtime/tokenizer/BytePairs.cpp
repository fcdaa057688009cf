#include "runtime/tokenizer/BytePairs.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
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
  for (size_t i = 0; i < spelling.size();) {
    auto lead = static_cast<unsigned char>(spelling[i]);
    uint32_t c = lead;
    if (lead < 0x80) {
      ++i;
    } else { // two bytes reach U+07FF, beyond the alphabet
      utf8::Decoded d = utf8::decode(spelling.substr(i));
      c = d.codePoint;
      i += d.length;
    }
    if (c >= kAlphabet.byte.size() || kAlphabet.byte[c] < 0) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(kAlphabet.byte[c]);
  }
  return true;
}

std::string llmc::toAlphabet(std::string_view bytes) {
  std::string out;
  for (char c : bytes)
    utf8::append(out, kAlphabet.character[static_cast<unsigned char>(c)]);
  return out;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t a, uint64_t b) {
  auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xD6E8FEB86659FD93ull);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

static uint32_t hashBytes(std::string_view bytes) {
  uint64_t h = bytes.size();
  const char *p = bytes.data();
  size_t n = bytes.size();
  for (; n > 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = mix(h, word);
  }
  uint64_t word = 0;
  std::memcpy(&word, p, n);
  return static_cast<uint32_t>(mix(h, word) >> 16);
}

static size_t hashPair(uint64_t pair) { return static_cast<size_t>(mix(pair, 1)); }

static size_t tableSize(size_t entries) { return std::bit_ceil(std::max<size_t>(16, entries * 2)); }

BytePairs::BytePairs(const TokenizerData &data, const std::vector<MergeIds> &ids)
    : unkId(data.unkId), fuseUnk(data.fuseUnk), ignoreMerges(data.ignoreMerges) {
  buildVocabulary(data);
  buildMerges(ids);
  indexBytes();
}

BytePairs::BytePairs(const TokenizerData &data)
    : unkId(data.unkId), fuseUnk(data.fuseUnk), ignoreMerges(data.ignoreMerges) {
  buildVocabulary(data);
  std::vector<MergeIds> ids = resolveMerges(data);
  for (size_t rank = 0; rank < ids.size(); ++rank)
    if (ids[rank].left < 0 || ids[rank].right < 0 || ids[rank].merged < 0) {
      const auto &[left, right] = data.merges[rank];
      throw Error("tokenizer merge " + std::to_string(rank) + ": expected '" + left + "', '" + right +
                  "' and their join in the vocabulary, got '" +
                  (ids[rank].left < 0 ? left : ids[rank].right < 0 ? right : left + right) + "' missing");
    }
  buildMerges(ids);
  indexBytes();
}

std::vector<MergeIds> BytePairs::resolve(const TokenizerData &data) {
  BytePairs vocabulary;
  vocabulary.buildVocabulary(data);
  return vocabulary.resolveMerges(data);
}

void BytePairs::indexBytes() {
  for (int b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    byteIds[b] = idOfBytes({&c, 1});
  }
}

void BytePairs::buildVocabulary(const TokenizerData &data) {
  const size_t count = data.tokens.size();
  std::vector<const AddedToken *> added(count, nullptr);
  for (const AddedToken &token : data.added)
    if (token.id >= 0 && static_cast<size_t>(token.id) < count)
      added[token.id] = &token;
  size_t total = 0;
  for (const std::string &token : data.tokens)
    total += token.size();
  if (total > UINT32_MAX)
    throw Error("tokenizer: expected at most 4 GiB of token spellings, got " + std::to_string(total) + " bytes");
  arena.reserve(total);
  offsets.reserve(count + 1);
  slots.resize(tableSize(count));
  std::vector<int32_t> late;
  for (size_t id = 0; id < count; ++id) {
    offsets.push_back(static_cast<uint32_t>(arena.size()));
    if (added[id]) {
      // An added token is spelled in plain UTF-8. Where both spellings agree the
      // token may also be one of the vocabulary, after the others.
      const std::string &content = added[id]->content;
      arena += content;
      if (std::all_of(content.begin(), content.end(), [](char c) { return c > ' ' && c < 0x7F; }))
        late.push_back(static_cast<int32_t>(id));
    } else if (appendAlphabetBytes(data.tokens[id], arena)) {
      offsets.push_back(static_cast<uint32_t>(arena.size()));
      insertToken(static_cast<int32_t>(id));
      offsets.pop_back();
    } else {
      arena += data.tokens[id]; // unreachable from text, decodes to itself
    }
  }
  offsets.push_back(static_cast<uint32_t>(arena.size()));
  for (int32_t id : late)
    insertToken(id);
}

void BytePairs::insertToken(int32_t id) {
  std::string_view bytes = bytesOf(id);
  if (bytes.empty())
    return;
  uint32_t hash = hashBytes(bytes);
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

int32_t BytePairs::idOfBytes(std::string_view bytes) const {
  if (bytes.empty() || slots.empty())
    return -1;
  uint32_t hash = hashBytes(bytes);
  const size_t mask = slots.size() - 1;
  for (size_t i = hash & mask; slots[i].id >= 0; i = (i + 1) & mask)
    if (slots[i].hash == hash && bytesOf(slots[i].id) == bytes)
      return slots[i].id;
  return -1;
}

std::string_view BytePairs::bytesOf(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) + 1 >= offsets.size())
    return {};
  return std::string_view(arena).substr(offsets[id], offsets[id + 1] - offsets[id]);
}

std::vector<MergeIds> BytePairs::resolveMerges(const TokenizerData &data) const {
  std::vector<MergeIds> ids;
  ids.reserve(data.merges.size());
  std::string bytes;
  for (const auto &[left, right] : data.merges) {
    bytes.clear();
    bool leftKnown = appendAlphabetBytes(left, bytes);
    size_t middle = bytes.size();
    bool rightKnown = appendAlphabetBytes(right, bytes);
    std::string_view all = bytes;
    ids.push_back({leftKnown ? idOfBytes(all.substr(0, middle)) : -1, rightKnown ? idOfBytes(all.substr(middle)) : -1,
                   leftKnown && rightKnown ? idOfBytes(all) : -1});
  }
  return ids;
}

void BytePairs::buildMerges(const std::vector<MergeIds> &ids) {
  merges.resize(tableSize(ids.size()));
  const size_t mask = merges.size() - 1;
  for (size_t rank = 0; rank < ids.size(); ++rank) {
    uint64_t pair = static_cast<uint64_t>(ids[rank].left) << 32 | static_cast<uint32_t>(ids[rank].right);
    size_t i = hashPair(pair) & mask;
    while (merges[i].merged >= 0 && merges[i].pair != pair)
      i = (i + 1) & mask;
    merges[i] = {pair, static_cast<uint32_t>(rank), ids[rank].merged}; // the last one wins, as in the reference
  }
}

const BytePairs::Merge *BytePairs::findMerge(int32_t left, int32_t right) const {
  if (merges.empty())
    return nullptr;
  uint64_t pair = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  const size_t mask = merges.size() - 1;
  for (size_t i = hashPair(pair) & mask; merges[i].merged >= 0; i = (i + 1) & mask)
    if (merges[i].pair == pair)
      return &merges[i];
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Encoding a piece
//===----------------------------------------------------------------------===//

namespace {
struct Symbol {
  int32_t id;        // -1: an unknown byte; -2: joined into its left neighbour
  int32_t prev, next;
};

struct Candidate {
  uint32_t rank;
  int32_t left; // index of the left symbol
  int32_t merged;
  bool operator<(const Candidate &other) const { // std::priority_queue pops the largest
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};
} // namespace

void BytePairs::encode(std::string_view piece, std::vector<int32_t> &ids) const {
  if (piece.size() > INT32_MAX)
    throw Error("text: expected pieces below 2 GiB, got " + std::to_string(piece.size()) + " bytes");
  if (ignoreMerges || piece.size() == 1)
    if (int32_t id = idOfBytes(piece); id >= 0)
      return ids.push_back(id);
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (char c : piece) {
    int32_t id = byteIds[static_cast<unsigned char>(c)];
    // Unknown bytes are dropped before merging, so their neighbours may join; with
    // fuseUnk a run of them is one symbol.
    if (id < 0 && (unkId < 0 || (fuseUnk && !symbols.empty() && symbols.back().id < 0)))
      continue;
    auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  }
  if (symbols.empty())
    return;
  symbols.back().next = -1;
  const auto count = static_cast<int32_t>(symbols.size());

  std::vector<Candidate> heap;
  auto consider = [&](int32_t left, bool push) {
    if (left < 0 || symbols[left].next < 0)
      return;
    int32_t a = symbols[left].id, b = symbols[symbols[left].next].id;
    if (a < 0 || b < 0)
      return;
    if (const Merge *merge = findMerge(a, b)) {
      heap.push_back({merge->rank, left, merge->merged});
      if (push)
        std::push_heap(heap.begin(), heap.end());
    }
  };
  for (int32_t i = 0; i + 1 < count; ++i)
    consider(i, false);
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Candidate top = heap.back();
    heap.pop_back();
    Symbol &left = symbols[top.left];
    if (left.id < 0 || left.next < 0)
      continue;
    Symbol &right = symbols[left.next];
    const Merge *merge = right.id < 0 ? nullptr : findMerge(left.id, right.id);
    if (!merge || merge->merged != top.merged)
      continue; // one of the two has changed since
    left.id = top.merged;
    left.next = right.next;
    right.id = -2;
    if (left.next >= 0)
      symbols[left.next].prev = top.left;
    consider(left.prev, true);
    consider(top.left, true);
  }
  for (int32_t i = 0; i >= 0; i = symbols[i].next)
    ids.push_back(symbols[i].id < 0 ? unkId : symbols[i].id);
}
