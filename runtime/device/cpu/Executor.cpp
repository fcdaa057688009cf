//===- Executor.cpp -------------------------------------------------------===//
#include "runtime/device/cpu/Executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace llmc {

namespace {

uint32_t padded(uint32_t rows) { return (rows + LLMC_ROW_PAD - 1) / LLMC_ROW_PAD * LLMC_ROW_PAD; }

void copyPadded(std::vector<int32_t> &to, const int32_t *from, uint32_t count, int32_t rest) {
  if (from)
    std::copy_n(from, count, to.begin());
  std::fill(to.begin() + (from ? count : 0), to.begin() + padded(count), rest);
}

} // namespace

StepBuffers::StepBuffers(const llmc_module_v1 &module, uint32_t maxTokens)
    : ids(padded(maxTokens)), positions(padded(maxTokens)), slots(padded(maxTokens)), rows(padded(module.max_logits)),
      maxTokens_(maxTokens) {}

void StepBuffers::addRowBlock(uint32_t rowBlock) { tiles_[rowBlock].reserve(maxTokens_); }

void StepBuffers::fill(const llmc_step_v1 &step) {
  tokens = step.num_tokens;
  sequences = step.num_seqs;
  logitsRows = step.num_logits;
  copyPadded(ids, step.token_ids, tokens, 0);
  copyPadded(positions, step.positions, tokens, 0);
  copyPadded(slots, step.num_kv_groups ? step.kv[0].slots : nullptr, tokens, -1);
  copyPadded(rows, step.logits_rows, logitsRows, 0);
  blockTable = step.num_kv_groups ? step.kv[0].block_table : nullptr;
  embeddings = step.embeddings;
  const int32_t stride = step.num_kv_groups ? int32_t(step.kv[0].block_table_stride) : 0;
  for (auto &[rowBlock, tiles] : tiles_) {
    tiles.clear(); // keeps its memory
    for (uint32_t s = 0; s < sequences; ++s)
      for (int32_t t = step.seq_starts[s]; t < step.seq_starts[s + 1]; t += int32_t(rowBlock))
        tiles.push_back({t, std::min(int32_t(rowBlock), step.seq_starts[s + 1] - t), step.positions[t],
                         int32_t(s) * stride});
  }
}

Executor::Executor(const llmc_program_v1 &program, StepBuffers &buffers)
    : program_(program), buffers_(buffers), plans_(program.num_launches),
      counters_(std::make_unique<Counter[]>(std::max(program.num_launches, 1u))) {
  for (uint32_t i = 0; i < program.num_launches; ++i) {
    const llmc_launch_v1 &launch = program.launches[i];
    firstArg_.push_back(uint32_t(args_.size()));
    args_.resize(args_.size() + launch.num_args);
    for (uint32_t v = 0; v < launch.num_variants; ++v)
      if (launch.rows == LLMC_ROWS_QUERY_TILES)
        buffers.addRowBlock(launch.variants[v].row_block);
  }
}

void Executor::bind(const ProgramBases &bases) {
  for (uint32_t i = 0; i < program_.num_launches; ++i) {
    const llmc_launch_v1 &launch = program_.launches[i];
    void **args = args_.data() + firstArg_[i];
    for (uint32_t a = 0; a < launch.num_args; ++a) {
      const llmc_arg_v1 &arg = launch.args[a];
      if (arg.kind == LLMC_ARG_ARENA)
        args[a] = bases.arena + arg.value;
      else if (arg.kind == LLMC_ARG_WEIGHT)
        args[a] = const_cast<std::byte *>(bases.weights) + arg.value;
      else if (arg.kind == LLMC_ARG_KV)
        args[a] = arg.reserved < bases.kv.size() ? bases.kv[arg.reserved] + arg.value : nullptr;
    }
  }
}

