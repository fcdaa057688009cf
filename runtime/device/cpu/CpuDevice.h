//===- CpuDevice.h - the device that always works ---------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define LLMC_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/Memory.h"
#include "runtime/device/ModuleLoader.h"
#include "runtime/device/SampleRow.h"
#include "runtime/device/StepPhases.h"
#include "runtime/device/cpu/Executor.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <atomic>
#include <optional>
#include <thread>

namespace llmc {

class CpuDevice final : public Device {
public:
  CpuDevice(const DevicePayload &payload, const DeviceOptions &options);
  ~CpuDevice() override;

  const llmc_module_v1 &module() const override { return *module_; }
  unsigned threads() const override { return pool_->size(); }
  DeviceInfo info() const override { return {"cpu", module_->isa, 0, 0, 0}; }
  void step(const llmc_step_v1 &step) override;
  void reference(std::span<const int32_t> ids, float *logits) override;
  void setObserver(LaunchObserver observer) override {
    observer_ = std::move(observer);
    timer_ = nullptr;
  }
  void setTimer(LaunchTimer timer, LaunchTiming how) override {
    Device::setTimer(nullptr, how);
    timer_ = std::move(timer);
  }
  uint32_t numBlocks() const override { return numBlocks_; }
  uint64_t blockBytes() const override { return module_->kv_groups[0].block_bytes; }
  void zeroBlocks(std::span<const int32_t> blocks) override;
  void copyBlocks(std::span<const std::pair<int32_t, int32_t>> fromTo) override;
  uint32_t numSlots() const override { return numSlots_; }
  void swapOut(std::span<const std::pair<int32_t, int32_t>> blockToSlot) override;
  void swapIn(std::span<const std::pair<int32_t, int32_t>> slotToBlock) override;
  void readBlock(int32_t block, void *to) const override;
  const std::byte *weights() const override {
    return mapped_.data() && !hugeReady_.load(std::memory_order_acquire) ? mapped_.data() : huge_.data();
  }
  void startBackground() override;
  void finishBackground() override;
  Ledger ledger() const override;

private:
  void checkWeights(const WeightSource &source) const;
  void loadWeights();
  void background();
  void bindProgram();
  /// A program with what it needs to run.
  struct Runner {
    Runner(const llmc_module_v1 &module, const llmc_program_v1 &program, const StepBufferShape &shape)
        : program(program), buffers(module, program, shape), executor(program, buffers) {}
    const llmc_program_v1 &program;
    StepBuffers buffers;
    Executor executor;
  };
  /// All of a step of one phase, or one phase of it, whose first row of logits is the step's `firstRow`; false: it ends early.
  bool run(Runner &runner, const llmc_step_v1 &part, uint32_t firstRow);
  void runTimed(Runner &runner, const llmc_step_v1 &part);
  void keepLogits(uint32_t rows);
  void sample(const llmc_step_v1 &step);
  std::byte *slot(int32_t index) const { return swap_.data() + uint64_t(index) * blockBytes(); }
  std::byte *block(int32_t index) const { return kv_.data() + uint64_t(index) * blockBytes(); }

  std::string path_;
  LoadedModule loaded_;
  const llmc_module_v1 *module_ = nullptr;
  DeviceOptions options_;
  const WeightSource *source_ = nullptr;
  Mapping mapped_, huge_, arena_, kv_, swap_;
  uint32_t numBlocks_ = 0, numSlots_ = 0;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Runner> main_, prompts_; // the latter where prompts have a program of their own
  std::optional<StepPhases> phases_;
  LaunchObserver observer_;
  LaunchTimer timer_;
  std::vector<RowSampler> samplers_; // by thread
  std::vector<int32_t> previousIds_; // output slots of the last step
  std::vector<float *> logits_;      // rows of this step
  std::vector<float> kept_;          // those of its prompts, while generated tokens have the arena

  std::thread copier_;
  bool copierStarted_ = false;
  std::atomic<bool> hugeReady_{false}, cancel_{false};
  bool hugeInUse_ = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CPU_CPUDEVICE_H
