//===- AttentionTest.cpp - attention over a paged cache -------------------===//
//
// Against softmax in double precision, and bits: a token's result is a function of its query, its position and the cached
// tokens it sees, whatever tile it is computed in (q1, or q4 with 1 to 4 tokens of the sequence), how the sequence is cut
// into steps, which blocks it was given and what else is in the batch.
//
// What a kernel may find in memory that no token owns: pages of other sequences and keys past the position of a query may
// hold anything, NaN included (pages are not read, scores are masked). Values past the position in a block that is
// read are multiplied by an exact 0: they may be anything finite, but NaN or infinity there would leak. Blocks
// must therefore be handed out with finite V: a fresh pool is zero, and the runtime scrubs a block that held others.
//
//===----------------------------------------------------------------------===//
#include "Cache.h"
#include "Kernels.h"
#include "Models.h"

#include <algorithm>
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

struct Config {
  int64_t dim, group, window;
  bool formats = false; // bf16, q8 and q16 results too
  bool narrow = false;  // arithmetic bf16: queries and weights of the softmax are rounded
  double cap = 0;       // of scores; 0: none
  bool sinks = false;

  std::string name() const {
    return "d" + std::to_string(dim) + "_g" + std::to_string(group) + "_w" + std::to_string(window) + (narrow ? "_narrow" : "") +
           (cap > 0 ? "_cap" + std::to_string(int(cap)) : "") + (sinks ? "_sinks" : "");
  }
};

/// A number a query head: some below all scores, one above.
Weight sinkWeight(const Config &c) { return Weight("sinks_" + c.name(), DType::F32, 0, 3 * c.group, 11); }

constexpr int64_t kHeads = 3, kLayers = 2, kBlocks = 24, kStride = 5;

/// New tokens [first, first + count) of a sequence that had `first` tokens.
struct Piece {
  int64_t sequence, first, count;
};

/// The sequences' keys, values and queries by position; the same whatever the batch.
struct Sequences {
  static constexpr int64_t kLength = 70;
  int64_t dim, group;
  std::vector<Rows<float>> keys, values, queries;

  Sequences(int64_t count, int64_t dim, int64_t group) : dim(dim), group(group) {
    for (int64_t s = 0; s < count; ++s) {
      keys.push_back(randomRows(kLength, kHeads * dim, 50 + s));
      values.push_back(randomRows(kLength, kHeads * dim, 60 + s));
      queries.push_back(randomRows(kLength, kHeads * group * dim, 70 + s));
    }
  }
};

