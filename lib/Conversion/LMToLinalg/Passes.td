//===- Passes.td - passes of the oracle ---------------------*- tablegen -*-===//
#ifndef LLMC_LMTOLINALG_PASSES
#define LLMC_LMTOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def LMToReferencePass : Pass<"lm-to-reference", "::mlir::ModuleOp"> {
  let summary = "add the oracle: @step as f32 linalg kernels on one whole sequence";
  let description = [{
    Clones func `@step` to `@reference`, in which every op is an `rt.dispatch` of a `func.func` kernel written in
    `linalg` on memrefs and tagged `llmc.kernel`; equal ops on equal shapes share a kernel. Weights arrive as row-major f32
    (`reference_weights`). The oracle computes one sequence from position 0, so that keys and values are ordinary tensors and
    no cache is read. A dispatch has the name of the lm op it computes; the keys and values of `lm.rope_append` have
    the suffixes `.k` and `.v`. Runs after the fusions and before anything decides arithmetic or formats.
  }];
  let dependentDialects = ["::llmc::rt::RTDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ReferenceExpandMathPass : Pass<"reference-expand-math"> {
  let summary = "math.exp (f32), math.sin and math.cos (f64) as arithmetic";
  let description = [{
    Generated code calls no libm. exp: error below 2 units in the last place. sin and cos: below 1e-15 for
    arguments up to 1e6.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ReferenceKernelEntryPass : Pass<"reference-kernel-entry", "::mlir::ModuleOp"> {
  let summary = "give kernels on memrefs the signature llmc_kernel_fn";
  let description = [{
    `func.func @x(memref..., %rows, %begin, %end : index)` tagged `llmc.kernel` becomes `@x.body` on bare pointers that
    do not alias, and `@x(!llvm.ptr, i64, i64, i64)` loads them from the argument array and calls it. Strides are those of the
    memref types, which are contiguous.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
}

#endif // LLMC_LMTOLINALG_PASSES
