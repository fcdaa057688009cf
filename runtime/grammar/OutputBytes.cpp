//===- OutputBytes.cpp ----------------------------------------------------===//
#include "runtime/grammar/OutputBytes.h"
#include "runtime/tokenizer/Vocabulary.h"

#include <vector>

namespace llmc {

OutputBytes::OutputBytes(const Tokenizer &tokenizer) : tokenizer_(tokenizer) {
  if (tokenizer.decodesBytes())
    return;
  for (int32_t id = 0; id < int32_t(tokenizer.size()) && probe_ < 0; ++id) {
    const std::string_view spelling = tokenizer.tokenBytes(id);
    if (spelling.size() == 1 && spelling[0] >= 'a' && spelling[0] <= 'z' && !tokenizer.isSpecial(id))
      probe_ = id;
  }
  if (probe_ < 0)
    return;
  before_ = tokenizer.decode(std::vector<int32_t>{probe_}, false);
  behind_ = tokenizer.decode(std::vector<int32_t>{probe_, probe_}, false).substr(before_.size());
}

std::string OutputBytes::ofFirst(int32_t id) const {
  if (tokenizer_.decodesBytes())
    return std::string(tokenizer_.tokenBytes(id));
  std::string text = tokenizer_.decode(std::vector<int32_t>{id}, false);
  const std::string_view spelling = tokenizer_.tokenBytes(id);
  if (const int byte = byteOfSpelling(spelling); byte >= 0 && text != spelling)
    return std::string(1, char(byte));
  return text;
}

std::string OutputBytes::of(int32_t id) const {
  std::string first = ofFirst(id);
  if (tokenizer_.decodesBytes() || probe_ < 0 || byteOfSpelling(tokenizer_.tokenBytes(id)) >= 0)
    return first;
  const std::string text = tokenizer_.decode(std::vector<int32_t>{probe_, id, probe_}, false);
  if (text.size() < before_.size() + behind_.size() || !text.starts_with(before_) || !text.ends_with(behind_))
    return {};
  return text.substr(before_.size(), text.size() - before_.size() - behind_.size());
}

} // namespace llmc
