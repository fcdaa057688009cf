//===- KVMirror.h - what the pool of KV blocks holds ------------*- C++ -*-===//
//
// A copy of the device's pool, kept up to date launch by launch, so that attention is recomputed from what is really
// cached and a stray write shows.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_KVMIRROR_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_KVMIRROR_H

#include "runtime/device/Device.h"

#include <cstddef>
#include <string>
#include <vector>

namespace llmc::kernel_check {

/// Addresses inside a KV block (abi.h, llmc_kv_group_v1).
class KVLayout {
public:
  KVLayout() = default;
  KVLayout(const llmc_kv_group_v1 &group, bool gpu) : group_(group), gpu_(gpu) {}

  const llmc_kv_group_v1 &group() const { return group_; }
  /// Bytes from the layer's start to column `dim` of the key (or value) of a token, 0 .. 15.
  uint64_t key(uint32_t head, uint32_t token, uint32_t dim) const;
  uint64_t value(uint32_t head, uint32_t token, uint32_t dim) const;
  uint32_t elementBytes() const { return group_.element == LLMC_F32 ? 4 : 2; }
  float load(const std::byte *from) const;
  void store(float x, std::byte *to) const; ///< rounds to nearest even

private:
  llmc_kv_group_v1 group_{};
  bool gpu_ = false;
};

class KVMirror {
public:
  /// Reads the whole pool.
  explicit KVMirror(const Device &device);

  const KVLayout &layout() const { return layout_; }
  const std::byte *block(int32_t index) const { return bytes_.data() + uint64_t(index) * blockBytes_; }
  std::byte *block(int32_t index) { return bytes_.data() + uint64_t(index) * blockBytes_; }
  uint64_t blockBytes() const { return blockBytes_; }
  uint32_t numBlocks() const { return numBlocks_; }
  /// The bytes of a block as they are on the device; valid until the next call.
  const std::byte *actual(int32_t index);

private:
  const Device &device_;
  KVLayout layout_;
  uint64_t blockBytes_;
  uint32_t numBlocks_;
  std::vector<std::byte> bytes_, read_;
};

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_KVMIRROR_H