/// One step: queries of all pieces in one batch, a cache that holds what they see, and block tables.
template <typename T> struct Step {
  const Sequences &all;
  std::vector<Piece> pieces;
  Cache<T> cache;
  Array<int32_t> table;
  Rows<float> queries;
  bool narrow;
  void *sinks = nullptr; // the packed weight

  static int64_t tokens(const std::vector<Piece> &pieces) {
    return std::accumulate(pieces.begin(), pieces.end(), int64_t(0), [](int64_t n, const Piece &p) { return n + p.count; });
  }

  Step(const Sequences &all, const std::vector<Piece> &pieces, unsigned seed, bool narrow = false)
      : all(all), pieces(pieces), cache(kBlocks, kLayers, kHeads, all.dim, 0xff), table(pages(pieces.size(), seed)),
        queries(tokens(pieces), kHeads * all.group * all.dim, /*slack=*/16), narrow(narrow) { // tiles are read whole (tile.kernel)
    int64_t row = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece &p = pieces[i];
      int64_t length = p.first + p.count;
      for (int64_t position = 0; position < alignUp(length, 16); ++position) {
        int64_t slot = table[i * kStride + position / 16] * 16 + position % 16;
        for (int64_t h = 0; h < kHeads; ++h) {
          if (position < length)
            cache.write(1, slot, h, all.keys[p.sequence].row(position) + h * all.dim, all.values[p.sequence].row(position) + h * all.dim);
          else // stale: K stays NaN, V is finite
            for (int64_t d = 0; d < all.dim; ++d)
              cache.value(1, slot, h, d) = Cache<T>::element(d % 2 ? 1e30f : -1e30f);
        }
      }
      for (int64_t t = 0; t < p.count; ++t, ++row)
        std::memcpy(queries.row(row), all.queries[p.sequence].row(p.first + t), queries.stride * sizeof(float));
    }
  }

  static std::vector<int32_t> pages(size_t sequences, unsigned seed) {
    std::vector<int32_t> pages(kBlocks);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(seed));
    pages.resize(sequences * kStride);
    return pages;
  }

  /// Query tiles of 1 to `most` tokens, cut at random places.
  std::vector<llmc_query_tile> tiles(int64_t most, unsigned seed) const {
    std::mt19937 random(seed);
    std::vector<llmc_query_tile> result;
    int32_t row = 0;
    for (size_t i = 0; i < pieces.size(); ++i)
      for (int64_t t = 0; t < pieces[i].count;) {
        int64_t count = seed ? random() % most + 1 : most;
        count = std::min(count, pieces[i].count - t);
        result.push_back({row, int32_t(count), int32_t(pieces[i].first + t), int32_t(i * kStride)});
        row += count;
        t += count;
      }
    return result;
  }

  template <typename R> void run(const Variant &variant, const Array<llmc_query_tile> &tiles, std::vector<R *> results) {
    Rows<uint16_t> rounded(queries.rows, queries.cols, /*slack=*/16);
    for (int64_t r = 0; r < queries.rows; ++r)
      for (int64_t c = 0; c < queries.cols; ++c)
        rounded.at(r, c) = f32ToBf16(queries.at(r, c));
    std::vector<void *> arguments{narrow ? static_cast<void *>(rounded.data()) : queries.data(), cache.layer(1)};
    if (sinks)
      arguments.push_back(sinks);
    arguments.insert(arguments.end(), {table.data(), tiles.data()});
    arguments.insert(arguments.end(), results.begin(), results.end());
    variant.launch(arguments, tiles.size(), tiles.size());
  }
  Rows<float> run(const Variant &variant, unsigned seed) {
    Rows<float> result = resultRows<float>(queries.rows, queries.cols);
    run<float>(variant, Array(tiles(variant.rowBlock, seed)), {result.data()});
    return result;
  }
};

template <typename T> double asDouble(float x) { return sizeof(T) == 2 ? bf16ToF32(f32ToBf16(x)) : x; }

/// Softmax in double precision of one token and query head.
template <typename T>
std::vector<double> reference(const Sequences &all, int64_t sequence, int64_t position, int64_t head, const Config &config, double scale) {
  int64_t window = config.window;
  bool narrow = config.narrow;
  int64_t kvHead = head / all.group, first = window ? std::max<int64_t>(0, position - window + 1) : 0;
  const float *query = all.queries[sequence].row(position) + head * all.dim;
  std::vector<double> scores, result(all.dim);
  for (int64_t j = first; j <= position; ++j) {
    double score = 0;
    for (int64_t d = 0; d < all.dim; ++d)
      score += (narrow ? asDouble<uint16_t>(query[d]) : double(query[d])) * asDouble<T>(all.keys[sequence].at(j, kvHead * all.dim + d));
    scores.push_back(config.cap > 0 ? config.cap * std::tanh(score * scale / config.cap) : score * scale);
  }
  double sink = config.sinks ? sinkWeight(config).values[head] : -INFINITY;
  double most = *std::max_element(scores.begin(), scores.end()), sum = std::exp(sink - most);
  for (double &score : scores)
    sum += score = std::exp(score - most);
  for (int64_t j = first; j <= position; ++j)
    for (int64_t d = 0; d < all.dim; ++d)
      result[d] += scores[j - first] / sum * asDouble<T>(all.values[sequence].at(j, kvHead * all.dim + d));
  return result;
}

