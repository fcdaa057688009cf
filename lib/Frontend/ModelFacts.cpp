//===- ModelFacts.cpp - look-up and dispatch ------------------------------===//
#include "llmc/Frontend/ModelFacts.h"
#include "GGUF/GGUF.h"
#include "HuggingFace/HuggingFace.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"

#include <cstring>
#include <filesystem>

using namespace llmc;

const TensorFact *ModelFacts::find(const std::string &canonicalName) const {
  for (const TensorFact &tensor : tensors)
    if (tensor.name == canonicalName)
      return &tensor;
  return nullptr;
}

std::string llmc::supportedArchitectures() { return "llama, mistral, qwen2, gemma2, granite_swa"; }

ModelFacts llmc::loadModelFacts(const std::string &path, const LoadOptions &options) {
  std::error_code failure;
  std::filesystem::file_status status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found)
    throw Error(path + ": expected a GGUF file or a model folder, got no such file");
  if (failure)
    throw Error(path + ": cannot open: " + failure.message());
  if (std::filesystem::is_directory(status))
    return huggingface::loadFolder(path, options);

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
