//===- StepGraphs.h - steps as CUDA graphs ----------------------*- C++ -*-===//
//
// A graph starts all kernels of a step by one call. Everything that differs between steps of one form (StepBuffers) lies in
// the step's buffers, so that a graph is made once; where the contexts have grown by a span, the nodes that read the cache are
// told its new places. It is made when a form has come a few times: prompts come in many lengths, most of them once, and so do the
// sizes of batches whose requests come and go; making one takes as long as it saves in four steps.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_STEPGRAPHS_H
#define LLMC_RUNTIME_DEVICE_CUDA_STEPGRAPHS_H

#include "runtime/device/cuda/Kernels.h"

#include <optional>
#include <span>
#include <utility>

namespace llmc::cuda {

class StepGraphs {
public:
  /// Forms that are remembered; the one used longest ago goes. A graph of 290 kernels takes 0.7 MiB of the card (H200, driver 580).
  static constexpr size_t kMost = 64;
  /// Steps of a form without a graph.
  static constexpr unsigned kPlain = 3;

  StepGraphs(const Gpu &gpu, const llmc_program_v1 &program, LaunchList &launches)
      : gpu_(gpu), program_(program), launches_(launches) {}

  /// An executable graph; empty where there was no memory for one.
  class Handle {
  public:
    explicit Handle(const Gpu &gpu) : gpu_(gpu) {}
    Handle(Handle &&other) noexcept
        : gpu_(other.gpu_), source_(std::exchange(other.source_, nullptr)), graph_(std::exchange(other.graph_, nullptr)),
          readers_(std::move(other.readers_)) {}
    ~Handle();
    explicit operator bool() const { return graph_; }
    void launch() const;

  private:
    friend class StepGraphs;
    const Gpu &gpu_;
    Graph source_ = nullptr; // whose nodes name those of graph_; only with readers
    GraphExec graph_ = nullptr;
    struct Reader { // a launch that reads what contexts() tells apart
      uint32_t launch;
      bool rest; // StepBuffers::rest
      GraphNode node;
    };
    std::vector<Reader> readers_;
  };

  /// Whether the driver can make them.
  bool available() const { return gpu_.driver().cuGraphAddDependencies; }
  /// Enqueues all launches of the step in `buffers`; false: there is no graph of it, the caller has to.
  bool launch(const StepBuffers &buffers);
  /// The given launches of the step, in this order.
  Handle make(const StepBuffers &buffers, std::span<const uint32_t> launches);

private:
  struct Entry {
    unsigned plain = 0;          // steps without a graph
    std::optional<Handle> graph; // nothing before there were kPlain of them
    StepBuffers::Form contexts;  // that it is for
    uint64_t used = 0;           // a clock of steps
  };

  LaunchPlan planOf(const StepBuffers &buffers, uint32_t launch, bool rest) const;
  void update(Entry &entry, const StepBuffers &buffers);
  void forgetOldest();

  const Gpu &gpu_;
  const llmc_program_v1 &program_;
  LaunchList &launches_;
  std::map<StepBuffers::Form, Entry> entries_;
  uint64_t clock_ = 0;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_STEPGRAPHS_H
