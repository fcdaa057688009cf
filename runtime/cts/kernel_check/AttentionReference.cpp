//===- AttentionReference.cpp - softmax over the cache --------------------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/kernel_check/Reference.h"

#include <algorithm>
#include <cmath>

namespace llmc::kernel_check {

namespace {

/// Keys and values of one sequence and KV head: [length, dim].
struct Cached {
  Matrix keys, values;
};

Cached readCache(const Launch &l, uint32_t sequence, uint32_t head, uint64_t length) {
  const KVLayout &layout = l.cache.layout();
  const llmc_kv_group_v1 &group = layout.group();
  Cached c{Matrix(length, group.k_dim), Matrix(length, group.v_dim)};
  const int32_t *table = l.step.table.data() + uint64_t(sequence) * l.step.stride;
  for (uint64_t j = 0; j < length; ++j) {
    const std::byte *layer = l.cache.block(table[j / LLMC_KV_BLOCK]) + l.layerOffset;
    const uint32_t in = uint32_t(j % LLMC_KV_BLOCK);
    for (uint32_t d = 0; d < group.k_dim; ++d)
      c.keys.row(j)[d] = layout.load(layer + layout.key(head, in, d));
    for (uint32_t d = 0; d < group.v_dim; ++d)
      c.values.row(j)[d] = layout.load(layer + layout.value(head, in, d));
  }
  return c;
}

/// Of scores.
struct Scores {
  double scale, cap; ///< cap 0: none
  double of(double product) const { return cap > 0 ? cap * std::tanh(scale * product / cap) : scale * product; }
};

/// out = softmax(scores of query . keys) . values over positions first .. last; `sink`: one more score, without a value.
void attend(const Cached &c, const double *query, const Scores &scores, double sink, uint64_t first, uint64_t last, double *out) {
  std::vector<double> p(last + 1 - first);
  double largest = sink, sum = 0;
  for (uint64_t j = first; j <= last; ++j)
    largest = std::max(largest, p[j - first] = scores.of(dot(query, c.keys.row(j), c.keys.cols)));
  sum = std::exp(sink - largest);
  for (double &score : p)
    sum += score = std::exp(score - largest);
  for (uint64_t j = first; j <= last; ++j)
    for (uint64_t d = 0; d < c.values.cols; ++d)
      out[d] += p[j - first] / sum * c.values.row(j)[d];
}

} // namespace

// On a GPU, and on a CPU where the products are narrow, the query enters its product in bf16 (LMToTile/Attention.cpp); the probabilities
// do, too, which is left to the bound.
Matrix attention(const Launch &l) {
  const llmc_kv_group_v1 &group = l.cache.layout().group();
  Matrix queries = l.input(0).read(l.rows);
  const uint64_t dim = group.k_dim, heads = queries.cols / dim;
  if (dim != uint64_t(l.kernel.headDim) || heads % group.heads || queries.cols % dim)
    throw Error(std::string("launch ") + l.launch.op + ": expected heads of " + std::to_string(dim) + " columns, got " +
                std::to_string(queries.cols) + " columns");
  if (l.gpu || l.kernel.narrow)
    std::transform(queries.values.begin(), queries.values.end(), queries.values.begin(), roundBF16);
  Matrix y(l.rows, heads * group.v_dim);
  const Scores scores{l.kernel.scale > 0 ? double(l.kernel.scale) : 1 / std::sqrt(double(dim)), l.kernel.cap};
  std::vector<double> sinks(heads, -INFINITY);
  if (l.kernel.sinks) {
    const auto values = l.weights.values(l.weight(0));
    if (values->size() != heads)
      throw Error(std::string("launch ") + l.launch.op + ": expected sinks of " + std::to_string(heads) + " heads, got " +
                  std::to_string(values->size()));
    sinks.assign(values->begin(), values->end());
  }
  // A task is a sequence and a KV head.
  parallelFor(uint64_t(l.step.sequences()) * group.heads, [&](uint64_t begin, uint64_t end) {
    for (uint64_t task = begin; task < end; ++task) {
      const uint32_t sequence = uint32_t(task / group.heads), head = uint32_t(task % group.heads);
      const int32_t from = l.step.starts[sequence], to = l.step.starts[sequence + 1];
      if (from == to)
        continue;
      const Cached cached = readCache(l, sequence, head, uint64_t(l.step.lengths[sequence]));
      for (int32_t t = from; t < to; ++t) {
        const int64_t last = l.step.positions[size_t(t)];
        const int64_t first = l.kernel.window ? std::max<int64_t>(0, last - l.kernel.window + 1) : 0;
        const uint64_t shared = heads / group.heads;
        for (uint64_t h = head * shared; h < (head + 1) * shared; ++h)
          attend(cached, queries.row(uint64_t(t)) + h * dim, scores, sinks[h], uint64_t(first), uint64_t(last),
                 y.row(uint64_t(t)) + h * group.v_dim);
      }
    }
  });
  return y;
}

} // namespace llmc::kernel_check
