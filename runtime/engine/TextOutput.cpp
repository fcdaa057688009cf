//===- TextOutput.cpp -----------------------------------------------------===//
#include "runtime/engine/TextOutput.h"

namespace llmc {

TextOutput::TextOutput(const Tokenizer &tokenizer, const SamplingParams &params, std::vector<int32_t> marks)
    : unsearched_(params.minTokens), characters_(tokenizer, true, std::move(marks)), stops_(params.stop) {}

std::string TextOutput::feed(int32_t id) {
  std::string text = characters_.feed(id);
  if (unsearched_) {
    --unsearched_;
    return text;
  }
  return stops_.feed(text);
}

std::string TextOutput::flush() {
  std::string rest = characters_.flush();
  if (unsearched_)
    return rest;
  std::string certain = stops_.feed(rest);
  return certain += stops_.flush();
}

} // namespace llmc
