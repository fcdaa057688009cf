//===- QuantizeE4M3.h - a row of values to e4m3 with a scale ----*- C++ -*-===//
#ifndef LLMC_LIB_TARGET_PACKING_QUANTIZEE4M3_H
#define LLMC_LIB_TARGET_PACKING_QUANTIZEE4M3_H

#include <cstdint>

namespace llmc {

/// codes[i] = values[i] / scale to the nearest even; gives the scale, the largest magnitude / 448 (1 where all values are 0). A value
/// that is not finite makes the scale a NaN or an infinity.
float quantizeE4M3(const float *values, uint64_t count, uint8_t *codes);

} // namespace llmc

#endif // LLMC_LIB_TARGET_PACKING_QUANTIZEE4M3_H
