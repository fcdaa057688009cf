//===- KVBlocks.h - how many blocks tokens take -----------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_KVBLOCKS_H
#define LLMC_RUNTIME_DEVICE_KVBLOCKS_H

#include "llmc/abi.h"

#include <cstdint>

namespace llmc {

/// Blocks of the KV cache that so many tokens take.
constexpr uint64_t blocksOf(uint64_t tokens) { return (tokens + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK; }

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_KVBLOCKS_H
