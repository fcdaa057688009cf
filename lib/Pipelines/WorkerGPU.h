//===- WorkerGPU.h - a kernel module to PTX and cubin -----------*- C++ -*-===//
#ifndef LLMC_LIB_PIPELINES_WORKERGPU_H
#define LLMC_LIB_PIPELINES_WORKERGPU_H

#include "llmc/Target/TargetInfo.h"

#include "mlir/IR/BuiltinOps.h"

namespace llmc {

struct GPUJob {
  const GPUTarget &target;
  std::string form;  // "llvm", "ptx" or "cubin"
  std::string name;  // of the kernel, its entry
  std::string ptxas; // empty: PTX alone
};

/// Text, or for form "cubin" a serialised GPUKernel that has passed the gate. The launch is described by attributes of the
/// module: i32 llmc.threads, i32 llmc.shared_bytes, llmc.persistent where it loops over units, and, where there are any, llmc.tensor_maps: for each map an array<i64>
/// of the fields of llmc_tensor_map_v1 in their order. Emits diagnostics or throws Error.
mlir::LogicalResult compileForGPU(mlir::ModuleOp module, const GPUJob &job, std::string &result);

} // namespace llmc

#endif // LLMC_LIB_PIPELINES_WORKERGPU_H
