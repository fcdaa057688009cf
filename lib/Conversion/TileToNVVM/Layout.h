//===- Layout.h - which thread holds which element --------------*- C++ -*-===//
//
// A tile value (a virtual vector) lives in the registers of a CTA's threads. The ways
// are a small closed set; each is the same formula with other numbers: element i of a
// thread is at row = rowBase(thread) + regs[i].row, column = colBase(thread) +
// regs[i].col, where the bases are a scaled part of the thread's number.
//
//   spread       one-dimensional values of kernels without products
//   accumulator  results of mma.m16n8 (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//                rows g and g + 8 of a warp's 16, columns 2t and 2t + 1 of each 8
//   left         left operands: rows as the accumulator's, of each 32 columns the
//                eight from 8t on (one 16-byte load; k may be permuted in a product
//                as long as both operands are)
//   striped      matrices beside products: row r in warp r % warps, its columns dealt to the lanes
//   rows         one value per row of an accumulator
//   columns      one value per column
//   full         every thread holds all
//
// with g = lane / 4 and t = lane % 4. Transposed forms swap rows and columns: products
// whose rows are never reduced (plain matrix products) take the weights as the
// instruction's left operand, so that one token fills a column of 8 and not 1 row of 16.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_TILETONVVM_LAYOUT_H
#define LLMC_CONVERSION_TILETONVVM_LAYOUT_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <utility>

namespace llmc::cuda {

/// scale * id(thread) + warp * (warp number)
struct Axis {
  enum Id : uint8_t { None, Thread, Group, Quad } id = None; ///< Group: lane / 4, Quad: lane % 4
  int64_t scale = 1, warp = 0;
  int64_t modulo = 0; ///< of the thread's number; 0: none
  bool operator==(const Axis &) const = default;
};

struct Layout {
  enum Kind : uint8_t { Spread, Accumulator, Left, Rows, Columns, Full, Striped } kind = Spread;
  int64_t rows = 1, cols = 1; ///< of the value, not of the padded registers
  Axis row, col;
  llvm::SmallVector<std::pair<int32_t, int32_t>, 0> regs; ///< constant (row, column)
  bool operator==(const Layout &) const = default;

  size_t size() const { return regs.size(); }
  /// Rows or columns that the registers cover; what is past rows or cols is padding.
  bool rowsPadded = false, colsPadded = false;
};

/// A CTA.
struct Shape {
  int64_t threads = 128; ///< that hold values
  bool transposed = false;
  int64_t producers = 0; ///< threads behind them that only copy (tile.roles)
  bool persistent = false; ///< loops over units, whose number is a parameter
  int64_t parts = 1;       ///< CTAs of a unit: a cluster
  int64_t splits = 1;      ///< warps that hold the same values; each has every splits-th step of a loop of products
  int64_t crews = 1;       ///< of consumers: each has units of its own
  int64_t residents = 1;   ///< CTAs that a multiprocessor should have registers for
  int64_t warps() const { return threads / 32 / splits / crews; } ///< that hold different ones of a unit
  int64_t all() const { return threads + producers; }
};

Layout spread(const Shape &cta, int64_t cols);
/// `block`: columns of 8 * block are dealt so that a thread's are neighbours (block of them each).
Layout accumulator(const Shape &cta, int64_t rows, int64_t cols, int64_t block = 1);
/// What tile.deal_columns makes of a transposed accumulator of twice the columns.
Layout dealt(const Shape &cta, int64_t rows, int64_t cols);
Layout left(const Shape &cta, int64_t rows, int64_t cols);
Layout striped(const Shape &cta, int64_t rows, int64_t cols);
/// One value per row (or column) of `matrix`.
Layout rowsOf(const Layout &matrix);
Layout columnsOf(const Layout &matrix);
Layout full(int64_t cols);

} // namespace llmc::cuda

#endif // LLMC_CONVERSION_TILETONVVM_LAYOUT_H
