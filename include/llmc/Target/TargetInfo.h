//===- TargetInfo.h - what is compiled for ----------------------*- C++ -*-===//
#ifndef LLMC_TARGET_TARGETINFO_H
#define LLMC_TARGET_TARGETINFO_H

#include <string>
#include <string_view>
#include <vector>

namespace llmc {

enum class Architecture { X86_64, AArch64 };

/// That this executable runs on.
Architecture hostArchitecture();

/// "x86-64"
const char *architectureName(Architecture architecture);

/// An instruction set of a CPU package.
struct CPUTarget {
  std::string isa;      // "avx2", "avx512vnni"; "neon_dotprod"; names a section "module.<isa>"
  std::string cpu;      // LLVM's CPU name
  std::string features; // LLVM's feature string
  unsigned vectorBits;  // of a register
  Architecture architecture = Architecture::X86_64;
};

/// The instruction sets that llmc has kernels for, those of an architecture weakest first.
const std::vector<CPUTarget> &cpuTargets();

/// amxbf16 without tile registers: what they do is done by AVX-512. For tests of amxbf16's kernels where no AMX is.
const CPUTarget &emulatedAmx();

/// Whether this machine has it.
bool runsHere(const CPUTarget &target);

/// By name; throws Error listing the known ones. "native" is the strongest that this machine has;
/// throws Error when it has none.
CPUTarget lookupCPUTarget(std::string_view name);

/// "avx2, avx512vnni, neon_dotprod"
std::string cpuTargetNames();

/// "avx2, avx512vnni"
std::string cpuTargetNames(Architecture architecture);

/// A GPU that kernels are compiled for: --target=cuda:CHIP.
struct GPUTarget {
  std::string name;     // "cuda:sm_90a"
  std::string isa;      // "sm_90a"; LLVM's and ptxas's name of the chip; names a section "module.<isa>"
  std::string features; // LLVM's feature string; fixes the PTX version
};

const std::vector<GPUTarget> &gpuTargets();

/// By `isa`; null: none of them (a CPU's).
const GPUTarget *findGPUTarget(std::string_view isa);

/// What --target names: "cpu" (null) or a GPU. Throws Error listing the known ones.
const GPUTarget *lookupTarget(std::string_view name);

/// "cpu, cuda:sm_90a"
std::string targetNames();

} // namespace llmc

#endif // LLMC_TARGET_TARGETINFO_H
