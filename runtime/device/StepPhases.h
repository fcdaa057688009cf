//===- StepPhases.h - a step as two: prompts, generated tokens --*- C++ -*-===//
//
// Where prompts have a program of their own (llmc_module_v1.prompt) the two phases of a step run one after the other, prompts first:
// their keys and values are there when a generated token of the same step reads blocks that it shares with them. The other way
// round there is nothing to read: what was generated is never shared (Scheduler.h).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_STEPPHASES_H
#define LLMC_RUNTIME_DEVICE_STEPPHASES_H

#include "llmc/abi.h"

#include <algorithm>
#include <vector>

namespace llmc {

/// Whether prompts have a program of their own (--numerics=phase).
inline bool hasPhases(const llmc_module_v1 &module) { return module.prompt.num_launches > 0; }

/// The program that takes a step's prompts.
inline const llmc_program_v1 &promptProgram(const llmc_module_v1 &module) {
  return hasPhases(module) ? module.prompt : module.program;
}

/// The largest of the programs that serve.
inline uint64_t arenaBytes(const llmc_module_v1 &module) {
  return std::max(module.program.arena_bytes, promptProgram(module).arena_bytes);
}

class StepPhases {
public:
  explicit StepPhases(const llmc_module_v1 &module);

  /// A checked step. What the parts point to stays until the next call; their outputs are those of the step but for what is
  /// sampled, whose rows are a matter of the whole step.
  void split(const llmc_step_v1 &step);

  llmc_step_v1 prompts{}, generated{};

private:
  uint64_t vocab_, hidden_;
  std::vector<int32_t> starts_, rows_;
  llmc_kv_view_v1 view_{};
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_STEPPHASES_H
