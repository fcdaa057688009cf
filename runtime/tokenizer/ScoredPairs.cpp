#include "runtime/tokenizer/ScoredPairs.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <unordered_map>

using namespace llmc;

/// A stretch of the piece; length 0: joined into its left neighbour.
struct ScoredPairs::Symbol {
  uint32_t begin, length;
  int32_t prev, next;
  bool frozen;
};

namespace {
struct Candidate {
  float score;
  int32_t left;
  uint32_t length; // of the join
  bool operator<(const Candidate &other) const { // heaps give the largest
    return score != other.score ? score < other.score : left > other.left;
  }
};
} // namespace

struct ScoredPairs::Run {
  std::string_view piece;
  std::vector<Symbol> symbols;
  std::unordered_map<std::string_view, size_t> leftOfUnused; // bytes of the left part
};

ScoredPairs::ScoredPairs(const TokenizerData &data, const Vocabulary &vocabulary)
    : vocabulary(vocabulary), scores(data.scores.begin(), data.scores.end()), unused(vocabulary.size()),
      unkId(data.unkId), byteFallback(data.byteFallback) {
  if (byteFallback)
    byteTokens = ByteTokens(vocabulary);
  std::vector<std::pair<std::string_view, int32_t>> whole;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    std::string_view text = vocabulary.bytesOf(static_cast<int32_t>(id));
    PieceKind kind = data.kinds.empty() ? PieceKind::Normal : data.kinds[id];
    if (vocabulary.hidden(static_cast<int32_t>(id)) || text.empty())
      continue;
    joinable.add(text);
    unused[id] = kind == PieceKind::Unused;
    anyUnused |= unused[id];
    if (kind == PieceKind::UserDefined)
      whole.emplace_back(text, static_cast<int32_t>(id));
  }
  userDefined = PrefixTable(whole);
}

int32_t ScoredPairs::pieceId(std::string_view text) const {
  int32_t id = vocabulary.idOf(text);
  return id >= 0 && !vocabulary.hidden(id) ? id : -1;
}

void ScoredPairs::segment(std::string_view piece, std::vector<Symbol> &symbols) const {
  symbols.reserve(piece.size());
  for (size_t i = 0; i < piece.size();) {
    size_t length = 0;
    bool frozen = false;
    if (!userDefined.empty())
      if (PrefixTable::Match match = userDefined.longest(piece.substr(i)); match.id >= 0)
        length = match.length, frozen = true;
    if (!frozen)
      length = utf8::decode(piece.substr(i)).length;
    auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(length), at - 1, at + 1, frozen});
    i += length;
  }
  symbols.back().next = -1;
}

void ScoredPairs::merge(Run &run) const {
  std::vector<Symbol> &symbols = run.symbols;
  std::vector<Candidate> heap;
  auto consider = [&](int32_t left, bool push) {
    if (left < 0 || symbols[left].next < 0)
      return;
    const Symbol &a = symbols[left], &b = symbols[a.next];
    if (a.frozen || b.frozen)
      return;
    std::string_view join = run.piece.substr(a.begin, a.length + b.length);
    int32_t id = pieceId(join);
    if (id < 0)
      return;
    if (unused[id])
      run.leftOfUnused[join] = a.length;
    heap.push_back({scores[id], left, a.length + b.length});
    if (push)
      std::push_heap(heap.begin(), heap.end());
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    consider(static_cast<int32_t>(i), false);
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Candidate top = heap.back();
    heap.pop_back();
    Symbol &left = symbols[top.left];
    if (!left.length || left.next < 0)
      continue;
    Symbol &right = symbols[left.next];
    if (left.length + right.length != top.length)
      continue; // one of the two has changed since
    left.length = top.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0)
      symbols[left.next].prev = top.left;
    consider(left.prev, true);
    consider(top.left, true);
  }
}

void ScoredPairs::emitUnknown(std::string_view text, std::vector<int32_t> &ids) const {
  if (byteFallback && byteTokens.append(text, ids))
    return;
  if (unkId < 0)
    throw Error("tokenizer: expected an unknown token for '" + std::string(text.substr(0, 16)) +
                "', which the vocabulary lacks, got none");
  if (ids.empty() || ids.back() != unkId) // a run of unknown characters gives one
    ids.push_back(unkId);
}

void ScoredPairs::emit(std::string_view text, const Run &run, std::vector<int32_t> &ids) const {
  std::vector<std::string_view> open{text};
  while (!open.empty()) {
    std::string_view top = open.back();
    open.pop_back();
    int32_t id = pieceId(top);
    if (id < 0) {
      emitUnknown(top, ids);
      continue;
    }
    if (unused[id])
      if (auto parts = run.leftOfUnused.find(top); parts != run.leftOfUnused.end()) {
        open.push_back(top.substr(parts->second));
        open.push_back(top.substr(0, parts->second));
        continue;
      }
    ids.push_back(id);
  }
}

void ScoredPairs::encode(std::string_view piece, std::vector<int32_t> &ids) const {
  if (piece.size() > INT32_MAX)
    throw Error("text: expected pieces below 2 GiB, got " + std::to_string(piece.size()) + " bytes");
  Run run{piece, {}, {}};
  segment(piece, run.symbols);
  merge(run);
  std::vector<int32_t> out; // its last id is of this piece
  for (int32_t i = 0; i >= 0; i = run.symbols[i].next)
    emit(piece.substr(run.symbols[i].begin, run.symbols[i].length), run, out);
  ids.insert(ids.end(), out.begin(), out.end());
}
