//===- Dequantize.cpp -----------------------------------------------------===//
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Support/Float.h"

#include <cassert>
#include <cstring>

using namespace llmc;

namespace {
/// Every product is exact: an f16 has 11 significant bits, Q6_K's integers add at most 7 + 5, IQ4_XS's 5 + 7, the others'
/// fewer. So the only rounding is that of the sum, fused or not, and the order of the products does not matter.
template <DType type> void dequantizeBlock(const CodedBlock &__restrict block, float *__restrict out) {
  constexpr CodedForm form = codedForm(type);
  const float d = f16ToF32(block.d), m = f16ToF32(block.m);
  for (unsigned group = 0; group < blockValues(form) / form.scaleGroup; ++group) {
    float scale = d, minimum = m;
    if constexpr (form.scaleBits) {
      const uint8_t *field = block.fields + group * (form.minimum ? 2 : 1);
      scale *= float(form.scaleBits == 8 ? int8_t(*field) : *field - form.scaleZero);
      if constexpr (form.minimum)
        minimum *= -float(field[1]);
    }
    for (unsigned i = group * form.scaleGroup; i < (group + 1) * form.scaleGroup; ++i) {
      const float value = scale * float(form.table ? kIQ4Values[block.codes[i]] : block.codes[i] - form.zero);
      out[i] = form.minimum ? value + minimum : value;
    }
  }
}
} // namespace

void llmc::dequantizeRow(DType type, const void *source, int64_t count, float *destination) {
  assert(count >= 0 && count % blockSize(type) == 0 && "row of whole blocks");
  const uint8_t *bytes = static_cast<const uint8_t *>(source);
  if (type == DType::F32) {
    std::memcpy(destination, bytes, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  if (type == DType::F16 || type == DType::BF16) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, 2);
      destination[i] = type == DType::F16 ? f16ToF32(bits) : bf16ToF32(bits);
    }
    return;
  }
  if (type == DType::E4M3) { // without the rows' scales
    for (int64_t i = 0; i < count; ++i)
      destination[i] = e4m3ToF32(bytes[i]);
    return;
  }
  withBlockType(type, [&](auto constant) {
    CodedBlock block;
    for (int64_t i = 0; i < count; i += blockSize(type), bytes += blockBytes(type)) {
      readBlock<constant.value>(bytes, block);
      dequantizeBlock<constant.value>(block, destination + i);
    }
  });
}
