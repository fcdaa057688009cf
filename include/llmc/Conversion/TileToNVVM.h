//===- TileToNVVM.h - tile kernels to NVIDIA GPUs ---------------*- C++ -*-===//
#ifndef LLMC_CONVERSION_TILETONVVM_H
#define LLMC_CONVERSION_TILETONVVM_H

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace llmc {

/// `tile-to-nvvm`: each scheduled tile.kernel (attribute `schedule`, tile-schedule-cuda) becomes an llvm.func with
/// nvvm.kernel whose parameters are those of llmc_cuda_kernel_v1 (llmc/abi.h). The module gets the i32 attributes
/// `llmc.threads` (of a CTA) and `llmc.shared_bytes` (dynamic shared memory), where it loops over units `llmc.persistent` (the CTAs
/// of a unit), of the last kernel; modules have one.
std::unique_ptr<mlir::Pass> createTileToNVVMPass();

} // namespace llmc

#endif // LLMC_CONVERSION_TILETONVVM_H
