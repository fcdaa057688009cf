//===- Grammar.h - a grammar as an automaton over bytes ---------*- C++ -*-===//
//
// A recursive transition network: every rule is an automaton over bytes whose edges may
// also call rules, or count repetitions of one. Rules are deterministic where that does
// not take too many states. What is called is never the empty text, so a call ends with
// a byte of its own; every state leads to an end.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_GRAMMAR_H
#define LLMC_RUNTIME_GRAMMAR_GRAMMAR_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

class Grammar {
public:
  struct Edge {
    uint8_t first, last; // bytes
    uint32_t to;
  };
  /// `least` to `most` times what starts at `entry`, then on at `to`.
  struct Call {
    uint32_t entry, to, least, most;
    bool counts() const { return most > 1; }
  };
  struct State {
    uint32_t edges = 0, calls = 0, jumps = 0; // the first of each; they end where the next state's begin
    uint32_t height = 0; // calls in each other that the shortest way to the end has
    bool end = false;
  };

  uint32_t start() const { return start_; }
  uint32_t size() const { return uint32_t(states_.size()) - 1; }
  const State &state(uint32_t s) const { return states_[s]; }
  std::span<const Edge> edges(uint32_t s) const { return slice(edges_, states_[s].edges, states_[s + 1].edges); }
  std::span<const uint32_t> calls(uint32_t s) const { return slice(callsOf_, states_[s].calls, states_[s + 1].calls); }
  /// States that are entered with this one, for the same byte.
  std::span<const uint32_t> jumps(uint32_t s) const { return slice(jumps_, states_[s].jumps, states_[s + 1].jumps); }
  const Call &call(uint32_t c) const { return calls_[c]; }
  uint32_t callCount() const { return uint32_t(calls_.size()); }
  /// What is behind the call is the caller's own: nothing is to be remembered.
  bool isTailCall(const Call &call) const { return !call.counts() && isBareEnd_[call.to]; }
  /// Bytes that no edge tells apart have the same class.
  uint32_t byteClass(uint8_t byte) const { return byteClass_[byte]; }
  uint32_t byteClasses() const { return byteClasses_; }

private:
  friend class GrammarCompiler;
  template <typename T> static std::span<const T> slice(const std::vector<T> &all, uint32_t begin, uint32_t end) {
    return {all.data() + begin, end - begin};
  }
  std::vector<State> states_; // and one behind the last
  std::vector<Edge> edges_;
  std::vector<uint32_t> callsOf_, jumps_;
  std::vector<Call> calls_;
  std::vector<bool> isBareEnd_;
  uint32_t start_ = 0;
  std::array<uint8_t, 256> byteClass_{};
  uint32_t byteClasses_ = 1;
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_GRAMMAR_H
