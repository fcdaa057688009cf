//===- PositionReference.cpp - rotary embedding and cache writes ----------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/kernel_check/Reference.h"

#include <cmath>

namespace llmc::kernel_check {

namespace {

/// Error of a rotated column, in shares of the pair's length: two products and a sum in f32.
constexpr double kRotation = 4e-7;

/// Rotates halves of one head of `dim` columns in place.
void rotate(double *head, const double *table, uint64_t pairs) {
  for (uint64_t i = 0; i < pairs; ++i) {
    const double low = head[i], high = head[pairs + i], cosine = table[i], sine = table[pairs + i];
    head[i] = low * cosine - high * sine;
    head[pairs + i] = high * cosine + low * sine;
  }
}

double pairLength(const double *head, uint64_t column, uint64_t pairs) {
  if (column >= 2 * pairs)
    return 0; // passes through
  return std::hypot(head[column % pairs], head[pairs + column % pairs]);
}

void expectColumns(const Launch &l, uint64_t got, uint64_t want) {
  if (got != want)
    throw Error(std::string("launch ") + l.launch.op + ": expected " + std::to_string(want) + " columns, got " + std::to_string(got));
}

/// The writes of one token's key and value of a KV head. `pairs` 0: nothing was rotated.
void write(const Launch &l, uint64_t token, uint32_t head, const double *key, const double *value, uint64_t pairs,
           std::vector<CacheElement> &to) {
  const int32_t slot = l.step.slots[token];
  if (slot < 0)
    return;
  const KVLayout &layout = l.cache.layout();
  const int32_t block = slot / LLMC_KV_BLOCK;
  const uint32_t in = uint32_t(slot % LLMC_KV_BLOCK);
  for (uint32_t d = 0; d < layout.group().k_dim; ++d)
    to.push_back({block, l.layerOffset + layout.key(head, in, d), key[d], pairs ? kRotation * pairLength(key, d, pairs) : 0});
  for (uint32_t d = 0; d < layout.group().v_dim; ++d)
    to.push_back({block, l.layerOffset + layout.value(head, in, d), value[d], 0});
}

} // namespace

Matrix ropeTable(const Launch &l) {
  const auto frequencies = l.weights.values(l.weight(0));
  const uint64_t pairs = frequencies->size();
  Matrix y(l.rows, 2 * pairs);
  for (uint64_t t = 0; t < y.rows; ++t)
    for (uint64_t i = 0; i < pairs; ++i) {
      const float angle = float(l.step.positions[t]) * (*frequencies)[i]; // rounded to f32
      y.row(t)[i] = std::cos(double(angle));
      y.row(t)[pairs + i] = std::sin(double(angle));
    }
  return y;
}

Matrix rope(const Launch &l) {
  Matrix y = l.input(0).read(l.rows);
  const Matrix table = l.input(1).read(l.rows);
  const uint64_t dim = uint64_t(l.kernel.headDim);
  for (uint64_t t = 0; t < y.rows; ++t)
    for (uint64_t h = 0; h < y.cols / dim; ++h)
      rotate(y.row(t) + h * dim, table.row(t), table.cols / 2);
  return y;
}

Expected kvAppend(const Launch &l) {
  const llmc_kv_group_v1 &group = l.cache.layout().group();
  const Matrix keys = l.input(0).read(l.rows), values = l.input(1).read(l.rows);
  expectColumns(l, keys.cols, uint64_t(group.heads) * group.k_dim);
  expectColumns(l, values.cols, uint64_t(group.heads) * group.v_dim);
  Expected expected;
  for (uint64_t t = 0; t < l.rows; ++t)
    for (uint32_t h = 0; h < group.heads; ++h)
      write(l, t, h, keys.row(t) + uint64_t(h) * group.k_dim, values.row(t) + uint64_t(h) * group.v_dim, 0, expected.cache);
  return expected;
}

// Columns: query heads, key heads, value heads.
Expected ropeAppend(const Launch &l) {
  const llmc_kv_group_v1 &group = l.cache.layout().group();
  const uint64_t dim = uint64_t(l.kernel.headDim);
  Matrix x = l.input(0).read(l.rows);
  const Matrix table = l.input(1).read(l.rows);
  const uint64_t queries = l.result().cols, pairs = table.cols / 2;
  expectColumns(l, x.cols, queries + 2 * group.heads * dim);
  Expected expected{Matrix(l.rows, queries), {}};
  for (uint64_t t = 0; t < l.rows; ++t) {
    double *row = x.row(t);
    for (uint64_t h = 0; h < queries / dim + group.heads; ++h)
      rotate(row + h * dim, table.row(t), pairs);
    std::copy_n(row, queries, expected.result.row(t));
    const double *keys = row + queries, *values = keys + group.heads * dim;
    for (uint32_t h = 0; h < group.heads; ++h)
      write(l, t, h, keys + h * dim, values + h * dim, pairs, expected.cache);
  }
  return expected;
}

} // namespace llmc::kernel_check
