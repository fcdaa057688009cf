//===- Passes.td - the host program as data -----------------*- tablegen -*-===//
#ifndef LLMC_RTTOLLVM_PASSES
#define LLMC_RTTOLLVM_PASSES

include "mlir/Pass/PassBase.td"

def RTToLLVMPass : Pass<"rt-to-llvm", "::mlir::ModuleOp"> {
  let summary = "write the host program as the constant tables of llmc/abi.h";
  let description = [{
    Needs `rt.program @step` (and `@reference` where there is one), packed `lm.weight`s, and the module attributes
    `lm.model`, `lm.weights_bytes`, `rt.limits` and `rt.kv_group`. What is left are LLVM globals: the exported
    `llmc_module_v1` and internal tables; kernels are hidden declarations. Everything else is erased.

    With the module attribute `rt.cuda_kernels` the module is one for target cuda: a dictionary from each kernel's name to
    {ptx, threads, shared_bytes} and, where there are any, cubin and tensor_maps (arrays of the fields of
    llmc_tensor_map_v1). Variants then point to `llmc_cuda_kernel_v1`s that hold these bytes.
  }];
  let options = [Option<"isa", "isa", "std::string", "\"avx2\"", "instruction set that the kernels are compiled for">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // LLMC_RTTOLLVM_PASSES
