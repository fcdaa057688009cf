// exp, tanh, sin and cos as arithmetic; other types are left alone.
// RUN: llmc-opt %s --reference-expand-math | FileCheck %s

// CHECK-LABEL: func.func @exp
// CHECK-NOT: math.
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf olt
// CHECK: arith.shli %{{.*}} : i32
// CHECK: arith.bitcast %{{.*}} : i32 to f32
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @sin
// CHECK-NOT: math.
// CHECK: arith.bitcast %{{.*}} : f64 to i64
func.func @sin(%x: f64) -> f64 {
  %y = math.sin %x : f64
  return %y : f64
}

// CHECK-LABEL: func.func @cos
// CHECK-NOT: math.
// CHECK: arith.addi %{{.*}} : i64
func.func @cos(%x: f64) -> f64 {
  %y = math.cos %x : f64
  return %y : f64
}

// CHECK-LABEL: func.func @tanh
// CHECK-NOT: math.{{tanh|exp}}
// CHECK: math.absf
// CHECK: arith.divf
// CHECK: math.copysign
// CHECK: arith.select
func.func @tanh(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @left
// CHECK: math.exp %{{.*}} : f64
func.func @left(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}
