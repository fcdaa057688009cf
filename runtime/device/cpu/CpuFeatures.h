//===- CpuFeatures.h - which ISA variants this CPU can run ------*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CPU_CPUFEATURES_H
#define LLMC_RUNTIME_DEVICE_CPU_CPUFEATURES_H

#include <set>
#include <string>
#include <vector>

namespace llmc {

/// Names of the features that the CPU has and the operating system saves
/// (cpuid and xgetbv; Intel SDM vol. 2A CPUID, vol. 1 sec. 13.3; on AArch64 Linux's HWCAP), of those that some ISA needs. Tile registers
/// are asked for.
std::set<std::string> detectCpuFeatures();

/// ISA names from the best to the least: "amxbf16", "avx512bf16", "avx512vnni", "avx2"; "neon_dotprod". Those of every architecture.
const std::vector<std::string> &isaNames();

/// The one that packages for this architecture are compiled for at least.
const std::string &leastIsa();

/// Features that `isa` needs and `features` lacks, comma separated; empty: it runs.
/// Throws Error for an unknown ISA name.
std::string missingFeatures(const std::string &isa, const std::set<std::string> &features);

/// The best ISA of `available` that runs with `features`, or `forced` if not empty.
/// Throws Error naming the missing feature.
std::string chooseIsa(const std::vector<std::string> &available, const std::string &forced,
                      const std::set<std::string> &features);

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CPU_CPUFEATURES_H
