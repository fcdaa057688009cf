//===- Constraint.h - a grammar that holds for an answer --------*- C++ -*-===//
//
// Which tokens may come next. A token may if its bytes can be the next bytes of a text
// of the grammar; special tokens never may, and those that end the answer only where
// the text may end.
//
//   auto constraint = std::make_shared<Constraint>(grammar, tokens);
//   Matcher matcher(constraint);
//   matcher.fillMask(mask, endIds);   // for the sampler
//   matcher.accept(id);               // what was chosen
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_CONSTRAINT_H
#define LLMC_RUNTIME_GRAMMAR_CONSTRAINT_H

#include "runtime/grammar/Grammar.h"
#include "runtime/grammar/Machine.h"
#include "runtime/grammar/MaskCache.h"
#include "runtime/grammar/TokenTrie.h"

#include <memory>
#include <span>

namespace llmc {

/// What requests share that are held by the same grammar. Any thread may use it.
class Constraint {
public:
  Constraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const GrammarTokens> tokens);

  const Grammar &grammar() const { return *grammar_; }
  const GrammarTokens &tokens() const { return *tokens_; }

private:
  friend class Matcher;
  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const GrammarTokens> tokens_;
  MaskCache cache_;
};

/// One answer on its way through the grammar. One thread at a time.
class Matcher {
public:
  explicit Matcher(std::shared_ptr<Constraint> constraint);

  /// Sets the bits of the tokens that may come next, [ceil(vocab / 32)]; of `endIds` where the text may end, else not. False if
  /// none may. Throws GrammarError if the text can be read in too many ways (kMaxConfigurations, kMaxMaskWork).
  bool fillMask(std::span<uint32_t> mask, std::span<const int32_t> endIds);
  /// False, and nothing has changed, for a token that may not come. Throws as fillMask does.
  bool accept(int32_t id);
  /// The text may end here.
  bool mayEnd() const { return machine_.accepting(set_); }
  /// It must: nothing can follow.
  bool mustEnd() const { return mayEnd() && machine_.configurations(set_).empty(); }

private:
  std::shared_ptr<Constraint> constraint_;
  Machine machine_;
  uint32_t set_;
  bool first_ = true; // no token yet
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_CONSTRAINT_H
