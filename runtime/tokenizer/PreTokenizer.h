//===- PreTokenizer.h - text to the pieces that the model sees --*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_PRETOKENIZER_H
#define LLMC_RUNTIME_TOKENIZER_PRETOKENIZER_H

#include "runtime/tokenizer/FastSplit.h"
#include "runtime/tokenizer/SplitPattern.h"
#include "runtime/tokenizer/TokenizerData.h"
#include "runtime/tokenizer/UnicodeScripts.h"

#include <optional>

namespace llmc {

class PieceSink {
public:
  virtual ~PieceSink() = default;
  /// Never empty; valid only during the call.
  virtual void piece(std::string_view text) = 0;
};

/// The steps of TokenizerData::preTokenizers, each within the pieces of the one before.
/// Immutable; several threads may call it, each with its own scratch memory.
class PreTokenizer {
public:
  struct Scratch {
    std::vector<SplitPattern::MatcherPointer> matchers; // by step
    std::vector<std::string> buffers;                   // by step, and one more
  };

  PreTokenizer() = default;
  /// `alphabet`: the text is in the byte-level alphabet already (a normaliser did it).
  /// Throws Error for a bad pattern, too many steps.
  PreTokenizer(const std::vector<PreTokenizerStep> &steps, bool alphabet);

  Scratch makeScratch() const;
  /// Pieces of `text` (valid UTF-8) in order; of a byte-level model as bytes, else UTF-8.
  /// `first`: text starts the whole input (PrependScheme::First).
  void run(std::string_view text, bool first, Scratch &scratch, PieceSink &sink) const;

private:
  struct Step {
    PreTokenizerStep data;
    std::optional<SplitPattern> pattern;
    FastPattern fast = FastPattern::None;
    std::unique_ptr<const UnicodeScripts> scripts;
  };
  struct Context;
  class Joiner;

  void next(size_t step, std::string_view piece, bool first, Context &context) const;
  void split(size_t index, std::string_view piece, bool first, Context &context) const;
  void byteLevel(size_t index, std::string_view piece, bool first, Context &context) const;
  void words(size_t index, std::string_view piece, bool first, Context &context) const;
  void scripts(size_t index, std::string_view piece, bool first, Context &context) const;
  void bert(size_t index, std::string_view piece, bool first, Context &context) const;
  void step(size_t index, std::string_view piece, bool first, Context &context) const;
  void metaspace(size_t index, std::string_view piece, bool first, Context &context) const;
  template <typename IsMatch>
  void splitCharacters(size_t index, std::string_view piece, bool first, Context &context,
                       PreTokenizerStep::Behavior behavior, IsMatch &&isMatch) const;
  void finish(std::string_view piece, Context &context) const;

  std::vector<Step> steps;
  size_t alphabetFrom = SIZE_MAX; // steps from here see the alphabet; finish() gives bytes again
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_PRETOKENIZER_H
