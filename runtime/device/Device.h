//===- Device.h - what the engine asks of a device --------------*- C++ -*-===//
//
// The small interface behind which `cpu` and `cuda` live. A device owns a
// loaded module, its weights, its arena and the pool of KV blocks; it executes
// ragged steps (llmc_step_v1). It knows nothing of sequences, prompts or text.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_DEVICE_H
#define LLMC_RUNTIME_DEVICE_DEVICE_H

#include "llmc/Support/Error.h"
#include "llmc/abi.h"
#include "runtime/device/Ledger.h"
#include "runtime/package/WeightSource.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

/// What a device loads: the generated shared objects and the weights.
struct DevicePayload {
  struct Module {
    std::string isa;        // "avx2", "avx512vnni"; "sm_90a"
    std::string_view bytes; // a shared object; copied during load
  };
  std::vector<Module> modules;
  const WeightSource *weights = nullptr; // owned by the caller, outlives the device
  std::string path;                      // for messages
  bool trapChecks = false; // compiled with --trap-checks: kernels trap where an id or a block is out of range
};

struct DeviceOptions {
  unsigned threads = 0;     // 0: the CPUs that this process may use
  std::string isa;          // empty: the best that CPU and package both have
  bool mapWeights = false;  // true: serve from the file mapping, never copy into huge pages
  uint64_t kvBytes = 0;     // budget of the KV pool; 0: what kvTokens needs
  uint64_t kvTokens = 0;    // used when kvBytes is 0; 0: the model's longest context (on a GPU as much of it as fits)
  uint64_t swapBytes = 0;   // host memory for KV blocks that sequences will want again
  bool pinThreads = true;
  bool checkMemory = true;  // refuse at load what the machine cannot hold
  // On a GPU:
  unsigned device = 0;       // its number in the driver's order
  bool ptx = false;          // compile the PTX even where there is a cubin
  bool graphs = true;        // steps that come again as CUDA graphs
  bool syncLaunches = false; // wait for every launch, so that an error names its kernel
  /// Called now and then while weights are loaded, and once at the end.
  std::function<void(uint64_t done, uint64_t total)> onProgress;
};

/// Where a model runs, for people.
struct DeviceInfo {
  std::string name;   // "cpu", "NVIDIA H200"
  std::string detail; // "avx512vnni"; "sm_90a, driver 13.0"
  /// Of the GPU's memory, in bytes, everything on it counted (other processes, too); 0 on a CPU.
  uint64_t memoryTotal = 0;
  uint64_t usedBefore = 0; // with a context, before anything of the model was on it
  uint64_t usedAfter = 0;  // after load
};

/// A value of a launch, found in the arena right after the launch.
struct LaunchView {
  const llmc_launch_v1 &launch;
  const std::byte *arena; // on a GPU a copy, in which the rows of this launch's values are right
  uint32_t rows;       // of the launch: tokens, logits rows, sequences or query tiles of this step
  uint32_t tokens, logitsRows, sequences; // of this step, for values whose rows are of another kind
  const llmc_variant_v1 &variant;
  double seconds;      // time of this launch
};
using LaunchObserver = std::function<void(const LaunchView &)>;
/// What a launch took, in seconds.
enum class LaunchTiming {
  InStep, ///< launches follow each other as ever; a launch's time is that from the end of the one before to its own
  Bursts  ///< behind the step, on a GPU: the launches of an op in all layers again and again, each burst on a card that has rested,
          ///< so that its power limit plays no part; a launch's time is its share of a burst. The step's outputs mean nothing.
};
using LaunchTimer = std::function<void(const llmc_launch_v1 &, const llmc_variant_v1 &, double seconds)>;

class Device {
public:
  virtual ~Device() = default;

  virtual const llmc_module_v1 &module() const = 0;
  virtual unsigned threads() const = 0;
  virtual DeviceInfo info() const = 0;

  /// Executes one step and fills the wanted outputs. Throws Error when the step
  /// is not well formed (a size over the module's limits, a block that does not
  /// exist, ...); nothing has been executed then.
  virtual void step(const llmc_step_v1 &step) = 0;
  /// The same in two: enqueue() starts a step, wait() ends the one that was started first and fills its outputs. At most two are under
  /// way at a time; all that a step points to stays until then. Its token ids -1, -2, ... mean rows of the step that was started
  /// before. Whatever else is asked of the device happens behind the steps that were started.
  virtual void enqueue(const llmc_step_v1 &step) { this->step(step); }
  virtual void wait() {}
  /// The token masks of the step that was started last are filled; an asynchronous device reads them no earlier, and where this is not
  /// called in wait() or with the next step. What goes wrong is thrown by wait().
  virtual void masksFilled() {}
  /// Whether enqueue() returns before the step is done.
  virtual bool asynchronous() const { return false; }
  /// Whether a row's token is known to the next step before the host has it: with a mask only where the device is asynchronous.
  virtual bool choosesOnDevice(const llmc_sampler_v1 &) const { return true; }
  /// Executes the reference program on one whole sequence from position 0.
  /// `logits`: [ids, vocab] or null.
  virtual void reference(std::span<const int32_t> ids, float *logits) = 0;

  /// Called after every launch until replaced by null; costs speed.
  virtual void setObserver(LaunchObserver observer) = 0;
  /// As setObserver, and in its place, for the times alone, which come after the step. Throws Error where there are no bursts.
  virtual void setTimer(LaunchTimer timer, LaunchTiming how) {
    if (how == LaunchTiming::Bursts)
      throw Error("bursts: expected a package for a GPU, got one for " + std::string(module().target));
    setObserver(timer ? LaunchObserver([timer = std::move(timer)](const LaunchView &view) {
      timer(view.launch, view.variant, view.seconds);
    })
                      : LaunchObserver());
  }

  virtual uint32_t numBlocks() const = 0;
  /// Bytes of one KV block over all groups.
  virtual uint64_t blockBytes() const = 0;
  virtual void zeroBlocks(std::span<const int32_t> blocks) = 0;
  virtual void copyBlocks(std::span<const std::pair<int32_t, int32_t>> fromTo) = 0;
  /// Places for blocks in host memory. swapOut: (block, slot), swapIn: (slot, block).
  virtual uint32_t numSlots() const { return 0; }
  virtual void swapOut(std::span<const std::pair<int32_t, int32_t>>) {}
  virtual void swapIn(std::span<const std::pair<int32_t, int32_t>>) {}
  /// Copies one block (blockBytes() bytes) to host memory.
  virtual void readBlock(int32_t block, void *to) const = 0;

  /// The packed weights on the host, [module().weights_bytes]. A device that keeps none there reads them at the first call.
  virtual const std::byte *weights() const = 0;

  /// Starts the background work (copy of the weights into huge pages, population
  /// of the pools). Called after the first step, so that the first token does not
  /// wait for it; does nothing the second time.
  virtual void startBackground() = 0;
  /// Waits for it.
  virtual void finishBackground() = 0;

  virtual Ledger ledger() const = 0;
};

/// Throws Error when no module suits this CPU, a module or the weights are damaged
/// or the memory does not suffice.
std::unique_ptr<Device> makeCpuDevice(const DevicePayload &payload, const DeviceOptions &options);

/// Throws Error when there is no CUDA driver or GPU, the GPU cannot run the module or its memory does not suffice.
std::unique_ptr<Device> makeCudaDevice(const DevicePayload &payload, const DeviceOptions &options);

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_DEVICE_H
