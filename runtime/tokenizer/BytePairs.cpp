#include "runtime/tokenizer/BytePairs.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <bit>

using namespace llmc;

/// Above this many symbols a heap is faster than scanning for the best pair.
static constexpr size_t kShort = 24;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static size_t hashPair(int32_t left, int32_t right) {
  return static_cast<size_t>(mixWords(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right), 1));
}

BytePairs::BytePairs(const TokenizerData &data, const Vocabulary &vocabulary, std::vector<MergeIds> ids)
    : vocabulary(vocabulary), merges(std::move(ids)), continuingPrefix(data.continuingPrefix),
      endOfWordSuffix(data.endOfWordSuffix), unkId(data.unkId), fuseUnk(data.fuseUnk),
      ignoreMerges(data.ignoreMerges), byteFallback(data.byteFallback) {
  const auto count = static_cast<int64_t>(vocabulary.size());
  for (size_t rank = 0; rank < merges.size(); ++rank)
    for (int32_t id : {merges[rank].left, merges[rank].right, merges[rank].merged})
      if (id < 0 || id >= count)
        throw Error("tokenizer merge " + std::to_string(rank) + ": expected ids below " + std::to_string(count) +
                    ", got " + std::to_string(id));
  buildTable();
  indexCharacters();
  if (byteFallback)
    byteTokens = ByteTokens(vocabulary);
  if (!vocabulary.byteLevel() && continuingPrefix.empty() && endOfWordSuffix.empty() && !ignoreMerges) {
    joinable.emplace();
    std::vector<bool> seen(vocabulary.size());
    for (const MergeIds &merge : merges)
      if (!seen[merge.merged]) {
        seen[merge.merged] = true;
        joinable->add(vocabulary.bytesOf(merge.merged));
      }
  }
}

void BytePairs::buildTable() {
  table.assign(std::bit_ceil(std::max<size_t>(16, merges.size() + merges.size() / 2)), kNone);
  const size_t mask = table.size() - 1;
  constexpr size_t kAhead = 16; // the table does not fit in the cache: ask for places before they are needed
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    if (rank + kAhead < merges.size())
      __builtin_prefetch(&table[hashPair(merges[rank + kAhead].left, merges[rank + kAhead].right) & mask]);
    const MergeIds &merge = merges[rank];
    size_t i = hashPair(merge.left, merge.right) & mask;
    while (table[i] != kNone && (merges[table[i]].left != merge.left || merges[table[i]].right != merge.right))
      i = (i + 1) & mask;
    table[i] = static_cast<uint32_t>(rank); // the last one wins, as in the reference
    if (vocabulary.hidden(merge.merged))
      partsOfHidden.try_emplace(merge.merged, merge.left, merge.right);
  }
}

void BytePairs::indexCharacters() {
  // Of a character-level vocabulary only ASCII is looked up here, as bytes.
  for (int b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    byteIds[b] = vocabulary.byteLevel() || b < 128 ? vocabulary.idOf({&c, 1}) : -1;
  }
}

/// The prefix of continuations stands once in the join.
static std::string joinOf(const TokenizerData &data, const std::string &left, const std::string &right) {
  return left + right.substr(std::min(data.continuingPrefix.size(), right.size()));
}

std::vector<MergeIds> BytePairs::resolve(const TokenizerData &data, const Vocabulary &vocabulary) {
  std::vector<MergeIds> ids;
  ids.reserve(data.merges.size());
  for (const auto &[left, right] : data.merges)
    ids.push_back({vocabulary.idOfSpelling(left), vocabulary.idOfSpelling(right),
                   vocabulary.idOfSpelling(joinOf(data, left, right))});
  return ids;
}

std::vector<MergeIds> BytePairs::resolveAll(const TokenizerData &data, const Vocabulary &vocabulary) {
  std::vector<MergeIds> ids = resolve(data, vocabulary);
  for (size_t rank = 0; rank < ids.size(); ++rank)
    if (ids[rank].left < 0 || ids[rank].right < 0 || ids[rank].merged < 0) {
      const auto &[left, right] = data.merges[rank];
      throw Error("tokenizer merge " + std::to_string(rank) + ": expected '" + left + "', '" + right +
                  "' and their join in the vocabulary, got '" +
                  (ids[rank].left < 0    ? left
                   : ids[rank].right < 0 ? right
                                         : joinOf(data, left, right)) +
                  "' missing");
    }
  return ids;
}

uint32_t BytePairs::rankOf(int32_t left, int32_t right) const {
  const size_t mask = table.size() - 1;
  for (size_t i = hashPair(left, right) & mask; table[i] != kNone; i = (i + 1) & mask) {
    const MergeIds &merge = merges[table[i]];
    if (merge.left == left && merge.right == right)
      return table[i];
  }
  return kNone;
}

size_t BytePairs::independentPrefix(std::string_view piece) const {
  return joinable ? joinable->stretch(piece) : piece.size();
}

//===----------------------------------------------------------------------===//
// Encoding a piece
//===----------------------------------------------------------------------===//

/// Unknown bytes are dropped before merging when there is no unknown token, so their
/// neighbours may join; with fuseUnk a run of them is one symbol.
void BytePairs::byteSymbols(std::string_view piece, std::vector<int32_t> &symbols) const {
  bool afterUnknown = false;
  for (char c : piece) {
    int32_t id = byteIds[static_cast<unsigned char>(c)];
    bool unknown = id < 0;
    if (unknown && (unkId < 0 || (fuseUnk && afterUnknown)))
      continue;
    symbols.push_back(unknown ? unkId : id);
    afterUnknown = unknown;
  }
}

