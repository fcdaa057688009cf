//===- ConstraintSource.h - what a request says of its answer ---*- C++ -*-===//
#ifndef LLMC_RUNTIME_GRAMMAR_CONSTRAINTSOURCE_H
#define LLMC_RUNTIME_GRAMMAR_CONSTRAINTSOURCE_H

#include "runtime/grammar/Constraint.h"

#include <functional>
#include <list>
#include <mutex>
#include <string>

namespace llmc {

/// A description of the texts that are allowed.
struct ConstraintSource {
  enum class Kind {
    JsonObject, ///< any JSON object; `text` is not used
    JsonSchema, ///< a schema as JSON
    Regex,      ///< a regular expression of the whole answer
    Choice,     ///< a list of strings as JSON: one of them
    Grammar     ///< GBNF
  };
  Kind kind;
  std::string text;
};

/// Throws GrammarError.
std::shared_ptr<const Grammar> compileGrammar(const ConstraintSource &source);

/// The constraints that were asked for last, so that what has been compiled, and masks, are not computed for each request anew. Any
/// thread may use it.
class ConstraintCache {
public:
  explicit ConstraintCache(size_t capacity = 32) : capacity_(capacity) {}

  /// `key` stands for what `compile` makes; it is called without the lock, and what it throws is not kept.
  std::shared_ptr<Constraint> get(const std::string &key, const std::shared_ptr<const GrammarTokens> &tokens,
                                  const std::function<std::shared_ptr<const Grammar>()> &compile);
  std::shared_ptr<Constraint> get(const ConstraintSource &source, const std::shared_ptr<const GrammarTokens> &tokens);

private:
  std::shared_ptr<Constraint> find(const std::string &key);

  size_t capacity_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<Constraint>>> recent_; // the last one asked for first
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_CONSTRAINTSOURCE_H
