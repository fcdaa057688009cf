// The input is a tokenizer.model: read, serialised, loaded and used.
#include "lib/Frontend/HuggingFace/SentencePieceModel.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <cstdint>
#include <cstdlib>

using namespace llmc;
using namespace llmc::huggingface;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  std::string_view input(reinterpret_cast<const char *>(bytes), size);
  try {
    SentencePieceModel model = SentencePieceModel::parse(input, "tokenizer.model");
    for (bool legacy : {false, true}) {
      Tokenizer tokenizer = Tokenizer::load(readSentencePiece(model, legacy, "tokenizer.model").serialize());
      std::vector<int32_t> ids = tokenizer.encode("The  he's  123 \n é 中文 <s>\xff \u1100\u1161\u0301 ﬁ ▁x", legacy, true);
      if (!isValidUtf8(tokenizer.decode(ids, legacy)))
        std::abort();
    }
  } catch (const Error &) {
  }
  return 0;
}
