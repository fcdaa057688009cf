//===- TextOutput.h - generated tokens in, text to show out -----*- C++ -*-===//
//
// Tokens become whole characters (DecodeStream), and these stop at the
// request's stop strings (StopMatcher). Special tokens show nothing, but for those
// that are marks in the text.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_TEXTOUTPUT_H
#define LLMC_RUNTIME_ENGINE_TEXTOUTPUT_H

#include "runtime/engine/SamplingParams.h"
#include "runtime/engine/StopMatcher.h"
#include "runtime/tokenizer/DecodeStream.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace llmc {

class TextOutput {
public:
  /// `tokenizer` outlives it. `marks`: special tokens that show their spelling. Throws Error for a stop string that is empty.
  TextOutput(const Tokenizer &tokenizer, const SamplingParams &params, std::vector<int32_t> marks = {});

  /// The text that this token makes certain; may be empty. Text of the first params.minTokens tokens is not searched.
  std::string feed(int32_t id);
  /// Ends the text: what was held back, unless a stop string ended it.
  std::string flush();
  /// True once a stop string is complete: generation should end.
  bool stopped() const { return stops_.matched(); }
  std::string_view stopString() const { return stops_.match(); }

private:
  uint64_t unsearched_; // tokens
  DecodeStream characters_;
  StopMatcher stops_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_TEXTOUTPUT_H
