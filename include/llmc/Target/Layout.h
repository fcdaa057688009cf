//===- Layout.h - sizes of packed weights -----------------------*- C++ -*-===//
//
// The arithmetic of enum llmc_layout (llmc/abi.h): how large a packed weight is. Header
// only and MLIR-free, so that passes, packing, ledger and tests share one source.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TARGET_LAYOUT_H
#define LLMC_TARGET_LAYOUT_H

#include "llmc/Target/CodedForm.h"

#include <cstdint>

namespace llmc {

constexpr uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Rows or columns with LLMC_PAD padding.
constexpr uint64_t padded(uint64_t count) { return roundUp(count, LLMC_PAD); }

/// Output rows of one panel of an n16 layout.
constexpr uint64_t kPanelRows = 16;

/// Columns (k) that one record of a panel covers; 1 for rows.
constexpr uint64_t recordK(llmc_layout layout) {
  if (CodedForm form = codedForm(layout))
    return form.recordK;
  return layout == LLMC_LAYOUT_N16_BF16 || layout == LLMC_LAYOUT_N16_E4M3 ? 2 : 1;
}

/// Bytes of one record of a panel; of one element for rows.
constexpr uint64_t recordBytes(llmc_layout layout) {
  switch (layout) {
  case LLMC_LAYOUT_ROWS_F32: return 4;
  case LLMC_LAYOUT_N16_F32: return 64;
  case LLMC_LAYOUT_N16_F16: return 32;
  case LLMC_LAYOUT_N16_BF16: return 64;
  case LLMC_LAYOUT_ROWS_BF16: return 2;
  case LLMC_LAYOUT_N16_E4M3: return 32;
  case LLMC_LAYOUT_ROWS_E4M3: return 16; // of one k
  default: return codedForm(layout).recordBytes();
  }
}

constexpr bool isRows(llmc_layout layout) { return layout == LLMC_LAYOUT_ROWS_F32 || layout == LLMC_LAYOUT_ROWS_BF16; }

/// Whether rows are e4m3 codes with a scale each, in panels of 16 rows.
constexpr bool isE4M3(llmc_layout layout) { return layout == LLMC_LAYOUT_N16_E4M3 || layout == LLMC_LAYOUT_ROWS_E4M3; }

/// Bytes behind the codes of such a panel: f32 scales of its rows; where copies read rows, zeros up to a whole 128 bytes.
constexpr uint64_t tailBytes(llmc_layout layout) {
  return layout == LLMC_LAYOUT_N16_E4M3 ? 4 * kPanelRows : layout == LLMC_LAYOUT_ROWS_E4M3 ? 128 : 0;
}

/// Rows that are stored: panels and ROWS_BF16 are padded, ROWS_F32 has exactly its rows.
constexpr uint64_t storedRows(llmc_layout layout, uint64_t rows) {
  return layout == LLMC_LAYOUT_ROWS_F32 ? rows : padded(rows);
}

/// Records of one panel (or elements of one row) over `cols` logical columns. A record of more
/// than 32 k covers last groups past the end with zeros.
constexpr uint64_t recordsPerPanel(llmc_layout layout, uint64_t cols) {
  return roundUp(padded(cols), recordK(layout)) / recordK(layout);
}

/// Bytes of one panel of 16 rows, or of one row.
constexpr uint64_t panelBytes(llmc_layout layout, uint64_t cols) {
  return recordsPerPanel(layout, cols) * recordBytes(layout) + tailBytes(layout);
}

/// Bytes of a packed weight of logical shape [rows, cols]; a multiple of 64. A 1-d weight (norm, bias)
/// of n values is [1, n].
constexpr uint64_t packedBytes(llmc_layout layout, uint64_t rows, uint64_t cols) {
  uint64_t panels = storedRows(layout, rows) / (isRows(layout) ? 1 : kPanelRows);
  return panels * panelBytes(layout, cols);
}

} // namespace llmc

#endif // LLMC_TARGET_LAYOUT_H