int32_t BytePairs::characterId(std::string_view character, bool first, bool last) const {
  const bool prefix = !first && !continuingPrefix.empty(), suffix = last && !endOfWordSuffix.empty();
  if (!prefix && !suffix)
    return character.size() == 1 ? byteIds[static_cast<unsigned char>(character[0])] : vocabulary.idOf(character);
  std::string spelling;
  if (prefix)
    spelling += continuingPrefix;
  spelling += character;
  if (suffix)
    spelling += endOfWordSuffix;
  return vocabulary.idOf(spelling);
}

/// As the reference does, an unknown character is written only when the next known one
/// comes: bytes of a later character may overtake it where byte tokens are incomplete.
void BytePairs::characterSymbols(std::string_view piece, std::vector<int32_t> &symbols) const {
  bool pending = false; // an unknown character that has not been written
  for (size_t i = 0; i < piece.size();) {
    size_t length = vocabulary.byteLevel() ? 1 : utf8::decode(piece.substr(i)).length;
    std::string_view character = piece.substr(i, length);
    const bool first = i == 0;
    i += length;
    int32_t id = characterId(character, first, i == piece.size());
    if (id >= 0 && (id == unkId || !vocabulary.hidden(id))) {
      if (pending)
        symbols.push_back(unkId);
      pending = false;
      symbols.push_back(id);
      continue;
    }
    if (byteFallback && byteTokens.append(character, symbols))
      continue;
    if (unkId < 0)
      continue;
    if (pending && !fuseUnk)
      symbols.push_back(unkId);
    pending = true;
  }
  if (pending)
    symbols.push_back(unkId);
}

void BytePairs::emit(int32_t id, std::vector<int32_t> &ids) const {
  if (partsOfHidden.empty() || !partsOfHidden.count(id))
    return ids.push_back(id);
  std::vector<int32_t> open{id};
  // Hostile merges may make a token of itself; each hidden token is taken apart once a path.
  for (size_t steps = 0; !open.empty(); ++steps) {
    int32_t top = open.back();
    open.pop_back();
    auto parts = partsOfHidden.find(top);
    if (parts == partsOfHidden.end() || steps > 2 * partsOfHidden.size() + 2) {
      ids.push_back(top);
      continue;
    }
    open.push_back(parts->second.second);
    open.push_back(parts->second.first);
  }
}

void BytePairs::mergeShort(int32_t *symbols, size_t count, std::vector<int32_t> &ids) const {
  uint32_t ranks[kShort];
  for (size_t i = 0; i + 1 < count; ++i)
    ranks[i] = rankOf(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (ranks[i] < ranks[best])
        best = i;
    if (ranks[best] == kNone)
      break;
    symbols[best] = merges[ranks[best]].merged;
    std::move(symbols + best + 2, symbols + count, symbols + best + 1);
    if (best + 2 < count)
      std::move(ranks + best + 2, ranks + count - 1, ranks + best + 1);
    --count;
    if (best > 0)
      ranks[best - 1] = rankOf(symbols[best - 1], symbols[best]);
    if (best + 1 < count)
      ranks[best] = rankOf(symbols[best], symbols[best + 1]);
  }
  for (size_t i = 0; i < count; ++i)
    emit(symbols[i], ids);
}

namespace {
struct Symbol {
  int32_t id; // -1: joined into its left neighbour
  int32_t prev, next;
};

struct Candidate {
  uint32_t rank;
  int32_t left; // index of the left symbol
  bool operator<(const Candidate &other) const { // heaps give the largest
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};
} // namespace

void BytePairs::mergeLong(const std::vector<int32_t> &input, std::vector<int32_t> &ids) const {
  const auto count = static_cast<int32_t>(input.size());
  std::vector<Symbol> symbols(input.size());
  for (int32_t i = 0; i < count; ++i)
    symbols[i] = {input[i], i - 1, i + 1 < count ? i + 1 : -1};
  std::vector<Candidate> heap;
  auto consider = [&](int32_t left, bool push) {
    if (left < 0 || symbols[left].next < 0)
      return;
    uint32_t rank = rankOf(symbols[left].id, symbols[symbols[left].next].id);
    if (rank == kNone)
      return;
    heap.push_back({rank, left});
    if (push)
      std::push_heap(heap.begin(), heap.end());
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
    uint32_t rank = rankOf(left.id, right.id);
    if (rank == kNone || merges[rank].merged != merges[top.rank].merged)
      continue; // one of the two has changed since
    left.id = merges[top.rank].merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0)
      symbols[left.next].prev = top.left;
    consider(left.prev, true);
    consider(top.left, true);
  }
  for (int32_t i = 0; i >= 0; i = symbols[i].next)
    emit(symbols[i].id, ids);
}

void BytePairs::encode(std::string_view piece, std::vector<int32_t> &ids) const {
  if (piece.size() > INT32_MAX)
    throw Error("text: expected pieces below 2 GiB, got " + std::to_string(piece.size()) + " bytes");
  if (ignoreMerges)
    if (int32_t id = vocabulary.idOf(piece); id >= 0 && !vocabulary.hidden(id))
      return ids.push_back(id);
  std::vector<int32_t> symbols;
  symbols.reserve(piece.size());
  if (vocabulary.byteLevel() && continuingPrefix.empty() && endOfWordSuffix.empty() && !byteFallback)
    byteSymbols(piece, symbols);
  else
    characterSymbols(piece, symbols);
  if (symbols.size() <= kShort)
    mergeShort(symbols.data(), symbols.size(), ids);
  else
    mergeLong(symbols, ids);
}
