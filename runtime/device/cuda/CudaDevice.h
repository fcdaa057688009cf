//===- CudaDevice.h - a model on an NVIDIA GPU ------------------*- C++ -*-===//
//
// Everything is allocated at load. A step is one transfer of its inputs, the launch list on one stream (as one CUDA graph where
// steps of its form come again), and one transfer of what the host wants: ids where the GPU may choose them, else rows of logits.
// Where it is ids alone, the next step may be started before they are there: it finds them on the GPU. Masks may come while the step
// runs; its tokens are then chosen once more, by them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define LLMC_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/Memory.h"
#include "runtime/device/ModuleLoader.h"
#include "runtime/device/SampleRow.h"
#include "runtime/device/StepBuffers.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/MaskLogits.h"
#include "runtime/device/cuda/MemoryPlan.h"
#include "runtime/device/cuda/PreviousIds.h"
#include "runtime/device/cuda/StepGraphs.h"

#include <exception>
#include <optional>

namespace llmc::cuda {

class CudaDevice final : public llmc::Device {
public:
  /// `driver` must outlive the device.
  CudaDevice(const DevicePayload &payload, const DeviceOptions &options, const Driver &driver);
  ~CudaDevice() override;

  const llmc_module_v1 &module() const override { return *loaded_; }
  unsigned threads() const override { return 1; }
  DeviceInfo info() const override { return info_; }
  void step(const llmc_step_v1 &step) override;
  void enqueue(const llmc_step_v1 &step) override;
  void wait() override;
  void masksFilled() override;
  bool asynchronous() const override { return true; }
  bool choosesOnDevice(const llmc_sampler_v1 &sampler) const override;
  void reference(std::span<const int32_t> ids, float *logits) override;
  void setObserver(LaunchObserver observer) override;
  void setTimer(LaunchTimer timer, LaunchTiming how) override;
  uint32_t numBlocks() const override { return plan_.numBlocks; }
  uint64_t blockBytes() const override { return loaded_.get()->kv_groups[0].block_bytes; }
  void zeroBlocks(std::span<const int32_t> blocks) override;
  void copyBlocks(std::span<const std::pair<int32_t, int32_t>> fromTo) override;
  uint32_t numSlots() const override { return plan_.numSlots; }
  void swapOut(std::span<const std::pair<int32_t, int32_t>> blockToSlot) override;
  void swapIn(std::span<const std::pair<int32_t, int32_t>> slotToBlock) override;
  void readBlock(int32_t block, void *to) const override;
  const std::byte *weights() const override;
  void startBackground() override {}
  void finishBackground() override {}
  Ledger ledger() const override { return plan_.ledger(); }

private:
  void load(const DevicePayload &payload);
  void checkWeights() const;
  template <typename Body> void guarded(Body body) const;
  [[noreturn]] void fail(const DriverError &error) const;

  /// A step under way.
  struct Flight {
    llmc_step_v1 step{};
    unsigned set = 0;   // of pinned memory and events
    bool done = false;  // its outputs are filled
    bool masked = false; // tokens are yet to be chosen by masks
    int64_t first = -1, last = -1; // ops that may be running, for messages; -1: none
    std::exception_ptr failed;     // after it was started
  };
  class Current;
  void start(Flight &flight);
  void applyMasks(Flight &flight);
  uint32_t maskRows(const llmc_step_v1 &step);
  void bringIds(const Flight &flight);
  void finish(Flight &flight);
  bool idsOnly(const llmc_step_v1 &step) const;
  bool idsChosen(const llmc_step_v1 &step) const;
  int32_t *idsStaging(unsigned set) const { return reinterpret_cast<int32_t *>(output_.data()) + uint64_t(set) * module().max_logits; }
  void takePreviousIds(const llmc_step_v1 &step);
  void launchAll(const llmc_step_v1 &step);
  void reportTimes(uint32_t launches) const;
  void reportBursts(uint32_t launches);
  double burst(const StepGraphs::Handle &graph);
  void observe(uint32_t index, const LaunchPlan &plan, const llmc_step_v1 &step, double seconds);
  void output(const Flight &flight);
  bool chosenOnDevice(const llmc_step_v1 &step, uint32_t row) const;
  bool samples_ = false; // the program draws tokens itself
  uint32_t choice_ = 0;  // its launch that chooses them
  void outputLogits(const llmc_step_v1 &step, bool idsChosen);
  void outputHidden(const llmc_step_v1 &step);
  void rowsToStaging(uint64_t arenaOffset, uint32_t first, uint32_t count, uint64_t rowBytes);
  Pointer block(int32_t index) const { return kv_.address() + uint64_t(index) * blockBytes(); }
  std::byte *slot(int32_t index) const { return swap_.data() + uint64_t(index) * blockBytes(); }
  std::byte *rowStaging() const { return output_.data() + kStepSets * uint64_t(module().max_logits) * sizeof(int32_t); }
  uint32_t rowsInStaging(uint64_t rowBytes) const;

  std::string path_;
  bool trapChecks_;
  DeviceOptions options_;
  const WeightSource *source_;
  LoadedModule loaded_;
  std::optional<Gpu> gpu_;
  DeviceInfo info_;
  MemoryPlan plan_;
  std::optional<KernelSet> kernels_;
  DeviceMemory weights_, arena_, kv_, stepMemory_;
  PinnedMemory swap_;
  PinnedMemory masks_; // of the step that was started last
  PinnedMemory staging_, output_; // kStepSets each: staging_: step buffers; output_: ids [max_logits], then rows, once
  std::optional<EventHandle> before_, after_;
  std::optional<StepBuffers> buffers_;
  std::optional<LaunchList> launches_;
  std::optional<StepGraphs> graphs_;
  std::optional<PreviousIds> previousOnDevice_;
  std::optional<MaskLogits> maskOnDevice_;
  std::vector<std::unique_ptr<EventHandle>> landed_; // by set: the step's ids are on the host

  std::vector<int32_t> previousIds_; // output slots of the last step that is done
  Flight flights_[kStepSets];
  unsigned firstFlight_ = 0, flying_ = 0;
  RowSampler sampler_;
  LaunchObserver observer_;
  LaunchTimer timer_;
  LaunchTiming timing_ = LaunchTiming::InStep;
  std::vector<std::unique_ptr<EventHandle>> marks_; // of the timer: before every launch, and behind the last
  Mapping arenaImage_;              // what observers see
  mutable Mapping hostWeights_;     // made by weights()
  mutable std::string lost_;        // why the device takes no more steps
  // For messages: the ops that may be running; -1: none.
  int64_t firstInFlight_ = -1, lastInFlight_ = -1;
  bool launching_ = false;
  const llmc_step_v1 *current_ = nullptr;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
