//===- UnpackWeight.h - packed weights back to plain floats -----*- C++ -*-===//
//
// For the oracle only. Written from the comments on layouts in abi.h and CodedForm.h and
// from nothing else, so that it checks lib/Target/Packing rather than repeats it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_UNPACKWEIGHT_H
#define LLMC_RUNTIME_ENGINE_UNPACKWEIGHT_H

#include "llmc/abi.h"

#include <cstddef>
#include <cstdint>

namespace llmc {

float halfToFloat(uint16_t half);

/// Writes row-major f32 [weight.rows, weight.cols] to `out`. `weights` is the start of all packed
/// weights. Throws Error naming the weight when its layout and byte count do not agree.
void unpackWeight(const llmc_weight_v1 &weight, const std::byte *weights, float *out);

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_UNPACKWEIGHT_H
