//===- Activation.cpp -----------------------------------------------------===//
#include "runtime/cts/kernel_check/Activation.h"
#include "llmc/Support/Float.h"

#include <cstring>

namespace llmc::kernel_check {

namespace {

template <typename T> T load(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

} // namespace

uint32_t Activation::elementBytes() const {
  switch (value.element) {
  case LLMC_F32:
  case LLMC_I32:
    return 4;
  case LLMC_I8:
  case LLMC_E4M3:
    return 1;
  }
  return 2;
}

double Activation::raw(uint64_t row, uint32_t column) const {
  const std::byte *at = arena + value.offset + row * rowBytes();
  switch (value.element) {
  case LLMC_F32:
    return load<float>(at + column * 4);
  case LLMC_BF16:
    return bf16ToF32(load<uint16_t>(at + column * 2));
  case LLMC_F16:
    return f16ToF32(load<uint16_t>(at + column * 2));
  case LLMC_I8:
    return load<int8_t>(at + column);
  case LLMC_E4M3:
    return e4m3ToF32(load<uint8_t>(at + column));
  case LLMC_I16: { // columns 1 and 2 of each four change places
    const uint32_t in = column % 4, stored = in == 1 ? column + 1 : in == 2 ? column - 1 : column;
    return load<int16_t>(at + stored * 2);
  }
  }
  return load<int32_t>(at + column * 4);
}

const float *Activation::scales(uint64_t row, uint64_t group) const {
  return reinterpret_cast<const float *>(arena + value.scales_offset) + (row * groups() + group) * 2;
}

float Activation::rowScale(uint64_t row) const { return load<float>(arena + value.scales_offset + row * scaleBytes()); }

void Activation::read(uint64_t row, double *to) const {
  for (uint32_t c = 0; c < value.cols; ++c)
    to[c] = raw(row, c) * (coded() ? double(*scales(row, c / LLMC_PAD)) : scaled() ? double(rowScale(row)) : 1.0);
}

Matrix Activation::read(uint64_t rows) const {
  Matrix result(rows, value.cols);
  for (uint64_t r = 0; r < rows; ++r)
    read(r, result.row(r));
  return result;
}

} // namespace llmc::kernel_check
