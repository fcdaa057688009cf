//===- GGUFFuzzer.cpp - a whole GGUF file from memory ---------------------===//
#include "lib/Frontend/GGUF/GGUF.h"
#include "llmc/Frontend/Inspect.h"

#include <cstddef>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  try {
    llmc::ModelFacts facts = llmc::gguf::loadFile(llmc::InputFile::fromMemory("fuzz.gguf", bytes));
    llmc::inspectText(facts);
    facts.rope.inverseFrequencies();
  } catch (const llmc::Error &) {
    // The only way to refuse a file.
  }
  return 0;
}
