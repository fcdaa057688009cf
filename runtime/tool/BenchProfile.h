//===- BenchProfile.h - bench --profile -------------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_BENCHPROFILE_H
#define LLMC_RUNTIME_TOOL_BENCHPROFILE_H

#include "runtime/engine/SamplingParams.h"
#include "runtime/tool/Model.h"

#include <string>
#include <vector>

namespace llmc {

struct BenchFlags {
  LoadFlags load;
  uint64_t prompt = 512, generate = 128, repeat = 5;
  std::vector<uint64_t> batches; // empty: one sequence through the engine
  uint64_t chunk = 0;            // prompt tokens a step at most; 0: as many as the package takes
  SamplingParams sampling;       // how tokens are drawn
  std::string profile;           // file; empty: none
  bool bursts = false;           // of the profile: LaunchTiming::Bursts
  bool roofline = false;         // how fast the weights are read, instead
};

double median(std::vector<double> values);
/// Any ids do: the work does not depend on them.
std::vector<int32_t> someIds(uint64_t count, uint32_t vocab);

/// "smollm2.profile.json" of an executable "./smollm2"
std::string profileFile(const std::string &executable);

/// Times the launches of a prompt's last step and of one decoding step behind it, for each batch size; prints a table of
/// kernels and writes flags.profile. Returns the exit code.
int benchProfile(Model &model, Device &device, const BenchFlags &flags);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_BENCHPROFILE_H