void Executor::bindStep(uint32_t index, const llmc_variant_v1 &variant) {
  const llmc_launch_v1 &launch = program_.launches[index];
  void **args = args_.data() + firstArg_[index];
  for (uint32_t a = 0; a < launch.num_args; ++a) {
    if (launch.args[a].kind != LLMC_ARG_STEP)
      continue;
    switch (launch.args[a].value) {
    case LLMC_FIELD_TOKEN_IDS:
      args[a] = buffers_.ids.data();
      break;
    case LLMC_FIELD_POSITIONS:
      args[a] = buffers_.positions.data();
      break;
    case LLMC_FIELD_LOGITS_ROWS:
      args[a] = buffers_.rows.data();
      break;
    case LLMC_FIELD_SLOTS:
      args[a] = buffers_.slots.data();
      break;
    case LLMC_FIELD_BLOCK_TABLE:
      args[a] = const_cast<int32_t *>(buffers_.blockTable);
      break;
    case LLMC_FIELD_QUERY_TILES:
      args[a] = const_cast<llmc_query_tile *>(buffers_.tiles(variant.row_block).data());
      break;
    case LLMC_FIELD_EMBEDDINGS:
      args[a] = const_cast<float *>(buffers_.embeddings);
      break;
    }
  }
}

Executor::Plan Executor::plan(const llmc_launch_v1 &launch) const {
  uint32_t rows = launch.rows == LLMC_ROWS_LOGITS ? buffers_.logitsRows
                  : launch.rows == LLMC_ROWS_SEQS ? buffers_.sequences
                                                  : buffers_.tokens;
  const llmc_variant_v1 *variant = launch.variants;
  while (variant->max_rows < rows)
    ++variant;
  int64_t rowBlocks;
  if (launch.rows == LLMC_ROWS_QUERY_TILES) {
    rows = uint32_t(buffers_.tiles(variant->row_block).size());
    rowBlocks = rows;
  } else {
    rowBlocks = (int64_t(rows) + variant->row_block - 1) / variant->row_block;
  }
  return {variant, rows, rowBlocks * variant->col_blocks};
}

// Guided self-scheduling (Polychronopoulos and Kuck 1987): large shares first, so that a thread streams through neighbouring
// weights, small ones at the end, so that no thread waits long for another.
void Executor::work(uint32_t index, int64_t threads) {
  const Plan &plan = plans_[index];
  void *const *args = args_.data() + firstArg_[index];
  std::atomic<int64_t> &next = counters_[index].next;
  int64_t begin = next.load(std::memory_order_relaxed);
  while (begin < plan.units) {
    const int64_t count = std::max<int64_t>(1, (plan.units - begin) / (2 * threads));
    if (!next.compare_exchange_weak(begin, begin + count, std::memory_order_relaxed))
      continue;
    reinterpret_cast<llmc_kernel_fn>(const_cast<void *>(plan.variant->kernel))(args, plan.rows, begin, begin + count);
    begin = next.load(std::memory_order_relaxed);
  }
}

void Executor::run(ThreadPool &pool, const LaunchHooks *hooks, int32_t stopAfter, uint32_t first) {
  uint32_t count = program_.num_launches;
  if (stopAfter >= 0)
    count = std::min(count, uint32_t(stopAfter) + 1);
  for (uint32_t i = first; i < count; ++i) {
    plans_[i] = plan(program_.launches[i]);
    bindStep(i, *plans_[i].variant);
    counters_[i].next.store(0, std::memory_order_relaxed);
  }
  if (!hooks) {
    auto body = [&](unsigned thread) {
      for (uint32_t i = first; i < count; ++i) {
        work(i, pool.size());
        if (i + 1 < count)
          pool.barrier(thread);
      }
    };
    return pool.run(body);
  }
  for (uint32_t i = first; i < count; ++i) {
    const llmc_launch_v1 &launch = program_.launches[i];
    if (hooks->before)
      hooks->before(launch, args_.data() + firstArg_[i]);
    auto start = std::chrono::steady_clock::now();
    auto body = [&](unsigned) { work(i, pool.size()); };
    pool.run(body);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (hooks->after)
      hooks->after(launch, *plans_[i].variant, plans_[i].rows, seconds.count());
  }
}

} // namespace llmc
