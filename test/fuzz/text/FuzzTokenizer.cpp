// The input is serialised data, or (first byte odd) text for a fixed tokenizer.
#include "llmc/Support/Error.h"
#include "runtime/tokenizer/BytePairs.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/Utf8.h"

#include <cstdint>
#include <cstdlib>

using namespace llmc;

static TokenizerData sample() {
  TokenizerData data;
  for (int b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    data.tokens.push_back(toAlphabet({&c, 1}));
  }
  data.merges = {{"h", "e"}, {"t", "he"}, {"Ġ", "the"}};
  for (const auto &[left, right] : data.merges)
    data.tokens.push_back(left + right);
  data.added = {{259, "<|x|>", true, true, false, false, false}, {260, "<y>", false, false, true, true, true}};
  data.tokens.insert(data.tokens.end(), {"<|x|>", "<y>"});
  data.splitPatterns = splitPatternsForGGUF("llama-bpe");
  return data;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (!size)
    return 0;
  std::string_view input(reinterpret_cast<const char *>(bytes) + 1, size - 1);
  if (bytes[0] & 1) {
    static const Tokenizer tokenizer = Tokenizer::create(sample());
    std::string text = tokenizer.decode(tokenizer.encode(input, false, false), false);
    // Only white space that a stripping token swallowed may be missing.
    if (text != utf8::sanitize(input) && input.find("<y>") == std::string_view::npos)
      std::abort();
    tokenizer.encode(input, true, true);
    return 0;
  }
  try {
    TokenizerData::deserialize(input);
    Tokenizer tokenizer = Tokenizer::load(input);
    tokenizer.decode(tokenizer.encode("the <|x|> he's 123  \n é", true, true), false);
  } catch (const Error &) {
  }
  return 0;
}
