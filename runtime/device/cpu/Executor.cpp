//===- Executor.cpp -------------------------------------------------------===//
#include "runtime/device/cpu/Executor.h"

#include <algorithm>
#include <chrono>

namespace llmc {

Executor::Executor(const llmc_program_v1 &program, const StepBuffers &buffers)
    : program_(program), buffers_(buffers), plans_(program.num_launches),
      counters_(std::make_unique<Counter[]>(std::max(program.num_launches, 1u))) {
  for (uint32_t i = 0; i < program.num_launches; ++i) {
    const llmc_launch_v1 &launch = program.launches[i];
    firstArg_.push_back(uint32_t(args_.size()));
    args_.resize(args_.size() + launch.num_args);
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
  for (uint32_t a = 0; a < launch.num_args; ++a)
    if (launch.args[a].kind == LLMC_ARG_STEP)
      args[a] = const_cast<void *>(buffers_.field(launch.args[a].value, variant.row_block));
}

// Guided self-scheduling (Polychronopoulos and Kuck 1987): large shares first, so that a thread streams through neighbouring
// weights, small ones at the end, so that no thread waits long for another.
void Executor::work(uint32_t index, int64_t threads) {
  const LaunchPlan &plan = plans_[index];
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

void Executor::run(ThreadPool &pool, const LaunchHooks *hooks, int32_t stopAfter, uint32_t first, double *seconds) {
  uint32_t count = program_.num_launches;
  if (stopAfter >= 0)
    count = std::min(count, uint32_t(stopAfter) + 1);
  for (uint32_t i = first; i < count; ++i) {
    plans_[i] = buffers_.plan(program_.launches[i]);
    bindStep(i, *plans_[i].variant);
    counters_[i].next.store(0, std::memory_order_relaxed);
  }
  if (!hooks) {
    auto body = [&](unsigned thread) {
      auto last = std::chrono::steady_clock::now();
      for (uint32_t i = first; i < count; ++i) {
        work(i, pool.size());
        if (i + 1 < count || seconds)
          pool.barrier(thread);
        if (seconds && thread == 0) {
          const auto now = std::chrono::steady_clock::now();
          seconds[i] = std::chrono::duration<double>(now - last).count();
          last = now;
        }
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
