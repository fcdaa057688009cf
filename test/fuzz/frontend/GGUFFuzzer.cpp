//===- GGUFFuzzer.cpp - a whole GGUF file from memory ---------------------===//
#include "lib/Frontend/GGUF/GGUF.h"
#include "llmc/Frontend/Inspect.h"

#include <cstddef>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  try {
    llmc::ModelFacts facts = llmc::gguf::loadFile(llmc::InputFile::fromMemory("fuzz.gguf", bytes));
    for (const llmc::TensorFact &tensor : facts.tensors)
      if (tensor.offset > size || tensor.bytes > size - tensor.offset)
        std::abort(); // a span outside the file got through
    llmc::inspectText(facts);
    llmc::inspectJson(facts);
    facts.rope.inverseFrequencies();
    facts.tokenizer.serialize();
  } catch (const llmc::Error &) {
    // The only way to refuse a file.
  }
  return 0;
}
