// What the compiler generates, written by hand for FakeModel.h. LLMC_FAKE_FAULT plants a fault
// in the attention kernel; LLMC_FAKE_SLOW makes every step take 2 ms.
#include "FakeModel.h"

#include <cstring>
#ifdef LLMC_FAKE_SLOW
#include <unistd.h>
#endif

using namespace fake;

namespace {

constexpr uint64_t rows(uint64_t n) { return (n + 15) / 16 * 16; }
constexpr uint64_t kX = 0, kY = kX + rows(kMaxTokens) * kHidden * 4, kG = kY + rows(kMaxTokens) * kHidden * 4,
                   kLogits = kG + rows(kMaxLogits) * kHidden * 4,
                   kArena = kLogits + rows(kMaxLogits) * kPaddedVocab * 4;

// Works on both weight forms: row-major f32 here, unpacked in the reference.
void embed(void *const *args, int64_t, int64_t begin, int64_t end) {
  auto *ids = static_cast<const int32_t *>(args[0]);
  auto *w = static_cast<const float *>(args[1]);
  auto *x = static_cast<float *>(args[2]);
#ifdef LLMC_FAKE_SLOW
  usleep(2000);
#endif
  for (int64_t t = begin; t < end; ++t)
    std::memcpy(x + t * kHidden, w + int64_t(ids[t]) * kHidden, kHidden * 4);
}

void append(void *const *args, int64_t, int64_t begin, int64_t end) {
  auto *x = static_cast<const float *>(args[0]);
  auto *slots = static_cast<const int32_t *>(args[1]);
  auto *kv = static_cast<char *>(args[2]);
  for (int64_t t = begin; t < end; ++t) {
    if (slots[t] < 0)
      continue;
    auto *k = reinterpret_cast<float *>(kv + slots[t] / 16 * int64_t(kBlockBytes));
    float *v = k + kHidden * 16;
    for (uint32_t j = 0; j < kHidden; ++j) {
      k[j * 16 + slots[t] % 16] = x[t * kHidden + j];
      v[slots[t] % 16 * kHidden + j] = x[t * kHidden + j];
    }
  }
}

void attention(void *const *args, int64_t, int64_t begin, int64_t end) {
  auto *tiles = static_cast<const llmc_query_tile *>(args[0]);
  auto *table = static_cast<const int32_t *>(args[1]);
  auto *kv = static_cast<const char *>(args[2]);
  auto *y = static_cast<float *>(args[3]);
  for (int64_t u = begin; u < end; ++u)
    for (int32_t i = 0; i < tiles[u].count; ++i)
      for (uint32_t j = 0; j < kHidden; ++j) {
        float sum = 0;
        const int32_t last = tiles[u].position + i;
        for (int32_t p = 0; p <= last; ++p) {
          auto *v = reinterpret_cast<const float *>(kv + table[tiles[u].table + p / 16] * int64_t(kBlockBytes)) + kHidden * 16;
          sum += v[p % 16 * kHidden + j];
        }
#ifdef LLMC_FAKE_FAULT
        sum *= last == 5 ? 1.5f : 1.0f;
#endif
        y[(tiles[u].first_token + i) * kHidden + j] = sum / float(last + 1);
      }
}

void gather(void *const *args, int64_t, int64_t begin, int64_t end) {
  auto *rows = static_cast<const int32_t *>(args[0]);
  auto *x = static_cast<const float *>(args[1]);
  auto *y = static_cast<const float *>(args[2]);
  auto *g = static_cast<float *>(args[3]);
  for (int64_t i = begin; i < end; ++i)
    for (uint32_t j = 0; j < kHidden; ++j)
      g[i * kHidden + j] = x[rows[i] * kHidden + j] + y[rows[i] * kHidden + j];
}

// Two column blocks; rowBlock rows a unit.
template <int64_t rowBlock> void head(void *const *args, int64_t rows, int64_t begin, int64_t end) {
  auto *g = static_cast<const float *>(args[0]);
  auto *w = static_cast<const float *>(args[1]);
  auto *logits = static_cast<float *>(args[2]);
  for (int64_t u = begin; u < end; ++u) {
    const int64_t r0 = u / 2 * rowBlock, r1 = r0 + rowBlock < rows ? r0 + rowBlock : rows;
    for (int64_t i = r0; i < r1; ++i)
      for (uint32_t v = uint32_t(u % 2) * kPaddedVocab / 2; v < uint32_t(u % 2 + 1) * kPaddedVocab / 2; ++v) {
        float sum = 0;
        for (uint32_t j = 0; j < kHidden; ++j)
          sum = __builtin_fmaf(g[i * kHidden + j], w[(v / 16 * kHidden + j) * 16 + v % 16], sum);
        logits[i * kPaddedVocab + v] = sum;
      }
  }
}

void referenceAttention(void *const *args, int64_t, int64_t begin, int64_t end) {
  auto *x = static_cast<const float *>(args[0]);
  auto *y = static_cast<float *>(args[1]);
  for (int64_t t = begin; t < end; ++t)
    for (uint32_t j = 0; j < kHidden; ++j) {
      float sum = 0;
      for (int64_t p = 0; p <= t; ++p)
        sum += x[p * kHidden + j];
      y[t * kHidden + j] = sum / float(t + 1);
    }
}

void referenceHead(void *const *args, int64_t, int64_t begin, int64_t end) {
  auto *g = static_cast<const float *>(args[0]);
  auto *w = static_cast<const float *>(args[1]);
  auto *logits = static_cast<float *>(args[2]);
  for (int64_t i = begin; i < end; ++i)
    for (uint32_t v = 0; v < kVocab; ++v) {
      float sum = 0;
      for (uint32_t j = 0; j < kHidden; ++j)
        sum += g[i * kHidden + j] * w[v * kHidden + j];
      logits[i * kPaddedVocab + v] = sum;
    }
}

const void *code(llmc_kernel_fn kernel) { return reinterpret_cast<const void *>(kernel); }
constexpr llmc_arg_v1 arena(uint64_t at) { return {LLMC_ARG_ARENA, 0, at}; }
constexpr llmc_arg_v1 step(uint64_t field) { return {LLMC_ARG_STEP, 0, field}; }
constexpr llmc_arg_v1 weight(uint64_t at) { return {LLMC_ARG_WEIGHT, 0, at}; }
constexpr llmc_arg_v1 unpacked(uint64_t index) { return {LLMC_ARG_WEIGHT_F32, 0, index}; }
constexpr llmc_arg_v1 kv() { return {LLMC_ARG_KV, 0, 0}; }

const llmc_arg_v1 embedArgs[] = {step(LLMC_FIELD_TOKEN_IDS), weight(0), arena(kX)};
const llmc_arg_v1 appendArgs[] = {arena(kX), step(LLMC_FIELD_SLOTS), kv()};
const llmc_arg_v1 attentionArgs[] = {step(LLMC_FIELD_QUERY_TILES), step(LLMC_FIELD_BLOCK_TABLE), kv(), arena(kY)};
const llmc_arg_v1 gatherArgs[] = {step(LLMC_FIELD_LOGITS_ROWS), arena(kX), arena(kY), arena(kG)};
const llmc_arg_v1 headArgs[] = {arena(kG), weight(kHeadOffset), arena(kLogits)};
const llmc_variant_v1 embedForms[] = {{UINT32_MAX, 1, 1, 0, code(embed), "embed"}};
const llmc_variant_v1 appendForms[] = {{UINT32_MAX, 1, 1, 0, code(append), "append"}};
const llmc_variant_v1 attentionForms[] = {{1, 1, 1, 0, code(attention), "attention_1"}, {UINT32_MAX, 4, 1, 0, code(attention), "attention_4"}};
const llmc_variant_v1 gatherForms[] = {{UINT32_MAX, 1, 1, 0, code(gather), "gather"}};
const llmc_variant_v1 headForms[] = {{1, 1, 2, 0, code(head<1>), "head_1"}, {UINT32_MAX, 3, 2, 0, code(head<3>), "head_3"}};
const llmc_value_v1 embedValue[] = {{"embedding", kX, LLMC_F32, LLMC_ROWS_TOKENS, kHidden, kHidden, 0}};
const llmc_value_v1 attentionValue[] = {{"blk.0.attention", kY, LLMC_F32, LLMC_ROWS_TOKENS, kHidden, kHidden, 0}};
const llmc_value_v1 logitsValue[] = {{"logits", kLogits, LLMC_F32, LLMC_ROWS_LOGITS, kVocab, kPaddedVocab, 0}};
const llmc_launch_v1 launches[] = {
    {0, LLMC_ROWS_TOKENS, -1, 1, 3, 1, embedForms, embedArgs, embedValue, "token_embd", 0, 0},
    {1, LLMC_ROWS_TOKENS, 0, 1, 3, 0, appendForms, appendArgs, nullptr, "blk.0.kv_append", 1, 0},
    {2, LLMC_ROWS_QUERY_TILES, 0, 2, 4, 1, attentionForms, attentionArgs, attentionValue, "blk.0.attention", 2, 0},
    {3, LLMC_ROWS_LOGITS, -1, 1, 4, 0, gatherForms, gatherArgs, nullptr, "gather", 3, 0},
    {4, LLMC_ROWS_LOGITS, -1, 2, 3, 1, headForms, headArgs, logitsValue, "output", 4, 0}};

const llmc_arg_v1 refEmbedArgs[] = {step(LLMC_FIELD_TOKEN_IDS), unpacked(0), arena(kX)};
const llmc_arg_v1 refAttentionArgs[] = {arena(kX), arena(kY)};
const llmc_arg_v1 refHeadArgs[] = {arena(kG), unpacked(1), arena(kLogits)};
const llmc_variant_v1 refAttentionForms[] = {{UINT32_MAX, 1, 1, 0, code(referenceAttention), "ref_attention"}};
const llmc_variant_v1 refHeadForms[] = {{UINT32_MAX, 1, 1, 0, code(referenceHead), "ref_head"}};
const llmc_launch_v1 referenceLaunches[] = {
    {0, LLMC_ROWS_TOKENS, -1, 1, 3, 1, embedForms, refEmbedArgs, embedValue, "token_embd", UINT32_MAX, 0},
    {1, LLMC_ROWS_TOKENS, 0, 1, 2, 1, refAttentionForms, refAttentionArgs, attentionValue, "blk.0.attention", UINT32_MAX, 0},
    {2, LLMC_ROWS_LOGITS, -1, 1, 4, 0, gatherForms, gatherArgs, nullptr, "gather", UINT32_MAX, 0},
    {3, LLMC_ROWS_LOGITS, -1, 1, 3, 1, refHeadForms, refHeadArgs, logitsValue, "output", UINT32_MAX, 0}};

const llmc_kv_group_v1 groups[] = {{LLMC_F32, 1, 1, kHidden, kHidden, 0, kBlockBytes, kHeadBytes, kHeadBytes}};
const llmc_weight_v1 weightTable[] = {
    {"token_embd.weight", 0, kEmbeddingBytes, LLMC_LAYOUT_ROWS_F32, 0, kVocab, kHidden, kPaddedVocab, kHidden},
    {"output.weight", kHeadOffset, kWeightsBytes - kHeadOffset, LLMC_LAYOUT_N16_F32, 0, kVocab, kHidden, kPaddedVocab, kHidden}};

} // namespace

extern "C" __attribute__((visibility("default"))) const llmc_module_v1 fakeModule __asm__("llmc_module_v1") = {
    sizeof(llmc_module_v1), LLMC_ABI_VERSION, "cpu", "avx2", kMaxTokens, kMaxSeqs, kMaxLogits, kVocab, kPaddedVocab,
    kHidden, kHidden, kMaxContext, 1, 1, 2, 5, groups, weightTable, kWeightsBytes,
    {5, 0, launches, kArena, kLogits, kG, UINT64_MAX}, {4, 0, referenceLaunches, kArena, kLogits, UINT64_MAX, UINT64_MAX}, fakeCosts};
