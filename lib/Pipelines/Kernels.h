//===- Kernels.h - kernels as modules of their own --------------*- C++ -*-===//
#ifndef LLMC_LIB_PIPELINES_KERNELS_H
#define LLMC_LIB_PIPELINES_KERNELS_H

#include "llmc/Target/Cubin.h"
#include "llmc/Target/KernelCompiler.h"
#include "llmc/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"

namespace llmc {

/// A job for every tile.kernel and every func tagged llmc.kernel of a planned module. Locations are dropped, so that
/// equal kernels of different models hash alike.
std::vector<KernelJob> kernelJobs(mlir::ModuleOp module, const std::string &isa, const std::string &form);

/// The job that compiles the constant tables (rt-to-llvm). Throws Error.
KernelJob tablesJob(mlir::ModuleOp module, const std::string &isa, const std::string &form);

/// The same for a GPU, with its kernels by name as data. The tables are read by the host: the job is one for a CPU.
KernelJob tablesJob(mlir::ModuleOp module, const GPUTarget &target, const std::vector<std::string> &names,
                    const std::vector<GPUKernel> &kernels);

} // namespace llmc

#endif // LLMC_LIB_PIPELINES_KERNELS_H
