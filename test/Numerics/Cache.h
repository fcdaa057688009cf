//===- Cache.h - a paged cache in the layout of abi.h -----------*- C++ -*-===//
#ifndef LLMC_TEST_NUMERICS_CACHE_H
#define LLMC_TEST_NUMERICS_CACHE_H

#include "Buffers.h"

namespace llmc::test {

/// A pool of blocks of one KV group (llmc_kv_group_v1), K and V of equal dimension, elements float or bf16 (uint16_t).
template <typename T> struct Cache {
  int64_t blocks, layers, heads, dim;
  Array<T> memory;

  /// Every byte is `fill`: 0xff makes NaNs.
  Cache(int64_t blocks, int64_t layers, int64_t heads, int64_t dim, int fill = 0xcc)
      : blocks(blocks), layers(layers), heads(heads), dim(dim), memory(std::vector<T>(blocks * layers * heads * 32 * dim)) {
    std::memset(memory.data(), fill, memory.size() * sizeof(T));
  }
  T *layer(int64_t l) { return memory.data() + l * heads * 32 * dim; }
  T &key(int64_t l, int64_t slot, int64_t head, int64_t d) {
    int64_t token = slot % 16;
    return at(l, slot, head, sizeof(T) == 2 ? d / 2 * 32 + token * 2 + d % 2 : d * 16 + token);
  }
  T &value(int64_t l, int64_t slot, int64_t head, int64_t d) {
    int64_t token = slot % 16;
    return at(l, slot, head, 16 * dim + (sizeof(T) == 2 ? token / 2 * dim * 2 + d * 2 + token % 2 : token * dim + d));
  }
  void write(int64_t l, int64_t slot, int64_t head, const float *k, const float *v) {
    for (int64_t d = 0; d < dim; ++d) {
      key(l, slot, head, d) = element(k[d]);
      value(l, slot, head, d) = element(v[d]);
    }
  }
  static T element(float x) {
    if constexpr (sizeof(T) == 2)
      return f32ToBf16(x);
    else
      return x;
  }

private:
  T &at(int64_t l, int64_t slot, int64_t head, int64_t i) {
    return memory[(((slot / 16) * layers + l) * heads + head) * 32 * dim + i];
  }
};

} // namespace llmc::test

#endif // LLMC_TEST_NUMERICS_CACHE_H
