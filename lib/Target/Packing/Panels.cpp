//===- Panels.cpp - stored blocks to the records of llmc/abi.h ------------===//
//
// Blocks in files (ggml-common.h): q4_0 {f16 d; u8 qs[16]}, q4_1 {f16 d, m; u8 qs[16]}, q8_0 {f16 d; i8 qs[32]};
// the low nibble of qs[i] is value i, the high nibble value i + 16.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/Packing/Panels.h"

#include <cstring>

using namespace llmc;

namespace {
constexpr uint64_t kLanes = kPanelRows;

inline uint32_t load32(const uint8_t *at) {
  uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}
inline void store32(uint8_t *at, uint32_t value) { std::memcpy(at, &value, 4); }

/// 32 codes of one row to 4 chunks of 64 bytes, four codes at a time: values 8j .. 8j + 3 become low nibbles, the next four
/// high ones.
void packNibbles(const uint8_t *codes, uint64_t lane, uint8_t *chunks) {
  constexpr uint32_t low = 0x0f0f0f0f;
  for (unsigned j = 0; j < 2; ++j) {
    uint32_t first = load32(codes + 8 * j), second = load32(codes + 8 * j + 4);
    store32(chunks + 64 * j + 4 * lane, (first & low) | (second & low) << 4);
    store32(chunks + 64 * (j + 2) + 4 * lane, (first >> 4 & low) | (second & ~low));
  }
}

void packQ4_1(const uint8_t *row, uint64_t rowBytes, uint64_t lane, uint8_t *panel) {
  for (const uint8_t *end = row + rowBytes; row != end; row += 20, panel += 320) {
    std::memcpy(panel + 2 * lane, row, 2);
    std::memcpy(panel + 2 * kLanes + 2 * lane, row + 2, 2);
    packNibbles(row + 4, lane, panel + 4 * kLanes);
  }
}

void packQ4_0(const uint8_t *row, uint64_t rowBytes, uint64_t lane, uint8_t *panel) {
  for (uint64_t block = 0; block < rowBytes / 18; ++block, row += 18) {
    uint8_t *record = panel + block / 2 * 576;
    uint64_t half = block % 2;
    std::memcpy(record + 2 * kLanes * half + 2 * lane, row, 2);
    packNibbles(row + 2, lane, record + 4 * kLanes + 256 * half);
  }
}

void packQ8_0(const uint8_t *row, uint64_t rowBytes, uint64_t lane, uint8_t *panel) {
  for (uint64_t block = 0; block < rowBytes / 34; ++block, row += 34) {
    uint8_t *record = panel + block / 2 * 1088;
    uint64_t half = block % 2;
    std::memcpy(record + 2 * kLanes * half + 2 * lane, row, 2);
    uint8_t *chunks = record + 4 * kLanes + 512 * half;
    for (unsigned j = 0; j < 8; ++j) // x ^ 128 is x + 128 of a signed byte, as unsigned
      store32(chunks + 64 * j + 4 * lane, load32(row + 2 + 4 * j) ^ 0x80808080u);
  }
}

/// Plain values; `group` neighbours of a row stay together (2 for bf16, where a last single one has a zero beside it).
template <class T, unsigned group> void packPlain(const uint8_t *row, uint64_t rowBytes, uint64_t lane, uint8_t *panel) {
  uint64_t cols = rowBytes / sizeof(T);
  for (uint64_t k = 0; k < cols; ++k)
    std::memcpy(panel + (k / group * kLanes * group + lane * group + k % group) * sizeof(T), row + k * sizeof(T), sizeof(T));
}
} // namespace

void llmc::fillPanel(llmc_layout layout, std::span<uint8_t> panel) {
  std::memset(panel.data(), 0, panel.size());
  uint64_t record = recordBytes(layout), scales = 4 * kLanes;
  uint8_t zero = layout == LLMC_LAYOUT_N16_Q4_0 ? 0x88 : layout == LLMC_LAYOUT_N16_Q8_0 ? 0x80 : 0;
  if (zero)
    for (uint64_t at = 0; at < panel.size(); at += record)
      std::memset(panel.data() + at + scales, zero, record - scales);
}

void llmc::packPanel(llmc_layout layout, const uint8_t *rows, uint64_t count, uint64_t rowBytes,
                     std::span<uint8_t> panel) {
  for (uint64_t lane = 0; lane < count; ++lane) {
    const uint8_t *row = rows + lane * rowBytes;
    switch (layout) {
    case LLMC_LAYOUT_ROWS_F32: case LLMC_LAYOUT_ROWS_BF16: break; // no panels
    case LLMC_LAYOUT_N16_F32: packPlain<uint32_t, 1>(row, rowBytes, lane, panel.data()); break;
    case LLMC_LAYOUT_N16_F16: packPlain<uint16_t, 1>(row, rowBytes, lane, panel.data()); break;
    case LLMC_LAYOUT_N16_BF16: packPlain<uint16_t, 2>(row, rowBytes, lane, panel.data()); break;
    case LLMC_LAYOUT_N16_Q4_0: packQ4_0(row, rowBytes, lane, panel.data()); break;
    case LLMC_LAYOUT_N16_Q4_1: packQ4_1(row, rowBytes, lane, panel.data()); break;
    case LLMC_LAYOUT_N16_Q8_0: packQ8_0(row, rowBytes, lane, panel.data()); break;
    }
  }
}
