//===- Arena.h - places buffers by their life times -------------*- C++ -*-===//
#ifndef LLMC_LIB_TRANSFORMS_RT_ARENA_H
#define LLMC_LIB_TRANSFORMS_RT_ARENA_H

#include <cstdint>
#include <vector>

namespace llmc {

/// A buffer and the launches, first to last, during which it must keep its bytes.
struct ArenaBuffer {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
  uint64_t offset = 0; // set by planArena; a multiple of 64
};

/// Sets the offsets and returns the size of the arena, a multiple of 64.
uint64_t planArena(std::vector<ArenaBuffer> &buffers);

} // namespace llmc

#endif // LLMC_LIB_TRANSFORMS_RT_ARENA_H
