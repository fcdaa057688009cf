//===- Score.cpp ----------------------------------------------------------===//
#include "runtime/engine/Score.h"
#include "llmc/Support/Error.h"
#include "runtime/device/KVBlocks.h"
#include "runtime/engine/Batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace llmc {

uint32_t scoreTokens(Device &device, std::span<const int32_t> ids, uint32_t chunk,
                     const std::function<void(uint32_t, uint32_t, const float *)> &sink, uint32_t from) {
  const llmc_module_v1 &m = device.module();
  const uint64_t room = std::min<uint64_t>(m.max_context, uint64_t(device.numBlocks()) * LLMC_KV_BLOCK);
  if (ids.size() > room)
    throw Error("expected at most " + std::to_string(room) + " tokens, got " + std::to_string(ids.size()));
  chunk = std::clamp(chunk, 1u, m.max_tokens);
  std::vector<int32_t> blocks(blocksOf(ids.size()));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::vector<float> logits(uint64_t(std::min(m.max_logits, chunk)) * m.vocab);
  Batch batch(device);
  for (size_t first = 0; first < ids.size(); first += chunk) {
    const auto count = uint32_t(std::min<size_t>(chunk, ids.size() - first));
    const auto skipped = uint32_t(std::clamp<size_t>(from, first, first + count) - first);
    for (uint32_t row = skipped; row < count || row == skipped; row += m.max_logits) {
      const uint32_t rows = std::min(m.max_logits, count - row);
      batch.clear();
      batch.add(ids.subspan(first, count), first, blocks);
      for (uint32_t i = 0; i < rows; ++i)
        batch.wantLogits(row + i);
      llmc_step_v1 step = batch.step();
      step.out_logits = logits.data();
      device.step(step);
      if (rows)
        sink(uint32_t(first + row), rows, logits.data());
    }
  }
  return uint32_t(blocks.size());
}

double logProbability(std::span<const float> logits, int32_t id) {
  const float best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float x : logits)
    sum += std::exp(x - best); // in f32: 49,152 terms that are right to 1e-7 each
  return double(logits[size_t(id)]) - best - std::log(sum);
}

} // namespace llmc
