//===- SplitGGUFFuzzer.cpp - a model in several GGUF files, from memory ---===//
//
// The input is a sequence of parts, each a u32 length and that many bytes (what is left, if it claims more).
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/GGUF/GGUF.h"
#include "llmc/Frontend/Inspect.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  std::vector<std::string_view> parts;
  while (rest.size() >= 4 && parts.size() < 4) {
    uint32_t length;
    std::memcpy(&length, rest.data(), 4);
    parts.push_back(rest.substr(4, length));
    rest.remove_prefix(4 + parts.back().size());
  }
  if (parts.empty())
    return 0;
  auto nameOf = [&](size_t part) {
    char name[64];
    std::snprintf(name, sizeof name, "fuzz-%05zu-of-%05zu.gguf", part + 1, parts.size());
    return std::string(name);
  };
  gguf::OpenFile open = [&](const std::string &path) {
    for (size_t i = 0; i < parts.size(); ++i)
      if (path == nameOf(i))
        return InputFile::fromMemory(path, parts[i]);
    throw Error(path + ": no such file");
  };
  try {
    ModelFacts facts = gguf::loadFile(open(nameOf(size % parts.size())), open);
    inspectText(facts);
    for (const TensorFact &tensor : facts.tensors) {
      size_t end = facts.files.size() == 1 ? parts[size % parts.size()].size() : parts.at(tensor.file).size();
      if (tensor.offset > end || tensor.bytes > end - tensor.offset)
        std::abort(); // a span outside its file got through
    }
  } catch (const Error &) {
  }
  return 0;
}
