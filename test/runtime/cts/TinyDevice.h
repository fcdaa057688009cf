// A device of eight launches in plain loops, in which faults can be planted, for the tests of llmc-kernel-check.
#ifndef LLMC_TEST_RUNTIME_CTS_TINYDEVICE_H
#define LLMC_TEST_RUNTIME_CTS_TINYDEVICE_H

#include "llmc/Support/Float.h"
#include "runtime/device/CheckStep.h"
#include "runtime/device/Device.h"

#include <cmath>
#include <cstring>
#include <functional>

namespace tiny {

constexpr uint32_t kTokens = 40, kSeqs = 4, kLogits = 5, kVocab = 45, kHidden = 20, kDim = 16, kContext = 70, kWindow = 5;
constexpr uint32_t kBlocks = 14, kBlockBytes = 16 * 2 * kDim * 2;
/// Byte offsets in the arena and in the weights.
enum : uint64_t { kX = 0, kRounded = 8192, kKeys = 16384, kAttention = 24576, kGathered = 32768, kScores = 40960, kIds = 49152, kArena = 53248 };
enum : uint64_t { kTable = 0, kProjection = 8192, kHead = 16384, kWeights = 24576 };
enum LaunchNumber { Embedding, Round, Project, Append, Attend, Gather, Head, Argmax, kLaunches };

/// Launch arguments, values and variants with the lifetime of the device.
struct Tables {
  llmc_weight_v1 weights[3] = {weight("table", kTable, kVocab, kHidden), weight("projection", kProjection, kDim, kHidden),
                               weight("head", kHead, kVocab, kHidden)};
  llmc_kv_group_v1 group{LLMC_BF16, 1, 1, kDim, kDim, 0, kBlockBytes, kBlockBytes, kBlockBytes};
  const char *kernels[kLaunches] = {"embedding_f32_20", "round_20_bf16", "linear_f32_f32_20x16_m1", "kv_append_1x16",
                                    "attention_1_1x16_f32_w5_q1", "gather_rows_20", "linear_f32_f32_20x45_m1", "argmax_45"};
  llmc_variant_v1 variants[kLaunches];
  std::vector<llmc_arg_v1> args[kLaunches] = {
      {weightArg(kTable), field(LLMC_FIELD_TOKEN_IDS), arena(kX)},
      {arena(kX), arena(kRounded)},
      {arena(kX), weightArg(kProjection), arena(kKeys)},
      {{LLMC_ARG_KV, 0, 0}, arena(kKeys), arena(kKeys), field(LLMC_FIELD_SLOTS)},
      {arena(kKeys), {LLMC_ARG_KV, 0, 0}, field(LLMC_FIELD_BLOCK_TABLE), field(LLMC_FIELD_QUERY_TILES), arena(kAttention)},
      {arena(kX), field(LLMC_FIELD_LOGITS_ROWS), arena(kGathered)},
      {arena(kGathered), weightArg(kHead), arena(kScores)},
      {arena(kScores), arena(kIds)}};
  std::vector<llmc_value_v1> values[kLaunches] = {
      {{"x", kX, LLMC_F32, LLMC_ROWS_TOKENS, kHidden, 32, 0}},
      {{"rounded", kRounded, LLMC_BF16, LLMC_ROWS_TOKENS, kHidden, 32, 0}},
      {{"keys", kKeys, LLMC_F32, LLMC_ROWS_TOKENS, kDim, 32, 0}},
      {},
      {{"attention", kAttention, LLMC_F32, LLMC_ROWS_TOKENS, kDim, 32, 0}},
      {{"gathered", kGathered, LLMC_F32, LLMC_ROWS_LOGITS, kHidden, 32, 0}},
      {{"logits", kScores, LLMC_F32, LLMC_ROWS_LOGITS, kVocab, 64, 0}},
      {{"ids", kIds, LLMC_I32, LLMC_ROWS_LOGITS, 1, 1, 0}}};
  llmc_launch_v1 launches[kLaunches];
  llmc_module_v1 module{};

