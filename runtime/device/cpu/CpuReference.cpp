//===- CpuReference.cpp - runs the oracle -----------------------*- C++ -*-===//
//
// The reference program computes one whole sequence from position 0 with f32
// weights, which are unpacked just before the launch that reads them. It wants at
// most max_logits rows of logits at a time, so the part behind the first launch over
// logits rows is run once per chunk, from a copy of the arena.
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/engine/UnpackWeight.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace llmc {

namespace {

// The f32 forms of the weights that the current launch reads.
class UnpackedWeights {
public:
  UnpackedWeights(const llmc_module_v1 &module, const std::byte *weights) : module_(module), weights_(weights) {}

  void provide(const llmc_launch_v1 &launch, void **args) {
    std::map<uint64_t, std::vector<float>> now;
    for (uint32_t a = 0; a < launch.num_args; ++a) {
      if (launch.args[a].kind != LLMC_ARG_WEIGHT_F32)
        continue;
      const uint64_t index = launch.args[a].value;
      if (auto old = cache_.find(index); old != cache_.end()) {
        now.insert(cache_.extract(old));
      } else if (!now.count(index)) {
        const llmc_weight_v1 &weight = module_.weights[index];
        std::vector<float> values(weight.rows * weight.cols);
        unpackWeight(weight, weights_, values.data());
        now.emplace(index, std::move(values));
      }
      args[a] = now.at(index).data();
    }
    if (!now.empty())
      cache_ = std::move(now);
  }

private:
  const llmc_module_v1 &module_;
  const std::byte *weights_;
  std::map<uint64_t, std::vector<float>> cache_;
};

} // namespace

void CpuDevice::reference(std::span<const int32_t> ids, float *logits) {
  const llmc_module_v1 &m = *module_;
  const llmc_program_v1 &p = m.reference;
  if (p.num_launches == 0)
    throw Error(path_ + ": the package has no reference program");
  if (ids.empty() || ids.size() > m.max_tokens)
    throw Error("reference: expected 1 to " + std::to_string(m.max_tokens) + " tokens, got " +
                std::to_string(ids.size()));
  const auto tokens = uint32_t(ids.size());
  std::vector<int32_t> positions(tokens), rows(m.max_logits);
  std::iota(positions.begin(), positions.end(), 0);
  const int32_t starts[2] = {0, int32_t(tokens)}, length = int32_t(tokens);

  Mapping arena = Mapping::anonymous(p.arena_bytes, "reference arena");
  StepBuffers buffers(m, p, {});
  Executor executor(p, buffers);
  executor.bind({arena.data(), weights(), {}});
  UnpackedWeights unpacked(m, weights());
  LaunchHooks hooks;
  hooks.before = [&](const llmc_launch_v1 &launch, void **args) { unpacked.provide(launch, args); };
  hooks.after = [&](const llmc_launch_v1 &launch, const llmc_variant_v1 &variant, uint32_t count, double seconds) {
    if (observer_)
      observer_({launch, arena.data(), count, buffers.tokens(), buffers.logitsRows(), 1, variant, seconds});
  };

  uint32_t head = 0;
  while (head < p.num_launches && p.launches[head].rows != LLMC_ROWS_LOGITS)
    ++head;
  std::vector<std::byte> body; // the arena before the head
  for (uint32_t first = 0; first < tokens; first += m.max_logits) {
    llmc_step_v1 step{};
    step.num_tokens = tokens;
    step.num_seqs = 1;
    step.num_logits = std::min(m.max_logits, tokens - first);
    step.token_ids = ids.data();
    step.positions = positions.data();
    step.seq_starts = starts;
    step.kv_lengths = &length;
    std::iota(rows.begin(), rows.end(), int32_t(first));
    step.logits_rows = rows.data();
    buffers.fill(step, {});
    if (first == 0) {
      if (head > 0)
        executor.run(*pool_, &hooks, int32_t(head) - 1);
      body.assign(arena.data(), arena.data() + p.arena_bytes);
    } else {
      std::copy(body.begin(), body.end(), arena.data());
    }
    executor.run(*pool_, &hooks, -1, head);
    const auto *result = reinterpret_cast<const float *>(arena.data() + p.logits_offset);
    for (uint32_t i = 0; logits && i < step.num_logits; ++i)
      std::memcpy(logits + uint64_t(first + i) * m.vocab, result + uint64_t(i) * m.padded_vocab,
                  m.vocab * sizeof(float));
  }
}

} // namespace llmc
