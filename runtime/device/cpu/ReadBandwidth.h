//===- ReadBandwidth.h - how fast this machine reads memory -----*- C++ -*-===//
//
// The bound of decoding one token: its weights over this. Threads read shares of a
// buffer of that size, each from one end to the other, with the loads and the prefetch
// distance of a product of one token and nothing to compute.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CPU_READBANDWIDTH_H
#define LLMC_RUNTIME_DEVICE_CPU_READBANDWIDTH_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace llmc {

/// Bytes a second, the median of `rounds` readings after one that does not count. Throws Error on a CPU without AVX2, or for
/// less than 64 bytes a thread.
double readBandwidth(std::span<const std::byte> buffer, unsigned threads, unsigned rounds = 9);

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CPU_READBANDWIDTH_H
