//===- RandomTensor.h - a tensor's values from its name ---------*- C++ -*-===//
//
// Counter-based: the n-th word of row i is mix(rowKey(i) + n * step), the generator of Steele, Lea, Flood, "Fast
// splittable pseudorandom number generators" (OOPSLA 2014) with a stream per row, so that any row of any tensor
// can be made alone. Four values, or eight codes and more, come from one word.
//
// The spread keeps activations finite in a deep model: a matrix has standard deviation 1 / sqrt(columns), the token embedding
// 4 / sqrt(columns); norm weights lie within 0.1 of 1, biases within 0.02 of 0. The embedding is small beside what the layers
// add, so that with a tied head the likeliest token is not simply the last one, and logits have deviation 4.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_TARGET_PACKING_RANDOMTENSOR_H
#define LLMC_LIB_TARGET_PACKING_RANDOMTENSOR_H

#include "llmc/Frontend/ModelFacts.h"

#include <cstdint>
#include <string>

namespace llmc {

class RandomTensor {
public:
  /// `cols`: of a matrix, a multiple of the storage's block; ignored for a vector.
  RandomTensor(uint64_t seed, const std::string &name, DType storage, uint64_t cols, bool vector);

  /// Row i of a matrix in the storage's bytes.
  void row(uint64_t i, uint8_t *to) const;
  /// Element i of a vector in the storage's bytes.
  void element(uint64_t i, uint8_t *to) const;

private:
  void plain(uint64_t rowKey, uint64_t first, uint64_t count, uint8_t *to) const;
  void blocks(uint64_t rowKey, uint8_t *to) const;
  void superBlocks(uint64_t rowKey, uint8_t *to) const;

  DType storage;
  uint64_t cols, key;
  float center = 0; // value = center + (u + 1/2) * spread, u uniform in [-2^15, 2^15)
  float spread = 0;
  float scale = 0;  // of a block whose weights have standard deviation 1 / sqrt(cols)
  float codeMean = 0;
};

} // namespace llmc

#endif // LLMC_LIB_TARGET_PACKING_RANDOMTENSOR_H
