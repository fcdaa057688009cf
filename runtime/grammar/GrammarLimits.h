//===- GrammarLimits.h - what grammars are bounded by -----------*- C++ -*-===//
//
// docs/constrained.md names them. What is over one is refused before much time or
// memory has gone into it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_GRAMMARLIMITS_H
#define LLMC_RUNTIME_GRAMMAR_GRAMMARLIMITS_H

#include <cstddef>
#include <cstdint>

namespace llmc {

inline constexpr size_t kMaxGrammarBytes = 256 << 10;    // of a schema, expression or grammar as text
inline constexpr uint32_t kMaxGrammarDepth = 100;        // of groups in each other
inline constexpr uint32_t kMaxRepeats = 100'000;         // of one part
inline constexpr uint64_t kMaxExpandedParts = 500'000;   // characters of an expression with its repeats written out, rules not entered
inline constexpr uint32_t kMaxGrammarRules = 4096;
inline constexpr uint32_t kMaxGrammarStates = 40'000;    // of the automaton
inline constexpr uint64_t kMaxCompileWork = 400'000;     // steps of making it deterministic; what is over stays as it is
inline constexpr uint32_t kMaxCallDepth = 256;           // of rules in each other, in the text
inline constexpr uint32_t kMaxConfigurations = 2048;     // ways in which a text may be read at a time
inline constexpr uint64_t kMaxMaskWork = 300'000;        // configurations looked at for one mask

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_GRAMMARLIMITS_H
