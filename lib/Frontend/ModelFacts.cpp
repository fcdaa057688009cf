//===- ModelFacts.cpp - types, look-up, dispatch --------------------------===//
#include "llmc/Frontend/ModelFacts.h"
#include "GGUF/GGUF.h"
#include "HuggingFace/HuggingFace.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"

#include <cstring>
#include <filesystem>

using namespace llmc;

const char *llmc::toString(DType type) {
  switch (type) {
  case DType::F32:
    return "F32";
  case DType::F16:
    return "F16";
  case DType::BF16:
    return "BF16";
  case DType::Q4_0:
    return "Q4_0";
  case DType::Q4_1:
    return "Q4_1";
  case DType::Q8_0:
    return "Q8_0";
  }
  return "?";
}

unsigned llmc::blockSize(DType type) { return type <= DType::BF16 ? 1 : 32; }

uint64_t llmc::storageBytes(DType type, uint64_t count) {
  switch (type) {
  case DType::F32:
    return count * 4;
  case DType::F16:
  case DType::BF16:
    return count * 2;
  case DType::Q4_0:
    return count / 32 * 18;
  case DType::Q4_1:
    return count / 32 * 20;
  case DType::Q8_0:
    return count / 32 * 34;
  }
  return 0;
}

const TensorFact *ModelFacts::find(const std::string &canonicalName) const {
  for (const TensorFact &tensor : tensors)
    if (tensor.name == canonicalName)
      return &tensor;
  return nullptr;
}

std::string llmc::supportedArchitectures() { return "llama, mistral, qwen2"; }

ModelFacts llmc::loadModelFacts(const std::string &path) {
  std::error_code failure;
  std::filesystem::file_status status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found)
    throw Error(path + ": expected a GGUF file or a model folder, got no such file");
  if (failure)
    throw Error(path + ": cannot open: " + failure.message());
  if (std::filesystem::is_directory(status))
    return huggingface::loadFolder(path);

  InputFile file = InputFile::open(path);
  char magic[4] = {};
  file.read(0, magic, std::min<uint64_t>(file.size(), 4));
  if (std::memcmp(magic, "GGUF", 4) == 0)
    return gguf::loadFile(file);
  std::string name = std::filesystem::path(path).filename().string();
  if (name.ends_with(".safetensors") || name == "config.json")
    throw Error(path + ": expected a GGUF file or a model folder, got one file of a folder; pass the folder");
  throw Error(path + ": expected a GGUF file (magic \"GGUF\") or a folder with config.json, got neither");
}
