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

/// Code of value k (0 .. 31) of a block's nibbles.
inline uint8_t nibble(const uint8_t *codes, unsigned k) { return k < 16 ? codes[k] & 15 : codes[k - 16] >> 4; }

/// 32 codes of one row to 4 chunks of 64 bytes.
void packNibbles(const uint8_t *codes, uint64_t lane, uint8_t *chunks) {
  for (unsigned j = 0; j < 4; ++j)
    for (unsigned b = 0; b < 4; ++b)
      chunks[64 * j + 4 * lane + b] = nibble(codes, 8 * j + b) | nibble(codes, 8 * j + 4 + b) << 4;
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
    for (unsigned k = 0; k < 32; ++k) // x ^ 128 is x + 128 of a signed byte, as unsigned
      chunks[64 * (k / 4) + 4 * lane + k % 4] = row[2 + k] ^ 0x80;
  }
}

/// Plain values of `size` bytes; `group` neighbours of a row stay together (2 for bf16).
void packPlain(const uint8_t *row, uint64_t rowBytes, uint64_t lane, unsigned size, unsigned group, uint8_t *panel) {
  uint64_t cols = rowBytes / size;
  for (uint64_t k = 0; k < cols; ++k)
    std::memcpy(panel + (k / group * kLanes * group + lane * group + k % group) * size, row + k * size, size);
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
    case LLMC_LAYOUT_ROWS_F32: break; // no panels
    case LLMC_LAYOUT_N16_F32: packPlain(row, rowBytes, lane, 4, 1, panel.data()); break;
    case LLMC_LAYOUT_N16_F16: packPlain(row, rowBytes, lane, 2, 1, panel.data()); break;
    case LLMC_LAYOUT_N16_BF16: packPlain(row, rowBytes, lane, 2, 2, panel.data()); break;
    case LLMC_LAYOUT_N16_Q4_0: packQ4_0(row, rowBytes, lane, panel.data()); break;
    case LLMC_LAYOUT_N16_Q4_1: packQ4_1(row, rowBytes, lane, panel.data()); break;
    case LLMC_LAYOUT_N16_Q8_0: packQ8_0(row, rowBytes, lane, panel.data()); break;
    }
  }
}
