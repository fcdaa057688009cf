//===- PtxKernel.h - a kernel that no compiler makes ------------*- C++ -*-===//
//
// The runtime's own few, written in PTX, which the driver compiles when they are loaded.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_PTXKERNEL_H
#define LLMC_RUNTIME_DEVICE_CUDA_PTXKERNEL_H

#include "runtime/device/cuda/Gpu.h"

namespace llmc::cuda {

class PtxKernel {
public:
  /// Throws Error with the kernel's name.
  PtxKernel(const Gpu &gpu, const char *ptx, const char *name);
  ~PtxKernel() { gpu_.driver().cuModuleUnload(module_); }
  PtxKernel(const PtxKernel &) = delete;
  PtxKernel &operator=(const PtxKernel &) = delete;

  /// Enqueues it; `parameters` are addresses of its parameters, in order.
  void launch(unsigned ctas, unsigned threads, void **parameters) const;

private:
  const Gpu &gpu_;
  Module module_ = nullptr;
  Function function_ = nullptr;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_PTXKERNEL_H
