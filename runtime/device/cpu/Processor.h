//===- Processor.h - what differs between CPU architectures -----*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CPU_PROCESSOR_H
#define LLMC_RUNTIME_DEVICE_CPU_PROCESSOR_H

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#elif !defined(__aarch64__)
#error "expected x86-64 or AArch64"
#endif

namespace llmc {

/// Between two looks at a flag that another core sets.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  asm volatile("yield");
#endif
}

/// The register that says how this thread rounds and what it makes of denormals.
inline uint64_t floatMode() {
#if defined(__x86_64__)
  return _mm_getcsr();
#else
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#endif
}

inline void setFloatMode(uint64_t mode) {
#if defined(__x86_64__)
  _mm_setcsr(unsigned(mode));
#else
  asm volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

/// Denormal operands and results of f32 arithmetic are zeros. Conversions from f16 keep theirs on both architectures.
#if defined(__x86_64__)
constexpr uint64_t kFlushDenormals = 0x8040; // MXCSR: FTZ (bit 15) and DAZ (bit 6)
#else
constexpr uint64_t kFlushDenormals = 1u << 24; // FPCR: FZ
#endif

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CPU_PROCESSOR_H
