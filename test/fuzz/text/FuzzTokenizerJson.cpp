// The input is a tokenizer.json (or, after '#', a merges.txt): read, serialised, loaded and used.
#include "lib/Frontend/HuggingFace/HuggingFace.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <cstdint>
#include <cstdlib>

using namespace llmc;
using namespace llmc::huggingface;

static void use(const TokenizerData &data) {
  Tokenizer tokenizer = Tokenizer::load(data.serialize());
  for (bool special : {false, true}) {
    std::vector<int32_t> ids =
        tokenizer.encode("The <|turn|> he's  123 \n é 中文 <s>\xff \u1100\u1161\u0301 ﬁ ▁x", special, true);
    if (!isValidUtf8(tokenizer.decode(ids, special)))
      std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  std::string_view input(reinterpret_cast<const char *>(bytes), size);
  try {
    if (input.starts_with('#')) {
      readMergesText(input, "merges.txt");
      return 0;
    }
    JsonDocument document = JsonDocument::parse(input, "tokenizer.json");
    ModelFacts facts;
    facts.vocab = 2048;
    facts.tokenizer = readTokenizer(document.root(), facts.vocab, facts.warnings);
    use(facts.tokenizer);
  } catch (const Error &) {
  }
  return 0;
}
