//===- Reference.h - what a launch has to compute ---------------*- C++ -*-===//
//
// Every op once more, in double precision and from its definition in dialects/LM/LMOps.td and abi.h alone: no tiles, no
// online softmax, no layouts of a kernel. Inputs are those that the kernel read, so that errors do not add up.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_REFERENCE_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_REFERENCE_H

#include "runtime/cts/kernel_check/Activation.h"
#include "runtime/cts/kernel_check/KVMirror.h"
#include "runtime/cts/kernel_check/KernelName.h"
#include "runtime/cts/kernel_check/RandomSteps.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace llmc::kernel_check {

/// Weights unpacked to f32, [rows, cols], kept while they fit.
class Weights {
public:
  explicit Weights(const Device &device) : device_(device) {}
  /// The weight at an offset. Throws Error where there is none.
  const llmc_weight_v1 &at(uint64_t offset) const;
  std::shared_ptr<const std::vector<float>> values(const llmc_weight_v1 &weight);

private:
  static constexpr uint64_t kMost = 8ull << 30; // bytes kept

  const Device &device_;
  uint64_t kept_ = 0;
  std::map<uint64_t, std::shared_ptr<const std::vector<float>>> values_;
};

/// One launch and what it reads.
struct Launch {
  KernelName kernel;
  const llmc_launch_v1 &launch;
  const RandomStep &step;
  uint32_t rows;                              // of its first result
  std::vector<Activation> inputs;             // in the order of the arguments; codes with their scales
  std::vector<const llmc_weight_v1 *> weightList; // in the order of the arguments
  std::vector<llmc_value_v1> results;
  bool gpu;
  Weights &weights;
  const KVMirror &cache;
  uint64_t layerOffset; // of the layer in a KV block

  /// Throws Error naming the kernel where the launch has fewer.
  const Activation &input(size_t i) const;
  const llmc_weight_v1 &weight(size_t i) const;
  const llmc_value_v1 &result() const;
};

/// A column of a key or a value that the launch has to write.
struct CacheElement {
  int32_t block;
  uint64_t offset; // bytes, in the block
  double value;
  double slack;    // |error| allowed beside the rounding to the cache's element
};

/// What a launch has to have done.
struct Expected {
  Matrix result; // [rows, cols] before rounding to the result's format; empty where the launch has none
  std::vector<CacheElement> cache;
};

/// Throws Error where the launch has not the operands of its op.
Expected expectedOf(const Launch &launch);

// By op family.
Matrix embedding(const Launch &launch);
Matrix rmsNorm(const Launch &launch);
Matrix linear(const Launch &launch);
Matrix gatedLinear(const Launch &launch);
Matrix ropeTable(const Launch &launch);
Matrix rope(const Launch &launch);
Matrix attention(const Launch &launch);
Matrix add(const Launch &launch);
Matrix scale(const Launch &launch);
Matrix softCap(const Launch &launch);
Matrix gatedActivation(const Launch &launch);
/// Of a gate.
double activate(const KernelName &kernel, double x);
Matrix gatherRows(const Launch &launch);
Matrix argmax(const Launch &launch);
Expected kvAppend(const Launch &launch);
Expected ropeAppend(const Launch &launch);

/// To bf16 and back.
double roundBF16(double x);
/// body(begin, end) on shares of [0, count), on all CPUs.
void parallelFor(uint64_t count, const std::function<void(uint64_t, uint64_t)> &body);
double dot(const double *x, const double *y, uint64_t count);

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_REFERENCE_H
