//===- Kernels.h - the launch list of a program, ready to go ----*- C++ -*-===//
//
// At load every kernel is given to the driver, every tensor map is encoded and every parameter array is built; a
// step only writes the row count and the pointers into its own buffers.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_KERNELS_H
#define LLMC_RUNTIME_DEVICE_CUDA_KERNELS_H

#include "llmc/abi.h"
#include "runtime/device/StepBuffers.h"
#include "runtime/device/cuda/Gpu.h"

#include <deque>
#include <map>
#include <vector>

namespace llmc::cuda {

/// "op 12 (blk.3.attn_output, layer 3, kernel linear_m64)"
std::string describe(const llmc_launch_v1 &launch, const llmc_variant_v1 &variant);

/// The loaded code of a program's kernels.
class KernelSet {
public:
  /// `ptx`: let the driver compile the PTX even where there is a cubin. Throws Error naming the kernel.
  KernelSet(const Gpu &gpu, const llmc_program_v1 &program, bool ptx);
  ~KernelSet();
  KernelSet(const KernelSet &) = delete;
  KernelSet &operator=(const KernelSet &) = delete;

  Function function(const llmc_variant_v1 &variant) const { return functions_.at(variant.kernel).function; }
  /// Units that the kernel's largest grid has at a time.
  uint64_t most(const llmc_variant_v1 &variant) const { return functions_.at(variant.kernel).most; }

private:
  struct Loaded {
    Function function;
    uint64_t most;
  };
  void load(const llmc_variant_v1 &variant, bool ptx);
  void unload();
  Module loadImage(const llmc_variant_v1 &variant, bool ptx) const;
  uint64_t atATime(Function function, const llmc_cuda_kernel_v1 &kernel, const std::string &name) const;

  const Gpu &gpu_;
  std::vector<Module> modules_;
  std::map<const void *, Loaded> functions_; // by llmc_cuda_kernel_v1
};

/// Where the arguments of a program point to.
struct ProgramBases {
  Pointer arena = 0, weights = 0, kv = 0, step = 0;
};

class LaunchList {
public:
  LaunchList(const Gpu &gpu, const llmc_program_v1 &program, const KernelSet &kernels, const ProgramBases &bases);

  /// Enqueues a launch over the step in `buffers`, whose copy lies at bases.step; false if it has nothing to do.
  /// `early`: the kernel may come onto the card while the one before it ends (CUDA C++ Programming Guide, "Programmatic
  /// Dependent Launch"; kernels wait for it by themselves), if its CTAs cannot crowd on the multiprocessors that are free first.
  bool launch(uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan, bool early);
  /// The same launch as a node behind `previous` (null: the first), early where it may be; null if it has nothing to do.
  GraphNode add(Graph graph, GraphNode previous, uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan);
  /// Makes the launch's node in an executable graph that of the step in `buffers`, which has the same form (StepBuffers).
  void update(GraphExec graph, GraphNode node, uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan);

private:
  struct Form { // a variant
    Function function;
    unsigned threads, sharedBytes, together; // of a CTA; CTAs of a unit
    uint64_t most; // units at a time
    std::vector<TensorMap> maps;
    std::vector<void *> parameters; // into args, rows, units and maps
  };
  struct Launch {
    std::vector<Pointer> args;
    std::vector<uint32_t> stepArgs; // indices of those that change
    int64_t rows = 0, units = 0;
    std::vector<Form> forms;
  };

  struct Call { // a form with its parameters in place
    Form &form;
    unsigned grid;
    bool spreads; // at most one CTA a multiprocessor, wherever there is room first
    KernelNode node() const;
  };
  Call prepare(uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan);
  void bind(Launch &launch, const llmc_launch_v1 &source, const ProgramBases &bases) const;
  void encode(TensorMap &to, const llmc_tensor_map_v1 &from, Pointer address) const;

  const Gpu &gpu_;
  const llmc_program_v1 &program_;
  Pointer step_;
  std::deque<Launch> launches_; // do not move: parameters point into them
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_KERNELS_H
