//===- Compare.h - a launch's result against its reference ------*- C++ -*-===//
//
// Two figures a launch, each with a bound that follows from how the op computes:
//   relative  |got - want|_2 / |want|_2 over the whole result. The bound includes the rounding to the result's format.
//   element   largest |got - want| less half a step of the result's format, in units of max(|want|, rms of its row): one
//             wrong element among millions shows here.
// Besides: padding columns are zero, scales belong to their codes, every number is finite.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_COMPARE_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_COMPARE_H

#include "runtime/cts/kernel_check/Reference.h"

#include <string>

namespace llmc::kernel_check {

struct Bounds {
  double relative = 0, element = 0;
};

/// `k`: length of the sums of a product, else 0; `element`: enum llmc_element of the result.
Bounds boundsOf(const KernelName &kernel, bool gpu, uint64_t k, uint32_t element);

struct Deviation {
  double relative = 0, element = 0;
  std::string worst; // where `element` was seen: "row 3, column 17: expected X, got Y"
  std::string fault; // what is wrong whatever the bounds; empty: nothing

  bool within(const Bounds &bounds) const { return fault.empty() && relative <= bounds.relative && element <= bounds.element; }
};

/// `got`: the launch's result; `want`: [rows, cols]. The scales of codes may be off by `ofScales`, of themselves.
Deviation compare(const Activation &got, const Matrix &want, double ofScales = 1e-4);

/// Half of bf16's last place at x: the largest error of rounding to nearest.
double halfStepBF16(double x);

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_COMPARE_H