  Tables() {
    for (uint32_t i = 0; i < kLaunches; ++i) {
      variants[i] = {UINT32_MAX, 1, 1, 0, nullptr, kernels[i]};
      launches[i] = {i, i < Gather ? uint32_t(LLMC_ROWS_TOKENS) : uint32_t(LLMC_ROWS_LOGITS), 0, 1, uint32_t(args[i].size()),
                     uint32_t(values[i].size()), &variants[i], args[i].data(), values[i].data(), kernels[i]};
    }
    module.struct_size = sizeof module;
    module.version = LLMC_ABI_VERSION;
    module.target = "cpu";
    module.isa = "tiny";
    module.max_tokens = kTokens, module.max_seqs = kSeqs, module.max_logits = kLogits;
    module.vocab = kVocab, module.padded_vocab = 64, module.hidden = kHidden, module.padded_hidden = 32;
    module.max_context = kContext;
    module.num_layers = module.num_kv_groups = 1;
    module.num_weights = 3;
    module.kv_groups = &group;
    module.weights = weights;
    module.weights_bytes = kWeights;
    module.program = {kLaunches, 0, launches, kArena, kScores, UINT64_MAX, kIds};
  }
  Tables(const Tables &) = delete;

  static llmc_weight_v1 weight(const char *name, uint64_t offset, uint64_t rows, uint64_t cols) {
    return {name, offset, rows * 32 * 4, LLMC_LAYOUT_ROWS_F32, 0, rows, cols, (rows + 31) / 32 * 32, 32};
  }
  static llmc_arg_v1 arena(uint64_t offset) { return {LLMC_ARG_ARENA, 0, offset}; }
  static llmc_arg_v1 weightArg(uint64_t offset) { return {LLMC_ARG_WEIGHT, 0, offset}; }
  static llmc_arg_v1 field(uint64_t which) { return {LLMC_ARG_STEP, 0, which}; }
};

class TinyDevice : public llmc::Device {
public:
  /// Called after every launch, before its observer.
  std::function<void(LaunchNumber, TinyDevice &)> fault;
  std::vector<std::byte> arena = std::vector<std::byte>(kArena), pool = std::vector<std::byte>(kBlocks * kBlockBytes);
  const llmc_step_v1 *current = nullptr;
  uint32_t window = kWindow;

  TinyDevice() {
    weights_.resize(kWeights / 4);
    // Rows 3 and 30 of the head are equal, and large: ties.
    for (const llmc_weight_v1 &w : tables_.weights)
      for (uint64_t r = 0; r < w.rows; ++r)
        for (uint64_t c = 0; c < w.cols; ++c) {
          const bool large = w.offset == kHead && (r == 3 || r == 30);
          weights_[w.offset / 4 + r * 32 + c] = value(w.offset + (large ? 3 : r) * 64 + c) * (large ? 9.f : 1.f);
        }
  }

  float *row(uint64_t offset, uint64_t r, uint64_t stride = 32) { return reinterpret_cast<float *>(arena.data() + offset) + r * stride; }
  uint16_t *rounded(uint64_t r) { return reinterpret_cast<uint16_t *>(arena.data() + kRounded) + r * 32; }
  /// Elements of the pool, by the layout of abi.h for 16-bit elements on a CPU.
  uint16_t *key(int32_t slot, uint32_t d) { return element(slot, (d / 2 * 16 + uint32_t(slot) % 16) * 2 + d % 2); }
  uint16_t *cached(int32_t slot, uint32_t d) {
    return element(slot, 16 * kDim + (uint32_t(slot) % 16 / 2 * kDim + d) * 2 + uint32_t(slot) % 2);
  }

  const llmc_module_v1 &module() const override { return tables_.module; }
  unsigned threads() const override { return 1; }
  llmc::DeviceInfo info() const override { return {"tiny", "loops", 0, 0, 0}; }
  void reference(std::span<const int32_t>, float *) override {}
  void setObserver(llmc::LaunchObserver o) override { observer_ = std::move(o); }
  uint32_t numBlocks() const override { return kBlocks; }
  uint64_t blockBytes() const override { return kBlockBytes; }
  void zeroBlocks(std::span<const int32_t>) override {}
  void copyBlocks(std::span<const std::pair<int32_t, int32_t>>) override {}
  void readBlock(int32_t block, void *to) const override { std::memcpy(to, pool.data() + size_t(block) * kBlockBytes, kBlockBytes); }
  const std::byte *weights() const override { return reinterpret_cast<const std::byte *>(weights_.data()); }
  void startBackground() override {}
  void finishBackground() override {}
  llmc::Ledger ledger() const override { return {}; }

