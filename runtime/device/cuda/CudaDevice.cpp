//===- CudaDevice.cpp -----------------------------------------------------===//
#include "runtime/device/cuda/CudaDevice.h"
#include "llmc/Support/Error.h"
#include "runtime/device/CheckStep.h"
#include "runtime/device/cuda/UploadWeights.h"

#include <algorithm>
#include <cstring>

namespace llmc::cuda {

CudaDevice::CudaDevice(const DevicePayload &payload, const DeviceOptions &options, const Driver &driver)
    : path_(payload.path), trapChecks_(payload.trapChecks), options_(options), source_(payload.weights) {
  if (payload.modules.size() != 1)
    throw Error(path_ + ": expected one module for a GPU, got " + std::to_string(payload.modules.size()));
  const DevicePayload::Module &section = payload.modules[0];
  if (!options.isa.empty() && options.isa != section.isa)
    throw Error("--isa: expected " + section.isa + " (all that the package has), got '" + options.isa + "'");
  loaded_ = LoadedModule(section.bytes, path_ + ": module." + section.isa);
  if (std::string_view(module().target) != "cuda")
    throw Error(path_ + ": expected a module for cuda, got one for " + module().target);
  checkWeights();
  gpu_.emplace(driver, options.device, module().isa, path_);
  load(payload);
}

void CudaDevice::checkWeights() const {
  if (source_->size() != module().weights_bytes)
    throw Error(path_ + ": expected " + std::to_string(module().weights_bytes) + " bytes of weights, got " +
                std::to_string(source_->size()));
}

void CudaDevice::load(const DevicePayload &payload) {
  const auto [freeBefore, total] = gpu_->memory();
  info_ = {gpu_->name(), std::string(module().isa) + ", driver " + gpu_->driverVersion(), total, total - freeBefore, 0};
  // Code first: what it takes is then no longer free when the plan is made.
  kernels_.emplace(*gpu_, module().program, options_.ptx);
  plan_ = planMemory(module(), options_, {gpu_->memory().first, total, gpu_->name()});
  weights_ = DeviceMemory(*gpu_, plan_.weights, "weights");
  arena_ = DeviceMemory(*gpu_, plan_.arena, "arena");
  kv_ = DeviceMemory(*gpu_, plan_.kv, "KV pool");
  stepMemory_ = DeviceMemory(*gpu_, plan_.step, "step buffers");
  staging_ = PinnedMemory(*gpu_, plan_.stepStaging, "step buffers");
  if (plan_.maskStaging)
    masks_ = PinnedMemory(*gpu_, plan_.maskStaging, "token masks");
  output_ = PinnedMemory(*gpu_, plan_.outputStaging, "outputs");
  if (plan_.numSlots)
    swap_ = PinnedMemory(*gpu_, plan_.swap, "swap space");
  before_.emplace(*gpu_, kEventDefault);
  after_.emplace(*gpu_, kEventDefault);
  for (const DeviceMemory *memory : {&arena_, &kv_, &stepMemory_})
    memory->zero();
  uploadWeights(*gpu_, *source_, weights_.address(), options_.threads, options_.onProgress);

  buffers_.emplace(module(), module().program, stepShape(plan_.numBlocks));
  const llmc_program_v1 &program = module().program;
  for (uint32_t i = 0; i < program.num_launches; ++i)
    for (const llmc_arg_v1 &arg : std::span(program.launches[i].args, program.launches[i].num_args)) {
      samples_ |= arg.kind == LLMC_ARG_STEP && arg.value == LLMC_FIELD_SAMPLERS;
      if (arg.kind == LLMC_ARG_ARENA && arg.value == program.ids_offset) // the last: others may have had the place before
        choice_ = i;
    }
  launches_.emplace(*gpu_, module().program, *kernels_,
                    ProgramBases{arena_.address(), weights_.address(), kv_.address(), stepMemory_.address()});
  graphs_.emplace(*gpu_, module().program, *launches_);
  previousOnDevice_.emplace(*gpu_);
  maskOnDevice_.emplace(*gpu_);
  for (unsigned set = 0; set < kStepSets; ++set)
    landed_.push_back(std::make_unique<EventHandle>(*gpu_, kEventDisableTiming));
  previousIds_.assign(module().max_logits, 0);
  info_.usedAfter = total - gpu_->memory().first;
}

CudaDevice::~CudaDevice() {
  if (!gpu_)
    return;
  try {
    gpu_->makeCurrent();
    gpu_->synchronize();
  } catch (const DriverError &) { // a lost device; nothing is left to save
  }
}

void CudaDevice::reference(std::span<const int32_t>, float *) {
  throw Error(path_ + ": the reference program is not part of a package for a GPU; verify the same model compiled with "
                      "--target=cpu");
}

// What a failing call means for the device: an error that stays, as after an illegal address, ends it.
template <typename Body> void CudaDevice::guarded(Body body) const {
  if (!lost_.empty())
    throw Error("the device takes no more work since it failed: " + lost_);
  try {
    gpu_->makeCurrent();
    body();
  } catch (const DriverError &error) {
    fail(error);
  }
}

void CudaDevice::fail(const DriverError &error) const {
  // Errors that do not go away are returned by every later call.
  const bool lost = gpu_->driver().cuStreamSynchronize(gpu_->stream()) != kSuccess;
  std::string text = error.what();
  if (current_)
    text = "step of " + std::to_string(current_->num_tokens) + " tokens, " + std::to_string(current_->num_seqs) +
           " sequences: " + text;
  if (current_ && firstInFlight_ >= 0) {
    auto name = [&](int64_t i) {
      const llmc_launch_v1 &launch = module().program.launches[i];
      return describe(launch, *buffers_->plan(launch).variant);
    };
    // A launch that fails by itself leaves the device well; otherwise it has only brought the news of an earlier one.
    const int64_t first = launching_ && !lost ? lastInFlight_ : firstInFlight_;
    if (first == lastInFlight_)
      text += " in " + name(first);
    else
      text += " between " + name(first) + " and " + name(lastInFlight_) + "; --sync-launches finds the kernel";
    if (trapChecks_)
      text += "; the package checks bounds (--trap-checks): an id or a block table entry may have been out of range";
  }
  if (lost)
    lost_ = text;
  throw Error(text);
}

void CudaDevice::step(const llmc_step_v1 &s) {
  if (flying_)
    throw Error("step: expected no other under way, got " + std::to_string(flying_));
  enqueue(s);
  wait();
}

void CudaDevice::enqueue(const llmc_step_v1 &s) {
  if (lost_.empty())
    checkStep(module(), s, plan_.numBlocks);
  if (flying_ == kStepSets)
    throw Error("step: expected at most " + std::to_string(kStepSets - 1) + " under way, got " + std::to_string(flying_));
  if (flying_)
    masksFilled();
  if (flying_ && !idsOnly(flights_[firstFlight_].step)) // its rows lie where this one will write
    finish(flights_[firstFlight_]);
  const unsigned set = (firstFlight_ + flying_) % kStepSets;
  Flight &flight = flights_[set];
  flight = {};
  flight.step = s, flight.set = set;
  for (uint32_t i = 0; s.samplers && i < s.num_logits; ++i)
    flight.masked |= s.samplers[i].token_mask != nullptr;
  start(flight);
  ++flying_;
  if (flight.masked || (idsOnly(s) && !observer_ && !timer_))
    return;
  finish(flights_[firstFlight_]); // in their order
  finish(flight);
}

void CudaDevice::wait() {
  if (!flying_)
    return;
  Flight &flight = flights_[firstFlight_];
  struct Landed {
    CudaDevice &device;
    ~Landed() { device.firstFlight_ = (device.firstFlight_ + 1) % kStepSets, --device.flying_; }
  } landed{*this};
  if (flying_ == 1)
    masksFilled(); // of a later step they may not be yet
  finish(flight);
}

/// A flight that the messages of failing calls are about.
class CudaDevice::Current {
public:
  Current(CudaDevice &device, const Flight &flight) : device_(device) {
    device.current_ = &flight.step;
    device.firstInFlight_ = flight.first, device.lastInFlight_ = flight.last;
    device.launching_ = false;
  }
  ~Current() { device_.current_ = nullptr; }

private:
  CudaDevice &device_;
};

/// Enqueues all of a step.
void CudaDevice::start(Flight &flight) {
  const llmc_step_v1 &s = flight.step;
  const Current current(*this, flight);
  guarded([&] {
    const Driver &driver = gpu_->driver();
    const Flight &before = flights_[(flight.set + 1) % kStepSets];
    const bool unknown = flying_ && !before.done; // the ids of the step before
    buffers_->setMemory(staging_.data() + flight.set * (staging_.bytes() / kStepSets));
    buffers_->fill(s, unknown ? std::span<const int32_t>() : previousIds_);
    buffers_->keepApart(observer_ || endsEarly(module().program, s));
    driver.check(driver.cuMemcpyHtoDAsync(stepMemory_.address(), buffers_->data(), buffers_->used(), gpu_->stream()),
                 "cuMemcpyHtoDAsync");
    if (unknown)
      takePreviousIds(s);
    launchAll(s);
    flight.first = firstInFlight_, flight.last = lastInFlight_;
    if (!flight.masked)
      bringIds(flight);
  });
}

void CudaDevice::bringIds(const Flight &flight) {
  const Driver &driver = gpu_->driver();
  if (idsChosen(flight.step))
    driver.check(driver.cuMemcpyDtoHAsync(idsStaging(flight.set), arena_.address() + module().program.ids_offset,
                                          flight.step.num_logits * sizeof(int32_t), gpu_->stream()),
                 "cuMemcpyDtoHAsync");
  landed_[flight.set]->record();
}

void CudaDevice::masksFilled() {
  if (!flying_)
    return;
  Flight &flight = flights_[(firstFlight_ + flying_ - 1) % kStepSets];
  if (!flight.masked)
    return;
  flight.masked = false;
  try {
    applyMasks(flight);
  } catch (const Error &) {
    flight.failed = std::current_exception();
  }
}

/// Behind a step's launches: by its masks the GPU chooses the rows' tokens once more.
void CudaDevice::applyMasks(Flight &flight) {
  const Current current(*this, flight);
  guarded([&] {
    const Driver &driver = gpu_->driver();
    const llmc_program_v1 &program = module().program;
    if (const uint32_t rows = endsEarly(module().program, flight.step) ? 0 : maskRows(flight.step)) {
      const MaskSpace space(module());
      const Pointer to = stepMemory_.address() + stepMemory_.bytes() - space.bytes, masks = to + space.rows * sizeof(uint32_t);
      const uint64_t bytes = (space.rows + rows * space.words) * sizeof(uint32_t);
      driver.check(driver.cuMemcpyHtoDAsync(to, masks_.data(), bytes, gpu_->stream()), "cuMemcpyHtoDAsync");
      maskOnDevice_->launch(arena_.address() + program.logits_offset, module().padded_vocab, module().vocab, to, masks, rows);
      launches_->launch(choice_, *buffers_, buffers_->plan(program.launches[choice_]), /*early=*/false);
    }
    bringIds(flight);
  });
}

/// Puts the masks by which the GPU chooses, and their rows, into masks_; how many.
uint32_t CudaDevice::maskRows(const llmc_step_v1 &s) {
  const MaskSpace space(module());
  auto *rows = reinterpret_cast<uint32_t *>(masks_.data()), *masks = rows + space.rows;
  uint32_t count = 0;
  for (uint32_t i = 0; idsChosen(s) && i < s.num_logits; ++i)
    if (s.samplers[i].token_mask && chosenOnDevice(s, i)) {
      std::copy_n(s.samplers[i].token_mask, space.words, masks + count * space.words);
      rows[count++] = i;
    }
  return count;
}

void CudaDevice::takePreviousIds(const llmc_step_v1 &s) {
  if (std::none_of(s.token_ids, s.token_ids + s.num_tokens, [](int32_t id) { return id < 0; }))
    return;
  const auto *ids = static_cast<const std::byte *>(buffers_->field(LLMC_FIELD_TOKEN_IDS, 0));
  previousOnDevice_->launch(stepMemory_.address() + uint64_t(ids - buffers_->data()), arena_.address() + module().program.ids_offset,
                            s.num_tokens);
}

/// Waits for a step and fills its outputs.
void CudaDevice::finish(Flight &flight) {
  if (flight.done)
    return;
  if (flight.failed)
    std::rethrow_exception(std::exchange(flight.failed, nullptr));
  const llmc_step_v1 &s = flight.step;
  const Current current(*this, flight);
  guarded([&] {
    landed_[flight.set]->synchronize();
    if (!endsEarly(module().program, s))
      output(flight);
  });
  flight.done = true;
}

void CudaDevice::launchAll(const llmc_step_v1 &s) {
  const llmc_program_v1 &program = module().program;
  uint32_t count = program.num_launches;
  if (s.stop_after_op >= 0)
    count = std::min(count, uint32_t(s.stop_after_op) + 1);
  const bool oneByOne = observer_ || options_.syncLaunches;
  const bool marked = timer_ && timing_ == LaunchTiming::InStep;
  const bool alone = oneByOne || timer_; // no kernel starts before the one before it has ended
  if (!alone && options_.graphs && count == program.num_launches) {
    firstInFlight_ = 0, lastInFlight_ = count - 1;
    if (graphs_->launch(*buffers_))
      return;
    firstInFlight_ = -1;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const LaunchPlan plan = buffers_->plan(program.launches[i]);
    if (marked)
      marks_[i]->record();
    if (plan.units == 0 && !observer_)
      continue;
    firstInFlight_ = oneByOne || firstInFlight_ < 0 ? i : firstInFlight_;
    lastInFlight_ = i;
    if (observer_)
      before_->record();
    launching_ = true;
    launches_->launch(i, *buffers_, plan, /*early=*/!alone && firstInFlight_ != i);
    launches_->launch(i, *buffers_, buffers_->rest(program.launches[i]), /*early=*/!alone);
    launching_ = false;
    if (observer_)
      after_->record();
    if (oneByOne)
      gpu_->synchronize();
    if (observer_)
      observe(i, plan, s, after_->since(*before_));
  }
  if (marked)
    reportTimes(count);
  else if (timer_)
    reportBursts(count);
}

/// Programs without the samplers' field choose the largest logit. A mask changes logits, which are wanted as they were.
bool CudaDevice::chosenOnDevice(const llmc_step_v1 &s, uint32_t row) const {
  if (s.out_logits && s.samplers[row].token_mask)
    return false;
  return samples_ ? RowSampler::plain(s, row) : RowSampler::plainGreedy(s, row);
}

bool CudaDevice::choosesOnDevice(const llmc_sampler_v1 &s) const {
  return module().program.ids_offset != UINT64_MAX && RowSampler::plain(s) && (samples_ || isGreedy(s));
}

bool CudaDevice::idsChosen(const llmc_step_v1 &s) const {
  return s.samplers && s.num_logits && module().program.ids_offset != UINT64_MAX;
}

/// Whether the host wants nothing of the step but ids that the GPU chooses.
bool CudaDevice::idsOnly(const llmc_step_v1 &s) const {
  if (s.out_hidden || s.out_logits || s.stop_after_op >= 0)
    return false;
  for (uint32_t i = 0; s.samplers && i < s.num_logits; ++i)
    if (!idsChosen(s) || !chosenOnDevice(s, i))
      return false;
  return true;
}

void CudaDevice::output(const Flight &flight) {
  const llmc_step_v1 &s = flight.step;
  const int32_t *ids = idsStaging(flight.set);
  for (uint32_t i = 0; idsChosen(s) && i < s.num_logits; ++i) {
    if (!chosenOnDevice(s, i))
      continue;
    const int32_t id = uint32_t(ids[i]) < module().vocab ? ids[i] : Sampler::kBadLogits;
    if (s.out_ids)
      s.out_ids[i] = id;
    previousIds_[i] = std::max(id, 0);
  }
  if (idsOnly(s))
    return;
  outputHidden(s);
  outputLogits(s, idsChosen(s));
}

uint32_t CudaDevice::rowsInStaging(uint64_t rowBytes) const {
  return uint32_t((output_.bytes() - kStepSets * uint64_t(module().max_logits) * sizeof(int32_t)) / rowBytes);
}

void CudaDevice::rowsToStaging(uint64_t arenaOffset, uint32_t first, uint32_t count, uint64_t rowBytes) {
  const Driver &driver = gpu_->driver();
  driver.check(driver.cuMemcpyDtoHAsync(rowStaging(), arena_.address() + arenaOffset + first * rowBytes, count * rowBytes,
                                        gpu_->stream()),
               "cuMemcpyDtoHAsync");
  gpu_->synchronize();
}

void CudaDevice::outputHidden(const llmc_step_v1 &s) {
  const llmc_module_v1 &m = module();
  if (!s.out_hidden || m.program.hidden_offset == UINT64_MAX)
    return;
  const uint64_t rowBytes = uint64_t(m.padded_hidden) * sizeof(float);
  const uint32_t most = rowsInStaging(rowBytes);
  for (uint32_t first = 0; first < s.num_logits; first += most) {
    const uint32_t count = std::min(most, s.num_logits - first);
    rowsToStaging(m.program.hidden_offset, first, count, rowBytes);
    for (uint32_t i = 0; i < count; ++i)
      std::memcpy(s.out_hidden + uint64_t(first + i) * m.hidden, rowStaging() + i * rowBytes, m.hidden * sizeof(float));
  }
}

// Runs of rows whose logits the host wants, as many at a time as the staging buffer holds.
void CudaDevice::outputLogits(const llmc_step_v1 &s, bool idsChosen) {
  const llmc_module_v1 &m = module();
  const uint64_t rowBytes = uint64_t(m.padded_vocab) * sizeof(float);
  const uint32_t most = rowsInStaging(rowBytes);
  auto sampled = [&](uint32_t row) { return s.samplers && !(idsChosen && chosenOnDevice(s, row)); };
  auto wanted = [&](uint32_t row) { return s.out_logits || sampled(row); };
  for (uint32_t first = 0; first < s.num_logits;) {
    uint32_t count = 0;
    while (first + count < s.num_logits && count < most && wanted(first + count))
      ++count;
    if (count == 0) {
      ++first;
      continue;
    }
    rowsToStaging(m.program.logits_offset, first, count, rowBytes);
    for (uint32_t i = first; i < first + count; ++i) {
      auto *row = reinterpret_cast<float *>(rowStaging() + (i - first) * rowBytes);
      if (s.out_logits)
        std::memcpy(s.out_logits + uint64_t(i) * m.vocab, row, m.vocab * sizeof(float));
      if (sampled(i))
        previousIds_[i] = std::max(sampler_.sample(s, i, {row, m.vocab}), 0);
    }
    first += count;
  }
}

void CudaDevice::setTimer(LaunchTimer timer, LaunchTiming how) {
  if (timer && how == LaunchTiming::Bursts && !graphs_->available())
    throw Error("bursts: expected a driver with CUDA graphs (12.3 or later), got " + gpu_->driverVersion());
  observer_ = nullptr;
  timer_ = std::move(timer);
  timing_ = how;
  guarded([&] {
    while (timer_ && marks_.size() <= module().program.num_launches)
      marks_.push_back(std::make_unique<EventHandle>(*gpu_, kEventDefault));
  });
}

void CudaDevice::setObserver(LaunchObserver observer) {
  timer_ = nullptr;
  observer_ = std::move(observer);
  if (observer_ && !arenaImage_.data())
    arenaImage_ = Mapping::anonymous(module().program.arena_bytes, "arena image");
}

void CudaDevice::zeroBlocks(std::span<const int32_t> blocks) {
  for (int32_t b : blocks)
    checkBlock(b, plan_.numBlocks);
  guarded([&] {
    for (int32_t b : blocks)
      gpu_->driver().check(gpu_->driver().cuMemsetD8Async(block(b), 0, blockBytes(), gpu_->stream()), "cuMemsetD8Async");
  });
}

void CudaDevice::copyBlocks(std::span<const std::pair<int32_t, int32_t>> fromTo) {
  for (auto [from, to] : fromTo) {
    checkBlock(from, plan_.numBlocks);
    checkBlock(to, plan_.numBlocks);
  }
  guarded([&] {
    for (auto [from, to] : fromTo)
      if (from != to)
        gpu_->driver().check(gpu_->driver().cuMemcpyDtoDAsync(block(to), block(from), blockBytes(), gpu_->stream()),
                             "cuMemcpyDtoDAsync");
  });
}

void CudaDevice::swapOut(std::span<const std::pair<int32_t, int32_t>> blockToSlot) {
  for (auto [from, to] : blockToSlot) {
    checkBlock(from, plan_.numBlocks);
    checkBlock(to, plan_.numSlots);
  }
  guarded([&] {
    for (auto [from, to] : blockToSlot)
      gpu_->driver().check(gpu_->driver().cuMemcpyDtoHAsync(slot(to), block(from), blockBytes(), gpu_->stream()), "cuMemcpyDtoHAsync");
  });
}

void CudaDevice::swapIn(std::span<const std::pair<int32_t, int32_t>> slotToBlock) {
  for (auto [from, to] : slotToBlock) {
    checkBlock(from, plan_.numSlots);
    checkBlock(to, plan_.numBlocks);
  }
  guarded([&] {
    for (auto [from, to] : slotToBlock)
      gpu_->driver().check(gpu_->driver().cuMemcpyHtoDAsync(block(to), slot(from), blockBytes(), gpu_->stream()), "cuMemcpyHtoDAsync");
  });
}

void CudaDevice::readBlock(int32_t index, void *to) const {
  checkBlock(index, plan_.numBlocks);
  guarded([&] {
    gpu_->driver().check(gpu_->driver().cuMemcpyDtoHAsync(to, block(index), blockBytes(), gpu_->stream()), "cuMemcpyDtoHAsync");
    gpu_->synchronize();
  });
}

const std::byte *CudaDevice::weights() const {
  if (!hostWeights_.data()) {
    if (source_->mappable()) {
      hostWeights_ = Mapping::file(source_->fd(), source_->fileOffset(), source_->size(), path_ + ": weights");
    } else {
      hostWeights_ = Mapping::anonymous(source_->size(), "weights");
      source_->readParallel(0, hostWeights_.data(), source_->size());
    }
  }
  return hostWeights_.data();
}

} // namespace llmc::cuda

namespace llmc {

std::unique_ptr<Device> makeCudaDevice(const DevicePayload &payload, const DeviceOptions &options) {
  const std::string isa = payload.modules.empty() ? "?" : payload.modules[0].isa;
  return std::make_unique<cuda::CudaDevice>(payload, options, cuda::systemDriver(cuda::purposeOf(payload.path, isa)));
}

} // namespace llmc
