//===- KVMirror.cpp -------------------------------------------------------===//
#include "runtime/cts/kernel_check/KVMirror.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"

#include <cstring>

namespace llmc::kernel_check {

uint64_t KVLayout::key(uint32_t head, uint32_t token, uint32_t dim) const {
  uint64_t element;
  if (gpu_)
    element = uint64_t(token) * group_.k_dim + dim; // [16 tokens][k_dim]
  else if (group_.element == LLMC_F32)
    element = uint64_t(dim) * LLMC_KV_BLOCK + token; // [k_dim][16 tokens]
  else
    element = (uint64_t(dim / 2) * LLMC_KV_BLOCK + token) * 2 + dim % 2; // [k_dim / 2][16 tokens][2]
  return head * group_.head_bytes + element * elementBytes();
}

uint64_t KVLayout::value(uint32_t head, uint32_t token, uint32_t dim) const {
  uint64_t element = uint64_t(token) * group_.v_dim + dim; // [16 tokens][v_dim]
  if (!gpu_ && group_.element != LLMC_F32)
    element = (uint64_t(token / 2) * group_.v_dim + dim) * 2 + token % 2; // [8 token pairs][v_dim][2]
  return head * group_.head_bytes + (uint64_t(LLMC_KV_BLOCK) * group_.k_dim + element) * elementBytes();
}

float KVLayout::load(const std::byte *from) const {
  if (group_.element == LLMC_F32) {
    float x;
    std::memcpy(&x, from, 4);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, from, 2);
  return bf16ToF32(bits);
}

void KVLayout::store(float x, std::byte *to) const {
  const uint16_t bits = f32ToBf16(x);
  if (group_.element == LLMC_F32)
    std::memcpy(to, &x, 4);
  else
    std::memcpy(to, &bits, 2);
}

KVMirror::KVMirror(const Device &device)
    : device_(device), blockBytes_(device.blockBytes()), numBlocks_(device.numBlocks()) {
  const llmc_module_v1 &m = device.module();
  if (m.num_kv_groups != 1 || (m.kv_groups[0].element != LLMC_F32 && m.kv_groups[0].element != LLMC_BF16))
    throw Error("the check expects one group of f32 or bf16 caches, got " + std::to_string(m.num_kv_groups));
  layout_ = {m.kv_groups[0], std::string(m.target) == "cuda"};
  bytes_.resize(blockBytes_ * numBlocks_);
  for (uint32_t b = 0; b < numBlocks_; ++b)
    device_.readBlock(int32_t(b), block(int32_t(b)));
}

const std::byte *KVMirror::actual(int32_t index) {
  read_.resize(blockBytes_);
  device_.readBlock(index, read_.data());
  return read_.data();
}

} // namespace llmc::kernel_check