  void step(const llmc_step_v1 &s) override {
    llmc::checkStep(module(), s, kBlocks);
    current = &s;
    for (int i = 0; i < kLaunches; ++i) {
      launch(LaunchNumber(i), s);
      if (fault)
        fault(LaunchNumber(i), *this);
      if (observer_)
        observer_({tables_.launches[i], arena.data(), i < Gather ? s.num_tokens : s.num_logits, s.num_tokens, s.num_logits, s.num_seqs,
                   tables_.variants[i], 0});
    }
  }

private:
  static float value(uint64_t i) { return float(int32_t(i * 2654435761u >> 7 & 65535) - 32768) / 32768; }
  uint16_t *element(int32_t slot, uint32_t i) { return reinterpret_cast<uint16_t *>(pool.data() + size_t(slot / 16) * kBlockBytes) + i; }
  const float *weightRow(uint64_t offset, uint64_t r) const { return weights_.data() + offset / 4 + r * 32; }

  void product(uint64_t from, uint64_t weight, uint64_t to, uint32_t rows, uint32_t columns, uint64_t stride) {
    for (uint32_t t = 0; t < rows; ++t)
      for (uint32_t n = 0; n < columns; ++n) {
        float sum = 0;
        for (uint32_t k = 0; k < kHidden; ++k)
          sum += row(from, t)[k] * weightRow(weight, n)[k];
        row(to, t, stride)[n] = sum;
      }
  }

  // Softmax over exact scores; positions (p - window, p].
  void attend(const llmc_step_v1 &s) {
    for (uint32_t q = 0; q < s.num_seqs; ++q)
      for (int32_t t = s.seq_starts[q]; t < s.seq_starts[q + 1]; ++t) {
        float out[kDim] = {}, sum = 0;
        const int32_t last = s.positions[t];
        for (int32_t j = std::max(0, last - int32_t(window) + 1); j <= last; ++j) {
          const int32_t slot = s.kv[0].block_table[q * s.kv[0].block_table_stride + uint32_t(j / 16)] * 16 + j % 16;
          float score = 0;
          for (uint32_t d = 0; d < kDim; ++d)
            score += row(kKeys, uint32_t(t))[d] * llmc::bf16ToF32(*key(slot, d));
          const float p = std::exp(score / 4 - 20);
          sum += p;
          for (uint32_t d = 0; d < kDim; ++d)
            out[d] += p * llmc::bf16ToF32(*cached(slot, d));
        }
        for (uint32_t d = 0; d < kDim; ++d)
          row(kAttention, uint32_t(t))[d] = out[d] / sum;
      }
  }

  void launch(LaunchNumber i, const llmc_step_v1 &s) {
    const uint32_t tokens = s.num_tokens, rows = s.num_logits;
    switch (i) {
    case Embedding:
      for (uint32_t t = 0; t < tokens; ++t)
        std::memcpy(row(kX, t), weightRow(kTable, uint64_t(s.token_ids[t])), 32 * 4);
      return;
    case Round:
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t c = 0; c < 32; ++c)
          rounded(t)[c] = llmc::f32ToBf16(row(kX, t)[c]);
      return;
    case Project:
      return product(kX, kProjection, kKeys, tokens, kDim, 32);
    case Append:
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t d = 0; s.kv[0].slots[t] >= 0 && d < kDim; ++d)
          *key(s.kv[0].slots[t], d) = *cached(s.kv[0].slots[t], d) = llmc::f32ToBf16(row(kKeys, t)[d]);
      return;
    case Attend:
      return attend(s);
    case Gather:
      for (uint32_t r = 0; r < rows; ++r)
        std::memcpy(row(kGathered, r), row(kX, uint32_t(s.logits_rows[r])), 32 * 4);
      return;
    case Head:
      return product(kGathered, kHead, kScores, rows, kVocab, 64);
    default:
      for (uint32_t r = 0; r < rows; ++r) {
        const float *x = row(kScores, r, 64);
        reinterpret_cast<int32_t *>(arena.data() + kIds)[r] = int32_t(std::max_element(x, x + kVocab) - x);
      }
    }
  }

  Tables tables_;
  std::vector<float> weights_;
  llmc::LaunchObserver observer_;
};

} // namespace tiny

#endif // LLMC_TEST_RUNTIME_CTS_TINYDEVICE_H
