// FakeModel.h as a module for a GPU: what the compiler generates, written by hand. The code of its kernels is in
// FakeCuda.cpp, which finds it by name.
#include "FakeModel.h"

using namespace fake;

namespace {

constexpr uint64_t rows(uint64_t n) { return (n + 127) / 128 * 128; }
constexpr uint64_t kX = 0, kY = kX + rows(kMaxTokens) * kHidden * 4, kG = kY + rows(kMaxTokens) * kHidden * 4,
                   kLogits = kG + rows(kMaxLogits) * kHidden * 4, kIds = kLogits + rows(kMaxLogits) * kPaddedVocab * 4,
                   kArena = kIds + rows(kMaxLogits) * 4;

const char cubin[] = "fake cubin", ptx[] = "fake ptx";
const llmc_tensor_map_v1 headMap[] = {
    {1, LLMC_F32, 2, 128, {kHidden, kPaddedVocab}, {4, kHidden * 4}, {32, 64}, 0}};
const llmc_cuda_kernel_v1 embed = {cubin, sizeof cubin, ptx, sizeof ptx - 1, 32, 0, 0, 0, nullptr},
                          append = embed, gather = embed, argmax = embed,
                          onlyPtx = {nullptr, 0, ptx, sizeof ptx - 1, 64, 0, 0, 0, nullptr},
                          head = {cubin, sizeof cubin, ptx, sizeof ptx - 1, 128, 100 << 10, 1, 2, headMap};

constexpr llmc_arg_v1 arena(uint64_t at) { return {LLMC_ARG_ARENA, 0, at}; }
constexpr llmc_arg_v1 step(uint64_t field) { return {LLMC_ARG_STEP, 0, field}; }
constexpr llmc_arg_v1 weight(uint64_t at) { return {LLMC_ARG_WEIGHT, 0, at}; }
constexpr llmc_arg_v1 kv() { return {LLMC_ARG_KV, 0, 0}; }

const llmc_arg_v1 embedArgs[] = {step(LLMC_FIELD_TOKEN_IDS), weight(0), arena(kX)};
const llmc_arg_v1 appendArgs[] = {arena(kX), step(LLMC_FIELD_SLOTS), kv(), step(LLMC_FIELD_NUM_BLOCKS)};
const llmc_arg_v1 attentionArgs[] = {step(LLMC_FIELD_QUERY_TILES), step(LLMC_FIELD_BLOCK_TABLE), kv(), arena(kY)};
const llmc_arg_v1 gatherArgs[] = {step(LLMC_FIELD_LOGITS_ROWS), arena(kX), arena(kY), arena(kG)};
const llmc_arg_v1 headArgs[] = {arena(kG), weight(kHeadOffset), arena(kLogits)};
const llmc_arg_v1 argmaxArgs[] = {arena(kLogits), arena(kIds)};
const llmc_variant_v1 embedForms[] = {{UINT32_MAX, 4, 1, 0, &embed, "embed"}};
const llmc_variant_v1 appendForms[] = {{UINT32_MAX, 1, 1, 0, &append, "append"}};
const llmc_variant_v1 attentionForms[] = {{1, 1, 1, 0, &onlyPtx, "attention"}, {UINT32_MAX, 4, 1, 0, &onlyPtx, "attention"}};
const llmc_variant_v1 gatherForms[] = {{UINT32_MAX, 1, 1, 0, &gather, "gather"}};
const llmc_variant_v1 headForms[] = {{UINT32_MAX, 3, 2, 0, &head, "head"}};
const llmc_variant_v1 argmaxForms[] = {{UINT32_MAX, 1, 1, 0, &argmax, "argmax"}};
const llmc_value_v1 embedValue[] = {{"embedding", kX, LLMC_F32, LLMC_ROWS_TOKENS, kHidden, kHidden, 0}};
const llmc_value_v1 attentionValue[] = {{"blk.0.attention", kY, LLMC_F32, LLMC_ROWS_TOKENS, kHidden, kHidden, 0}};
const llmc_value_v1 logitsValue[] = {{"logits", kLogits, LLMC_F32, LLMC_ROWS_LOGITS, kVocab, kPaddedVocab, 0}};
const llmc_launch_v1 launches[] = {
    {0, LLMC_ROWS_TOKENS, -1, 1, 3, 1, embedForms, embedArgs, embedValue, "token_embd", 0, 0},
    {1, LLMC_ROWS_TOKENS, 0, 1, 4, 0, appendForms, appendArgs, nullptr, "blk.0.kv_append", 1, 0},
    {2, LLMC_ROWS_QUERY_TILES, 0, 2, 4, 1, attentionForms, attentionArgs, attentionValue, "blk.0.attention", 2, 0},
    {3, LLMC_ROWS_LOGITS, -1, 1, 4, 0, gatherForms, gatherArgs, nullptr, "gather", 3, 0},
    {4, LLMC_ROWS_LOGITS, -1, 1, 3, 1, headForms, headArgs, logitsValue, "output", 4, 0},
    {5, LLMC_ROWS_LOGITS, -1, 1, 2, 0, argmaxForms, argmaxArgs, nullptr, "argmax", UINT32_MAX, 0}};

const llmc_kv_group_v1 groups[] = {{LLMC_F32, 1, 1, kHidden, kHidden, 0, kBlockBytes, kHeadBytes, kHeadBytes}};
const llmc_weight_v1 weightTable[] = {
    {"token_embd.weight", 0, kEmbeddingBytes, LLMC_LAYOUT_ROWS_F32, 0, kVocab, kHidden, kPaddedVocab, kHidden},
    {"output.weight", kHeadOffset, kWeightsBytes - kHeadOffset, LLMC_LAYOUT_N16_F32, 0, kVocab, kHidden, kPaddedVocab, kHidden}};

} // namespace

extern "C" __attribute__((visibility("default"))) const llmc_module_v1 fakeModule __asm__("llmc_module_v1") = {
    sizeof(llmc_module_v1), LLMC_ABI_VERSION, "cuda", "sm_90a", kMaxTokens, kMaxSeqs, kMaxLogits, kVocab, kPaddedVocab,
    kHidden, kHidden, kMaxContext, 1, 1, 2, 5, groups, weightTable, kWeightsBytes,
    {6, 0, launches, kArena, kLogits, kG, kIds}, {}, fakeCosts};
