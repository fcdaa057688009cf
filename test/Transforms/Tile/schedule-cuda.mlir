// The CTA follows from the kernel's values.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-schedule-cuda)' | FileCheck %s

// CHECK: tile.kernel @narrow({{.*}}) attributes {schedule = {threads = 32 : i32}}
tile.kernel @narrow(%x: memref<?x64xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<64xf32>
  tile.store %v, %x[%unit, %c0] : vector<64xf32>, memref<?x64xf32>
}

// At most 256 threads, whatever the width.
// CHECK: tile.kernel @broad({{.*}}) attributes {schedule = {threads = 256 : i32}}
tile.kernel @broad(%x: memref<?x2048xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x2048xf32> -> vector<2048xf32>
  tile.store %v, %x[%unit, %c0] : vector<2048xf32>, memref<?x2048xf32>
}

// A schedule that is there stays.
// CHECK: tile.kernel @given({{.*}}) attributes {schedule = {threads = 64 : i32}}
tile.kernel @given(%x: memref<?x2048xf32>, %rows: index, %unit: index) attributes {schedule = {threads = 64 : i32}} {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x2048xf32> -> vector<2048xf32>
  tile.store %v, %x[%unit, %c0] : vector<2048xf32>, memref<?x2048xf32>
}
