// RUN: llmc-opt %s --reference-kernel-entry --split-input-file --verify-diagnostics

// expected-error @below {{argument 0: expected a contiguous memref with static columns}}
func.func @ref_x(%x: memref<?x32xf32, strided<[64, 1]>>, %rows: index, %begin: index, %end: index) attributes {llmc.kernel} {
  return
}

// -----

// expected-error @below {{expected buffers, then three index arguments}}
func.func @ref_y(%x: memref<?x32xf32>, %rows: index) attributes {llmc.kernel} {
  return
}
