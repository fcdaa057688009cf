//===- TargetInfo.cpp - the table of targets ------------------------------===//
#include "llmc/Target/TargetInfo.h"

#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"
#include "runtime/device/cpu/CpuFeatures.h"

using namespace llmc;

Architecture llmc::hostArchitecture() {
#if defined(__aarch64__)
  return Architecture::AArch64;
#else
  return Architecture::X86_64;
#endif
}

const char *llmc::architectureName(Architecture architecture) {
  return architecture == Architecture::AArch64 ? "AArch64" : "x86-64";
}

const std::vector<CPUTarget> &llmc::cpuTargets() {
  // x86-64-v3 is avx2, fma, f16c, bmi2; v4 adds avx512{f,bw,cd,dq,vl} (x86-64 psABI, table 3.1).
  // fast-dpwssd: no shorter chains of vpdpwssd from vpmaddwd and vpaddd, which are twice the operations.
  static const std::vector<CPUTarget> targets = {
      {"avx2", "x86-64-v3", "", 256},
      {"avx512vnni", "x86-64-v4", "+avx512vnni,+fast-dpwssd,-prefer-256-bit", 512},
      {"avx512bf16", "x86-64-v4", "+avx512vnni,+avx512bf16,+fast-dpwssd,-prefer-256-bit", 512},
      {"amxbf16", "x86-64-v4", "+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16,+fast-dpwssd,-prefer-256-bit", 512},
      {"neon_dotprod", "generic", "+v8.2a,+dotprod", 128, Architecture::AArch64},
  };
  return targets;
}

const CPUTarget &llmc::emulatedAmx() {
  static const CPUTarget target = [] {
    CPUTarget plain = lookupCPUTarget("avx512bf16");
    plain.isa = "amxbf16-emulated";
    return plain;
  }();
  return target;
}

std::string llmc::cpuTargetNames() {
  std::vector<std::string> names;
  for (const CPUTarget &target : cpuTargets())
    names.push_back(target.isa);
  return join(names);
}

std::string llmc::cpuTargetNames(Architecture architecture) {
  std::vector<std::string> names;
  for (const CPUTarget &target : cpuTargets())
    if (target.architecture == architecture)
      names.push_back(target.isa);
  return join(names);
}

bool llmc::runsHere(const CPUTarget &target) {
  return target.architecture == hostArchitecture() && missingFeatures(target.isa, detectCpuFeatures()).empty();
}

CPUTarget llmc::lookupCPUTarget(std::string_view name) {
  const std::vector<CPUTarget> &targets = cpuTargets();
  if (name == "native") {
    for (auto target = targets.rbegin(); target != targets.rend(); ++target)
      if (runsHere(*target))
        return *target;
    throw Error("--target-cpu=native: expected a CPU with one of " + cpuTargetNames(hostArchitecture()) + ", got one without");
  }
  for (const CPUTarget &target : targets)
    if (target.isa == name)
      return target;
  if (name == emulatedAmx().isa)
    return emulatedAmx();
  throw Error("--target-cpu: expected native or one of " + cpuTargetNames() + ", got " + quote(name));
}

const std::vector<GPUTarget> &llmc::gpuTargets() {
  // The PTX version is the lowest with every instruction that kernels use: drivers refuse a newer one than their own.
  static const std::vector<GPUTarget> targets = {{"cuda:sm_90a", "sm_90a", "+ptx86"}};
  return targets;
}

const GPUTarget *llmc::findGPUTarget(std::string_view isa) {
  for (const GPUTarget &target : gpuTargets())
    if (target.isa == isa)
      return &target;
  return nullptr;
}

std::string llmc::targetNames() {
  std::vector<std::string> names = {"cpu"};
  for (const GPUTarget &target : gpuTargets())
    names.push_back(target.name);
  return join(names);
}

const GPUTarget *llmc::lookupTarget(std::string_view name) {
  if (name == "cpu")
    return nullptr;
  for (const GPUTarget &target : gpuTargets())
    if (target.name == name)
      return &target;
  throw Error("--target: expected " + targetNames() + ", got " + quote(name));
}
