// A kernel as an llmc_kernel_fn: pointers loaded from the argument array, passed on as noalias. Nothing is declared but
// not defined, no dialect but llvm is left, and loops stay loops (no-builtins).
// RUN: llmc-opt %s --reference-to-llvm | FileCheck %s --implicit-check-not=memref. --implicit-check-not=math. --implicit-check-not=unrealized --implicit-check-not=expf

func.func @ref_silu(%x: memref<?x32xf32>, %y: memref<?x32xf32>, %rows: index, %begin: index, %end: index) attributes {llmc.kernel} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1.0 : f32
  scf.for %t = %begin to %end step %c1 {
    %offset = arith.muli %t, %c32 : index
    %a = memref.reinterpret_cast %x to offset: [%offset], sizes: [20], strides: [1] : memref<?x32xf32> to memref<20xf32, strided<[1], offset: ?>>
    %b = memref.reinterpret_cast %y to offset: [%offset], sizes: [20], strides: [1] : memref<?x32xf32> to memref<20xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%a : memref<20xf32, strided<[1], offset: ?>>) outs(%b : memref<20xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %out: f32):
      %n = arith.negf %in : f32
      %e = math.exp %n : f32
      %s = arith.addf %e, %one : f32
      %d = arith.divf %in, %s : f32
      linalg.yield %d : f32
    }
  }
  return
}

// CHECK: llvm.func internal @ref_silu.body(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-SAME: passthrough = ["no-builtins", "nounwind"]
// CHECK: llvm.func @ref_silu(%[[ARGS:.*]]: !llvm.ptr, %[[ROWS:.*]]: i64, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK: %[[X:.*]] = llvm.load %[[ARGS]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[ARGS]][1]
// CHECK: %[[Y:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call @ref_silu.body(%[[X]], %[[Y]], %[[ROWS]], %[[BEGIN]], %[[END]])
// CHECK-NOT: llvm.func
