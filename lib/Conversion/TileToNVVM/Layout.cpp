//===- Layout.cpp - which thread holds which element ----------------------===//

#include "Layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc::cuda;

Layout llmc::cuda::spread(const Shape &cta, int64_t cols) {
  Layout layout;
  layout.kind = Layout::Spread;
  layout.cols = cols;
  int64_t perThread = cols % (cta.threads * 4) == 0 ? 4 : cols % (cta.threads * 2) == 0 ? 2 : 1;
  layout.col = {Axis::Thread, perThread, 0, cols < cta.threads ? cols : 0};
  layout.colsPadded = cols > cta.threads && cols % cta.threads;
  for (int64_t first = 0; first < cols; first += cta.threads * perThread)
    for (int64_t i = 0; i < perThread; ++i)
      layout.regs.push_back({0, static_cast<int32_t>(first + i)});
  return layout;
}

// Rows and columns as the instruction counts them; `transposed` swaps them at the end.
Layout llmc::cuda::accumulator(const Shape &cta, int64_t rows, int64_t cols, int64_t block) {
  int64_t m = cta.transposed ? cols : rows, n = cta.transposed ? rows : cols;
  int64_t stride = 16 * cta.warps();
  Layout layout;
  layout.kind = Layout::Accumulator;
  layout.rows = rows;
  layout.cols = cols;
  Axis mAxis{Axis::Group, 1, 16}, nAxis{Axis::Quad, 2 * block, 0};
  for (int64_t tile = 0; tile * stride < m; ++tile)
    for (int64_t column = 0; column < n; column += 8 * block)
      for (int64_t e = 0; e < block; ++e)
        for (int64_t half = 0; half < 2; ++half)
          for (int64_t bit = 0; bit < 2; ++bit)
            layout.regs.push_back({static_cast<int32_t>(tile * stride + 8 * half), static_cast<int32_t>(column + block * bit + e)});
  layout.row = mAxis;
  layout.col = nAxis;
  bool mPadded = m % stride, nPadded = n % (8 * block);
  layout.rowsPadded = mPadded;
  layout.colsPadded = nPadded;
  if (cta.transposed) {
    std::swap(layout.row, layout.col);
    std::swap(layout.rowsPadded, layout.colsPadded);
    for (auto &reg : layout.regs)
      std::swap(reg.first, reg.second);
  }
  return layout;
}

Layout llmc::cuda::dealt(const Shape &cta, int64_t rows, int64_t cols) {
  Layout layout;
  layout.kind = Layout::Accumulator;
  layout.rows = rows;
  layout.cols = cols;
  layout.row = {Axis::Quad, 2, 0};
  layout.col = {Axis::Group, 1, 8};
  layout.rowsPadded = rows % 8;
  layout.colsPadded = cols % (8 * cta.warps());
  for (int64_t first = 0; first < cols; first += 8 * cta.warps())
    for (int64_t row = 0; row < rows; row += 8)
      for (int64_t bit = 0; bit < 2; ++bit)
        layout.regs.push_back({static_cast<int32_t>(row + bit), static_cast<int32_t>(first)});
  return layout;
}

Layout llmc::cuda::left(const Shape &cta, int64_t rows, int64_t cols) {
  Layout layout;
  layout.kind = Layout::Left;
  layout.rows = rows;
  layout.cols = cols;
  layout.col = {Axis::Quad, 8, 0};
  // Transposed, tokens are the columns of 8 of the instruction and every warp holds them all.
  int64_t stride = cta.transposed ? 8 : 16 * cta.warps(), halves = cta.transposed ? 1 : 2;
  layout.row = {Axis::Group, 1, cta.transposed ? 0 : 16};
  layout.rowsPadded = rows % stride;
  layout.colsPadded = cols % 32;
  for (int64_t tile = 0; tile * stride < rows; ++tile)
    for (int64_t chunk = 0; chunk < cols; chunk += 32)
      for (int64_t half = 0; half < halves; ++half)
        for (int64_t i = 0; i < 8; ++i)
          layout.regs.push_back({static_cast<int32_t>(tile * stride + 8 * half), static_cast<int32_t>(chunk + i)});
  return layout;
}

Layout llmc::cuda::striped(const Shape &cta, int64_t rows, int64_t cols) {
  constexpr int64_t kLanes = 32;
  int64_t perThread = cols % (kLanes * 4) == 0 ? 4 : cols % (kLanes * 2) == 0 ? 2 : 1;
  Layout layout;
  layout.kind = Layout::Striped;
  layout.rows = rows;
  layout.cols = cols;
  layout.row = {Axis::None, 1, 1};
  layout.col = {Axis::Thread, perThread, 0, kLanes};
  layout.rowsPadded = rows % cta.warps();
  layout.colsPadded = cols % kLanes;
  for (int64_t row = 0; row < rows; row += cta.warps())
    for (int64_t first = 0; first < cols; first += kLanes * perThread)
      for (int64_t i = 0; i < perThread; ++i)
        layout.regs.push_back({static_cast<int32_t>(row), static_cast<int32_t>(first + i)});
  return layout;
}

static void appendOnce(Layout &layout, std::pair<int32_t, int32_t> reg) {
  if (!llvm::is_contained(layout.regs, reg))
    layout.regs.push_back(reg);
}

Layout llmc::cuda::rowsOf(const Layout &matrix) {
  Layout layout;
  layout.kind = Layout::Rows;
  layout.rows = matrix.rows;
  layout.row = matrix.row;
  layout.rowsPadded = matrix.rowsPadded;
  for (auto [row, col] : matrix.regs)
    appendOnce(layout, {row, 0});
  return layout;
}

Layout llmc::cuda::columnsOf(const Layout &matrix) {
  Layout layout;
  layout.kind = Layout::Columns;
  layout.cols = matrix.cols;
  layout.col = matrix.col;
  layout.colsPadded = matrix.colsPadded;
  for (auto [row, col] : matrix.regs)
    appendOnce(layout, {0, col});
  return layout;
}

Layout llmc::cuda::full(int64_t cols) {
  Layout layout;
  layout.kind = Layout::Full;
  layout.cols = cols;
  for (int64_t i = 0; i < cols; ++i)
    layout.regs.push_back({0, static_cast<int32_t>(i)});
  return layout;
}
