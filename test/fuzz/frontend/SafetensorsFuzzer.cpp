//===- SafetensorsFuzzer.cpp - the header of one safetensors file ---------===//
#include "lib/Frontend/HuggingFace/HuggingFace.h"

#include <cstddef>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  try {
    llmc::huggingface::SafetensorsHeader header =
        llmc::huggingface::readSafetensors(llmc::InputFile::fromMemory("fuzz.safetensors", bytes));
    for (const llmc::TensorFact &tensor : header.tensors)
      if (tensor.offset > size || tensor.bytes > size - tensor.offset)
        std::abort(); // a span outside the file got through
  } catch (const llmc::Error &) {
  }
  return 0;
}
