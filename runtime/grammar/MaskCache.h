//===- MaskCache.h - masks that have been computed --------------*- C++ -*-===//
//
// What tokens may do from a state, whoever has called its rule: a token stays inside the
// rule, or the rule ends within it and the rest is up to the caller. The first is computed
// once a state (as XGrammar does: Dong et al. 2024, sec. 3.1), which is most of the work;
// what callers say to the few that leave is computed for each. Counters of repetitions
// that cannot reach a bound within a token count as equal.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_MASKCACHE_H
#define LLMC_RUNTIME_GRAMMAR_MASKCACHE_H

#include "runtime/grammar/Machine.h"
#include "runtime/grammar/TokenTrie.h"

#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace llmc {

class MaskCache {
public:
  MaskCache(const Grammar &grammar, const GrammarTokens &tokens);

  /// Adds the tokens that may come in this set of `machine`.
  void add(Machine &machine, uint32_t set, bool first, std::span<uint32_t> mask);

private:
  using Key = std::vector<uint32_t>;
  /// Of a state and the repetitions that it is in.
  struct Local {
    std::vector<uint32_t> words;  // of tokens that end within the rule, or with it; as a mask, or
    std::vector<int32_t> ids;     // as a list, where they are few
    std::vector<uint32_t> leaves; // nodes of the trie at which the rule ends and something may follow
    uint32_t highest = 0;         // Machine::highest
  };
  void add(Machine &machine, uint32_t set, GrammarTokens::Length length, bool first, std::span<uint32_t> mask);
  void compose(Machine &machine, uint32_t set, GrammarTokens::Length length, bool first, std::span<uint32_t> mask);
  void compose(Machine &machine, const Machine::Configuration &from, const TokenTrie &trie, const Local &local, std::span<uint32_t> mask);
  const Local &local(const Machine &machine, const Machine::Configuration &from, GrammarTokens::Length length, bool first);
  Local walk(const Machine &machine, const Machine::Configuration &from, const TokenTrie &trie);
  Key keyOf(const Machine &machine, const Machine::Configuration &from, size_t longest, bool whole) const;
  void forgetIfLarge();
  ByteSketch bytesBehindCalls();

  const Grammar &grammar_;
  const GrammarTokens &tokens_;
  std::mutex mutex_;
  ByteSketch behindCalls_; // what any call may be followed by
  Machine relative_; // its bottom is whatever has called the rule
  std::map<Key, Local> locals_;
  std::map<Key, std::vector<uint32_t>> masks_;
  size_t bytes_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_MASKCACHE_H
