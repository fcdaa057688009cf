//===- StepGraphs.h - steps as CUDA graphs ----------------------*- C++ -*-===//
//
// A graph starts all kernels of a step by one call. Everything that differs between steps of one form (StepBuffers) lies in
// the step's buffers, so that a graph is made once and never changed. It is made when a form comes for the second time:
// prompts come in many lengths, most of them once.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_STEPGRAPHS_H
#define LLMC_RUNTIME_DEVICE_CUDA_STEPGRAPHS_H

#include "runtime/device/cuda/Kernels.h"

namespace llmc::cuda {

class StepGraphs {
public:
  /// Forms that are remembered; the one used longest ago goes.
  static constexpr size_t kMost = 128;

  StepGraphs(const Gpu &gpu, const llmc_program_v1 &program, LaunchList &launches)
      : gpu_(gpu), program_(program), launches_(launches) {}
  ~StepGraphs();
  StepGraphs(const StepGraphs &) = delete;
  StepGraphs &operator=(const StepGraphs &) = delete;

  /// Enqueues all launches of the step in `buffers`; false: there is no graph of it, the caller has to.
  bool launch(const StepBuffers &buffers);

private:
  struct Entry {
    GraphExec graph = nullptr;
    bool refused = false; // no memory for a graph
    uint64_t used = 0;    // a clock of steps
  };

  GraphExec make(const StepBuffers &buffers);
  void forgetOldest();

  const Gpu &gpu_;
  const llmc_program_v1 &program_;
  LaunchList &launches_;
  std::map<StepBuffers::Form, Entry> entries_;
  uint64_t clock_ = 0;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_STEPGRAPHS_H
