//===- UploadWeights.h - weights to the GPU through pinned buffers *- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_UPLOADWEIGHTS_H
#define LLMC_RUNTIME_DEVICE_CUDA_UPLOADWEIGHTS_H

#include "runtime/device/cuda/Gpu.h"
#include "runtime/package/WeightSource.h"

#include <functional>

namespace llmc::cuda {

/// Reads the whole image piece by piece into two pinned buffers, one being filled (by `threads`; 0: all) while the other
/// is on its way. `onProgress` (may be null) is called before the first piece, too.
void uploadWeights(const Gpu &gpu, const WeightSource &source, Pointer to, unsigned threads,
                   const std::function<void(uint64_t done, uint64_t total)> &onProgress);

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_UPLOADWEIGHTS_H
