//===- Normalizer.h - text to the form that the vocabulary has --*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_NORMALIZER_H
#define LLMC_RUNTIME_TOKENIZER_NORMALIZER_H

#include "runtime/tokenizer/Charsmap.h"
#include "runtime/tokenizer/PrefixTable.h"
#include "runtime/tokenizer/SplitPattern.h"
#include "runtime/tokenizer/TokenizerData.h"

#include <memory>

namespace llmc {

/// Normalisation form C of valid UTF-8 (UAX #15), in n log n even for long runs
/// of combining marks.
std::string normalizeNFC(std::string_view text);

/// The steps of TokenizerData::normalizers. Immutable; several threads may call it.
class Normalizer {
public:
  Normalizer() = default;
  /// Throws Error for a bad pattern or charsmap. `whole` are user-defined pieces, which
  /// SentencePiece does not normalise; they must outlive it.
  Normalizer(const std::vector<NormalizerStep> &steps, const PrefixTable &whole);

  bool empty() const { return steps.empty(); }
  /// `text` must be valid UTF-8; so is the result. Throws Error when a pattern exceeds its limits.
  std::string apply(std::string_view text) const;

private:
  struct Step {
    NormalizerStep data;
    std::shared_ptr<const Charsmap> charsmap;
    std::shared_ptr<const SplitPattern> pattern;
  };
  std::string apply(const Step &step, std::string text) const;

  std::vector<Step> steps;
  PrefixTable whole;
};

/// Every occurrence of `pattern` from left to right by `content`; an empty one has none.
std::string replaceAll(std::string_view text, std::string_view pattern, std::string_view content);

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_NORMALIZER_H
