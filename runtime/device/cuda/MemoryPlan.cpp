//===- MemoryPlan.cpp -----------------------------------------------------===//
#include "runtime/device/cuda/MemoryPlan.h"
#include "llmc/Support/Error.h"
#include "runtime/device/CheckStep.h"
#include "runtime/device/KVBlocks.h"

#include <algorithm>

namespace llmc::cuda {

namespace {

// The driver takes memory from the card in pieces of this size.
constexpr uint64_t kPiece = 2u << 20;
// Left to the driver: launches and module loads of other processes must not fail because of us.
constexpr uint64_t kReserve = 64u << 20;
// Logits and hidden rows come to the host through this much memory, at least one row at a time.
constexpr uint64_t kOutputStaging = 16u << 20;

uint64_t rounded(uint64_t bytes) { return (bytes + kPiece - 1) / kPiece * kPiece; }

// Slots are int32.
constexpr uint64_t kMaxBlocks = INT32_MAX / LLMC_KV_BLOCK;

uint64_t wantedBlocks(const llmc_module_v1 &m, const DeviceOptions &options) {
  const uint64_t blockBytes = m.kv_groups[0].block_bytes;
  if (options.kvBytes)
    return options.kvBytes / blockBytes;
  return blocksOf(options.kvTokens ? options.kvTokens : m.max_context);
}

[[noreturn]] void refuse(const MemoryPlan &plan, uint64_t blocks, const FreeMemory &memory, uint64_t fitting) {
  std::string text = "the model needs " + std::to_string(plan.onDevice()) + " bytes of device memory (weights " +
                     std::to_string(plan.weights) + ", arena " + std::to_string(plan.arena) + ", KV pool " +
                     std::to_string(plan.kv) + " for " + std::to_string(blocks * LLMC_KV_BLOCK) +
                     " tokens, step buffers " + std::to_string(plan.step) + "), but only " + std::to_string(memory.free) +
                     " of " + std::to_string(memory.total) + " are free on " + memory.name + " (" +
                     std::to_string(kReserve) + " are left to the driver)";
  if (fitting)
    text += "; what fits is a KV pool of " + std::to_string(fitting * LLMC_KV_BLOCK) + " tokens (--context or --kv-memory)";
  else
    text += "; it would not fit with any KV pool";
  throw Error(text);
}

} // namespace

MaskSpace::MaskSpace(const llmc_module_v1 &m)
    : rows(m.program.ids_offset == UINT64_MAX ? 0 : m.max_logits), words((uint64_t(m.vocab) + 31) / 32), bytes(rows * (1 + words) * sizeof(uint32_t)) {}

StepBufferShape stepShape(uint32_t numBlocks) { return {kRowPad, true, numBlocks}; }

MemoryPlan planMemory(const llmc_module_v1 &m, const DeviceOptions &options, const FreeMemory &memory) {
  const uint64_t blockBytes = m.kv_groups[0].block_bytes;
  MemoryPlan plan;
  const uint64_t stepBytes = StepBuffers(m, m.program, stepShape(0)).capacity();
  plan.stepStaging = kStepSets * stepBytes;
  plan.maskStaging = MaskSpace(m).bytes;
  const uint64_t row = uint64_t(std::max(m.padded_vocab, m.padded_hidden)) * sizeof(float);
  plan.outputStaging = std::max(row, std::min(kOutputStaging, m.max_logits * row)) + kStepSets * uint64_t(m.max_logits) * sizeof(int32_t);
  plan.weights = rounded(m.weights_bytes);
  plan.arena = rounded(m.program.arena_bytes);
  plan.step = rounded(stepBytes + plan.maskStaging);

  const uint64_t wanted = wantedBlocks(m, options);
  if (wanted == 0)
    throw Error("--kv-memory: expected at least " + std::to_string(blockBytes) + " bytes (one block of " +
                std::to_string(LLMC_KV_BLOCK) + " tokens), got " + std::to_string(options.kvBytes));
  if (wanted > UINT64_MAX / 8 / blockBytes)
    throw Error("KV pool: " + std::to_string(wanted) + " blocks are too many");
  uint64_t fitting = kMaxBlocks;
  if (memory.free != UINT64_MAX) {
    const uint64_t rest = plan.onDevice() + kReserve;
    fitting = std::min(fitting, memory.free > rest ? (memory.free - rest) / kPiece * kPiece / blockBytes : 0);
  }
  const bool exact = options.kvBytes || options.kvTokens;
  const uint64_t blocks = exact ? wanted : std::max<uint64_t>(1, std::min(wanted, fitting));
  plan.kv = rounded(blocks * blockBytes);
  if (options.checkMemory && memory.free != UINT64_MAX && blocks > fitting)
    refuse(plan, blocks, memory, fitting);
  if (blocks > kMaxBlocks)
    throw Error("KV pool: expected at most " + std::to_string(kMaxBlocks) + " blocks, got " + std::to_string(blocks));
  plan.numBlocks = uint32_t(blocks);
  plan.numSlots = slotsFor(options.swapBytes, blockBytes);
  plan.swap = plan.numSlots * blockBytes;
  return plan;
}

Ledger MemoryPlan::ledger() const {
  Ledger ledger;
  ledger.add("weights", weights, MemoryKind::Device);
  ledger.add("arena", arena, MemoryKind::Device);
  ledger.add("kv pool", kv, MemoryKind::Device);
  ledger.add("step buffers", step, MemoryKind::Device);
  ledger.add("pinned buffers", stepStaging + maskStaging + outputStaging, MemoryKind::Pinned);
  if (swap)
    ledger.add("swap space", swap, MemoryKind::Pinned);
  return ledger;
}

} // namespace llmc::cuda
