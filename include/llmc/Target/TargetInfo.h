//===- TargetInfo.h - what is compiled for ----------------------*- C++ -*-===//
#ifndef LLMC_TARGET_TARGETINFO_H
#define LLMC_TARGET_TARGETINFO_H

#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// An instruction set of a CPU package.
struct CPUTarget {
  std::string isa;      // "avx2", "avx512vnni"; names a section "module.<isa>"
  std::string cpu;      // LLVM's CPU name
  std::string features; // LLVM's feature string
  unsigned vectorBits;  // of a register
};

/// The instruction sets that llmc has kernels for, weakest first.
const std::vector<CPUTarget> &cpuTargets();

/// By name; throws Error listing the known ones. "native" is the strongest that this machine has;
/// throws Error when it has none.
CPUTarget lookupCPUTarget(std::string_view name);

/// "avx2, avx512vnni"
std::string cpuTargetNames();

} // namespace llmc

#endif // LLMC_TARGET_TARGETINFO_H