template <typename T> void expectNear(const Step<T> &step, const Rows<float> &got, const Config &config, double scale) {
  // Values are of size 1 to 4; scores are f32 sums of `dim` products; in bf16 the weights of a mean are off by 2^-9 each.
  const double bound = config.narrow ? 4.0 / 512 : 4e-6;
  int64_t row = 0;
  double worst = 0;
  for (const Piece &piece : step.pieces)
    for (int64_t t = 0; t < piece.count; ++t, ++row)
      for (int64_t head = 0; head < kHeads * config.group; ++head) {
        std::vector<double> expected = reference<T>(step.all, piece.sequence, piece.first + t, head, config, scale);
        for (int64_t d = 0; d < config.dim; ++d)
          worst = std::max(worst, std::isnan(got.at(row, head * config.dim + d)) ? INFINITY : std::fabs(got.at(row, head * config.dim + d) - expected[d]));
      }
  EXPECT_LE(worst, bound) << config.name();
}

/// The rows of `whole` that hold the pieces' tokens.
template <typename T> Rows<float> pick(const Step<T> &step, const Rows<float> &whole, const std::vector<Piece> &pieces) {
  Rows<float> result(Step<T>::tokens(pieces), whole.cols);
  int64_t row = 0;
  for (const Piece &wanted : pieces) {
    int64_t at = 0;
    for (const Piece &have : step.pieces) {
      for (int64_t t = 0; t < have.count; ++t, ++at)
        if (have.sequence == wanted.sequence && have.first + t >= wanted.first && have.first + t < wanted.first + wanted.count)
          std::memcpy(result.row(row++), whole.row(at), whole.stride * sizeof(float));
    }
  }
  EXPECT_EQ(row, result.rows);
  return result;
}

template <typename C, typename T> void expectCodes(const Dispatch &dispatch, Step<T> &step, const Rows<float> &values) {
  CodedRows<C> expected = modelQuantize<C>(values);
  for (const Variant &variant : dispatch.variants) {
    CodedRows<C> got = CodedRows<C>::result(values.rows, values.cols);
    step.template run<void>(variant, Array(step.tiles(variant.rowBlock, 6)), {got.codes.data(), got.scales.data()});
    expectBits(got.codes, expected.codes, variant.kernel + " codes");
    expectBits(got.scales, expected.scales, variant.kernel + " scales");
  }
}

template <typename T> void testConfig(const Kernels &kernels, const Config &config, double scale) {
  Sequences all(4, config.dim, config.group);
  Weight sinks = sinkWeight(config);
  void *own = config.sinks ? sinks.packed.data() : nullptr;
  const Dispatch &dispatch = kernels[config.name()];
  ASSERT_EQ(dispatch.variants.size(), 2u);
  const Variant &one = dispatch.variants[0], &four = dispatch.variants[1];
  ASSERT_EQ(one.rowBlock, 1u);
  ASSERT_EQ(four.rowBlock, 4u);

  // A cold prompt, a decode at a block's last token, one at its first, a chunk over two block borders.
  Step<T> step(all, {{0, 0, 37}, {1, 15, 1}, {2, 32, 1}, {3, 41, 29}}, 1, config.narrow);
  step.sinks = own;
  Rows<float> expected = step.run(one, 0);
  expectNear(step, expected, config, scale);
  for (int64_t row = 0; row < expected.rows; ++row)
    for (int64_t c = expected.cols; c < expected.stride; ++c)
      ASSERT_EQ(std::bit_cast<uint32_t>(expected.at(row, c)), 0u) << "padding of row " << row << ", column " << c;
  for (unsigned seed = 0; seed < 4; ++seed)
    expectBits(step.run(four, seed), expected, four.kernel + " tiles " + std::to_string(seed));

  // In steps of other sizes, other company and other pages.
  std::vector<std::vector<Piece>> batches = {{{0, 0, 5}}, {{3, 50, 3}, {0, 5, 20}}, {{0, 36, 1}, {2, 32, 1}, {3, 69, 1}, {1, 15, 1}}};
  for (const std::vector<Piece> &batch : batches) {
    Step<T> other(all, batch, 2 + batch.size(), config.narrow);
    other.sinks = own;
    for (const Variant &variant : dispatch.variants)
      expectBits(other.run(variant, 0), pick(step, expected, batch), variant.kernel + " in other steps");
  }

  // Neighbours in a tile that are NaN.
  Step<T> spoiled(all, {{3, 41, 29}}, 9, config.narrow);
  spoiled.sinks = own;
  for (int64_t row = 0; row < spoiled.queries.rows; row += 2)
    for (int64_t c = 0; c < spoiled.queries.cols; ++c)
      spoiled.queries.at(row, c) = NAN;
  Rows<float> got = spoiled.run(four, 0), clean = pick(step, expected, spoiled.pieces);
  for (int64_t row = 1; row < got.rows; row += 2)
    ASSERT_EQ(std::memcmp(got.row(row), clean.row(row), got.cols * sizeof(float)), 0) << four.kernel << " beside NaN, row " << row;

  if (!config.formats)
    return;
  Rows<uint16_t> rounded = modelRound(expected);
  for (const Variant &variant : kernels[config.name() + "_bf16"].variants) {
    Rows<uint16_t> bf16 = resultRows<uint16_t>(expected.rows, expected.cols);
    step.template run<uint16_t>(variant, Array(step.tiles(variant.rowBlock, 5)), {bf16.data()});
    expectBits(bf16, rounded, variant.kernel);
  }
  expectCodes<int8_t>(kernels[config.name() + "_q8"], step, expected);
  expectCodes<int16_t>(kernels[config.name() + "_q16"], step, expected);
}

