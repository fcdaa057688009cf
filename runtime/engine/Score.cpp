//===- Score.cpp ----------------------------------------------------------===//
#include "runtime/engine/Score.h"
#include "llmc/Support/Error.h"
#include "runtime/engine/Batch.h"

#include <algorithm>
#include <numeric>

namespace llmc {

uint32_t scoreTokens(Device &device, std::span<const int32_t> ids, uint32_t chunk,
                     const std::function<void(uint32_t, uint32_t, const float *)> &sink) {
  const llmc_module_v1 &m = device.module();
  const uint64_t room = std::min<uint64_t>(m.max_context, uint64_t(device.numBlocks()) * LLMC_KV_BLOCK);
  if (ids.size() > room)
    throw Error("expected at most " + std::to_string(room) + " tokens, got " + std::to_string(ids.size()));
  chunk = std::clamp(chunk, 1u, m.max_tokens);
  std::vector<int32_t> blocks((ids.size() + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::vector<float> logits(uint64_t(std::min(m.max_logits, chunk)) * m.vocab);
  Batch batch(device);
  for (size_t first = 0; first < ids.size(); first += chunk) {
    const auto count = uint32_t(std::min<size_t>(chunk, ids.size() - first));
    for (uint32_t row = 0; row < count; row += m.max_logits) {
      const uint32_t rows = std::min(m.max_logits, count - row);
      batch.clear();
      batch.add(ids.subspan(first, count), first, blocks);
      for (uint32_t i = 0; i < rows; ++i)
        batch.wantLogits(row + i);
      llmc_step_v1 step = batch.step();
      step.out_logits = logits.data();
      device.step(step);
      sink(uint32_t(first + row), rows, logits.data());
    }
  }
  return uint32_t(blocks.size());
}

} // namespace llmc
