//===- CudaObserve.cpp - what a CudaDevice's launches took, and gave ------===//
#include "runtime/device/LaunchCost.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace llmc::cuda {

/// Seconds of the graph. Events around the second of two replays: the first warms.
double CudaDevice::burst(const StepGraphs::Handle &graph) {
  gpu_->synchronize();
  std::this_thread::sleep_for(std::chrono::milliseconds(8)); // what a card at its power limit takes to recover
  graph.launch();
  before_->record();
  graph.launch();
  after_->record();
  gpu_->synchronize();
  return after_->since(*before_);
}

void CudaDevice::reportBursts(uint32_t count) {
  constexpr int kBursts = 5;
  std::map<std::string, std::vector<uint32_t>> ops; // without the layer
  for (uint32_t i = 0; i < count; ++i) {
    const llmc_launch_v1 &launch = module().program.launches[i];
    if (buffers_->plan(launch).units)
      ops[opInLayer(launch.op, launch.layer)].push_back(i);
  }
  for (const auto &[op, launches] : ops) {
    const StepGraphs::Handle graph = graphs_->make(*buffers_, launches);
    std::vector<double> seconds;
    for (int i = 0; i < kBursts; ++i)
      seconds.push_back(burst(graph) / double(launches.size()));
    std::nth_element(seconds.begin(), seconds.begin() + kBursts / 2, seconds.end());
    for (uint32_t i : launches) {
      const llmc_launch_v1 &launch = module().program.launches[i];
      timer_(launch, *buffers_->plan(launch).variant, seconds[kBursts / 2]);
    }
  }
}

void CudaDevice::reportTimes(uint32_t launches) const {
  marks_[launches]->record();
  gpu_->synchronize();
  for (uint32_t i = 0; i < launches; ++i) {
    const llmc_launch_v1 &launch = module().program.launches[i];
    timer_(launch, *buffers_->plan(launch).variant, marks_[i + 1]->since(*marks_[i]));
  }
}

// Copies the rows of the launch's values to where the observer looks for them.
void CudaDevice::observe(uint32_t index, const LaunchPlan &plan, const llmc_step_v1 &s, double seconds) {
  const llmc_launch_v1 &launch = module().program.launches[index];
  const Driver &driver = gpu_->driver();
  auto fetch = [&](uint64_t offset, uint64_t bytes) {
    bytes = std::min(bytes, module().program.arena_bytes - offset);
    if (bytes == 0)
      return;
    driver.check(driver.cuMemcpyDtoHAsync(arenaImage_.data() + offset, arena_.address() + offset, bytes, gpu_->stream()),
                 "cuMemcpyDtoHAsync");
  };
  for (uint32_t v = 0; v < launch.num_values; ++v) {
    const llmc_value_v1 &value = launch.values[v];
    const uint64_t rows = value.rows == LLMC_ROWS_TOKENS   ? s.num_tokens
                          : value.rows == LLMC_ROWS_LOGITS ? s.num_logits
                          : value.rows == LLMC_ROWS_SEQS   ? s.num_seqs
                                                           : plan.rows;
    const uint64_t element = value.element == LLMC_F32 || value.element == LLMC_I32 ? 4 : value.element == LLMC_I8 || value.element == LLMC_E4M3 ? 1 : 2;
    fetch(value.offset, rows * value.stride * element);
    if (value.element == LLMC_I8 || value.element == LLMC_I16)
      fetch(value.scales_offset, rows * ((value.cols + LLMC_PAD - 1) / LLMC_PAD) * 2 * sizeof(float));
    if (value.element == LLMC_E4M3)
      fetch(value.scales_offset, rows * LLMC_PAD * sizeof(float));
  }
  gpu_->synchronize();
  observer_({launch, arenaImage_.data(), plan.rows, s.num_tokens, s.num_logits, s.num_seqs, *plan.variant, seconds});
}

} // namespace llmc::cuda