/// Configs of different head_dim.
template <typename T> void testAttention(const std::vector<Config> &configs) {
  ModuleText text;
  auto scale = [](const Config &c) { return c.dim == 80 ? 0.11 : 1 / std::sqrt(double(c.dim)); };
  for (const Config &c : configs) {
    std::string dim = std::to_string(c.dim), q = tensorType(kHeads * c.group * c.dim, c.narrow ? "bf16" : "f32");
    std::string kv = "!lm.kv<heads = 3, k_dim = " + dim + ", v_dim = " + dim + ", element = " + (sizeof(T) == 2 ? "bf16" : "f32") +
                     ", block = 16>";
    std::string cache;
    if (c.sinks)
      text.weights += sinkWeight(c).declaration();
    for (int64_t layer = 0; layer < kLayers; ++layer) // the pool's layers are the caches of one type
      cache = text.argument(kv);
    for (std::string format : {"f32", "bf16", "q8", "q16"}) {
      if (format != "f32" && !c.formats)
        continue;
      std::string name = c.name() + (format == "f32" ? "" : "_" + format);
      text.op(format[0] == 'q' ? "%c" + name + ", %s" + name : "%" + name,
              "lm.attention " + text.argument(q) + ", " + cache + " {head_dim = " + dim + ", scale = " + std::to_string(scale(c)) +
                  ", window = " + std::to_string(c.window) + ", format = #lm.format<" + format + ">" +
                  (c.narrow ? ", arith = #lm.arith<bf16>" : "") + (c.cap > 0 ? ", soft_cap = " + std::to_string(c.cap) : "") +
                  (c.sinks ? ", sinks = @sinks_" + c.name() : "") + "} : (" + q + ", " + kv + ") -> " +
                  resultTypes(kHeads * c.group * c.dim, format),
              name);
    }
  }
  Kernels kernels(text.str());
  FlushDenormals flush;
  for (const Config &c : configs) {
    SCOPED_TRACE(c.name());
    testConfig<T>(kernels, c, std::stod(std::to_string(scale(c))));
    if (testing::Test::HasFatalFailure())
      return;
  }
}

TEST(Attention, BF16) {
  testAttention<uint16_t>({{16, 1, 0}, {32, 3, 5}, {64, 3, 0, true}, {80, 4, 0}, {96, 1, 5}, {128, 4, 0}});
}
TEST(Attention, Narrow) {
  forEveryIsa([] { testAttention<uint16_t>({{16, 1, 5, false, true}, {64, 3, 0, true, true}}); });
}
TEST(Attention, SoftCap) {
  testAttention<float>({{16, 4, 0, false, false, 3}, {64, 3, 5, false, false, 2}});
  testAttention<uint16_t>({{64, 3, 0, true, true, 2}});
}
TEST(Attention, Sinks) {
  testAttention<float>({{16, 4, 0, false, false, 0, true}, {64, 3, 5, false, false, 2, true}});
  testAttention<uint16_t>({{64, 3, 0, true, true, 0, true}});
}
TEST(Attention, F32) { testAttention<float>({{16, 4, 0}, {64, 3, 5}, {128, 1, 0}}); }

} // namespace
