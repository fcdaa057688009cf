//===- Verify.h - the compiled program against the oracle -------*- C++ -*-===//
//
// Runs a text through the reference program (plain f32, one whole sequence) and
// through the compiled one (paged cache, chunks), and compares what both call by
// the same name, value by value.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_VERIFY_H
#define LLMC_RUNTIME_ENGINE_VERIFY_H

#include "runtime/device/Device.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace llmc {

struct ValueError {
  std::string value, op;
  uint32_t opId = 0; // in the compiled program
  int32_t layer = -1;
  double relative = 0;   // |compiled - reference|_2 / |reference|_2 over all rows; infinite if not finite
  double largest = 0;    // largest |compiled - reference|
};

struct VerifyReport {
  uint32_t tokens = 0;
  std::vector<ValueError> values; // in the order of the compiled program; values of one program only are left out
  double meanKl = 0, maxKl = 0;   // KL(reference || compiled) of the next-token distributions, in nats
  double top1 = 0;                // share of positions with the same likeliest token

  /// The first value whose relative error exceeds `bound`; null: none.
  const ValueError *firstBeyond(double bound) const;
};

/// Throws Error if the module has no reference program or the text is too long for it.
VerifyReport verifyModel(Device &device, std::span<const int32_t> ids);

/// KL(p || q) of softmax of two rows of logits, in nats.
double klDivergence(std::span<const float> p, std::span<const float> q);

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_VERIFY_H
