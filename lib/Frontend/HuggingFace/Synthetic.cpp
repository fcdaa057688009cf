//===- Synthetic.cpp - the tensors of a folder without weights ------------===//
//
// What random weights need is names, shapes and storage, and all but the storage follows from config.json.
//
//===----------------------------------------------------------------------===//
#include "../FactsChecks.h"
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

using namespace llmc;
using namespace llmc::huggingface;

/// Layers that no model has; each costs nine tensors and config.json only some bytes.
static constexpr int64_t maxLayers = 4096;
/// Beyond any memory, and sums of sizes cannot overflow.
static constexpr uint64_t maxBytes = uint64_t(1) << 50;

/// What rows of `cols` values are stored as: blocks of 256 need rows of them, and llama.cpp's quantizer takes these types
/// of 32 instead (llama-quant.cpp).
static DType storageOfRows(DType storage, int64_t cols) {
  if (cols % blockSize(storage) == 0)
    return storage;
  switch (storage) {
  case DType::Q4_K: return DType::Q5_0;
  case DType::Q5_K: return DType::Q5_1;
  case DType::Q6_K: return DType::Q8_0;
  case DType::Q2_K: case DType::Q3_K: case DType::IQ4_XS: return DType::IQ4_NL;
  default: return storage;
  }
}

/// e4m3 is for the matrices of the layers.
static DType storageOfTensor(DType storage, const std::string &name, const std::vector<int64_t> &shape) {
  if (storage == DType::E4M3 && (shape.size() == 1 || !name.starts_with("blk.")))
    return DType::BF16;
  if (shape.size() == 1)
    return blockSize(storage) == 1 ? storage : DType::F32;
  return storageOfRows(storage, shape.back());
}

void huggingface::makeTensors(const std::string &configPath, DType storage, ModelFacts &facts) {
  frontend::checkGeometry(facts, configPath);
  if (facts.layers > maxLayers)
    throw Error(configPath + ": num_hidden_layers: expected at most " + std::to_string(maxLayers) + " without weight files, got " +
                std::to_string(facts.layers));
  facts.files = {configPath};
  uint64_t offset = 0;
  frontend::forEachTensor(facts, [&](const std::string &name, const std::vector<int64_t> &shape) {
    DType type = storageOfTensor(storage, name, shape);
    if (shape.back() % blockSize(type))
      throw Error(configPath + ": tensor " + quote(fileName(name, facts.postNorms)) + ": expected rows of a multiple of " +
                  std::to_string(blockSize(type)) + " values for " + toString(type) + ", got " + std::to_string(shape.back()));
    uint64_t count = 1;
    for (int64_t extent : shape)
      count *= uint64_t(extent);
    uint64_t bytes = count > maxBytes ? maxBytes : storageBytes(type, count);
    if (bytes > maxBytes - offset)
      throw Error(configPath + ": tensor " + quote(fileName(name, facts.postNorms)) + ": expected weights of less than 2^50 bytes, got more");
    facts.tensors.push_back({name, fileName(name, facts.postNorms), type, shape, 0, offset, bytes});
    if (type == DType::E4M3)
      facts.tensors.back().scales.count = 1;
    offset += bytes;
  });
}
