//===- CpuDevice.cpp ------------------------------------------------------===//
#include "runtime/device/cpu/CpuDevice.h"
#include "llmc/Support/Error.h"
#include "runtime/device/CheckStep.h"
#include "runtime/device/KVBlocks.h"
#include "runtime/device/cpu/CpuFeatures.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace llmc {

namespace {

constexpr uint64_t kCopyPiece = 4u << 20;

} // namespace

CpuDevice::CpuDevice(const DevicePayload &payload, const DeviceOptions &options)
    : path_(payload.path), options_(options) {
  std::vector<std::string> available;
  for (const DevicePayload::Module &module : payload.modules)
    available.push_back(module.isa);
  const std::string isa = chooseIsa(available, options.isa, detectCpuFeatures());
  for (const DevicePayload::Module &module : payload.modules)
    if (module.isa == isa)
      loaded_ = LoadedModule(module.bytes, path_ + ": module." + isa);
  module_ = loaded_.get();
  if (std::string_view(module_->target) != "cpu")
    throw Error(path_ + ": expected a module for cpu, got one for " + module_->target);

  checkWeights(*payload.weights);
  source_ = payload.weights;
  const uint64_t wanted = options.kvTokens ? options.kvTokens : module_->max_context;
  const uint64_t blocks = options.kvBytes ? options.kvBytes / blockBytes() : blocksOf(wanted);
  if (blocks == 0)
    throw Error("--kv-memory: expected at least " + std::to_string(blockBytes()) + " bytes (one block of " +
                std::to_string(LLMC_KV_BLOCK) + " tokens), got " + std::to_string(options.kvBytes));
  if (blocks > INT32_MAX / LLMC_KV_BLOCK || blocks > UINT64_MAX / 4 / blockBytes())
    throw Error("KV pool: " + std::to_string(blocks) + " blocks are too many");
  numBlocks_ = uint32_t(blocks);

  const uint64_t weights = options.mapWeights && source_->mappable() ? 0 : module_->weights_bytes;
  numSlots_ = slotsFor(options.swapBytes, blockBytes());
  const uint64_t total = weights + arenaBytes(*module_) + (blocks + numSlots_) * blockBytes();
  if (uint64_t have = availableMemory(); options.checkMemory && total > have)
    throw Error("the model needs " + std::to_string(total) + " bytes (weights " + std::to_string(weights) + ", arena " +
                std::to_string(arenaBytes(*module_)) + ", KV pool " + std::to_string(blocks * blockBytes()) + ", swap space " +
                std::to_string(numSlots_ * blockBytes()) + "), but only " + std::to_string(have) + " are available");
  loadWeights();
  arena_ = Mapping::anonymous(arenaBytes(*module_), "arena");
  kv_ = Mapping::anonymous(blocks * blockBytes(), "KV pool");
  if (numSlots_)
    swap_ = Mapping::anonymous(numSlots_ * blockBytes(), "swap space");
  pool_ = std::make_unique<ThreadPool>(options.threads ? options.threads : ThreadPool::availableCpus(),
                                       options.pinThreads);
  samplers_.resize(pool_->size());
  const StepBufferShape shape{LLMC_ROW_PAD, false, numBlocks_};
  main_ = std::make_unique<Runner>(*module_, module_->program, shape);
  if (hasPhases(*module_)) {
    prompts_ = std::make_unique<Runner>(*module_, module_->prompt, shape);
    phases_.emplace(*module_);
    kept_.resize(uint64_t(module_->max_logits) * module_->padded_vocab);
  }
  previousIds_.assign(module_->max_logits, 0);
  logits_.assign(module_->max_logits, nullptr);
  bindProgram();
}

CpuDevice::~CpuDevice() {
  cancel_ = true;
  if (copier_.joinable())
    copier_.join();
}

void CpuDevice::checkWeights(const WeightSource &source) const {
  if (source.size() != module_->weights_bytes)
    throw Error(path_ + ": expected " + std::to_string(module_->weights_bytes) + " bytes of weights, got " +
                std::to_string(source.size()));
  if (!source.mappable())
    return;
  struct stat info;
  // A mapping past the end of the file would fault when first touched.
  if (fstat(source.fd(), &info) != 0)
    throw Error(path_ + ": cannot read the weights: " + std::strerror(errno));
  if (uint64_t(info.st_size) < source.fileOffset() || uint64_t(info.st_size) - source.fileOffset() < source.size())
    throw Error(path_ + ": truncated: the weights end at byte " + std::to_string(source.fileOffset() + source.size()) +
                ", the file at " + std::to_string(info.st_size));
}

// Serves from the file where the image is part of one; weights that come in shards or out of a recipe are read now.
void CpuDevice::loadWeights() {
  if (source_->mappable()) {
    mapped_ = Mapping::file(source_->fd(), source_->fileOffset(), module_->weights_bytes, path_ + ": weights");
    return;
  }
  huge_ = Mapping::anonymous(module_->weights_bytes, "weights");
  source_->readParallel(0, huge_.data(), module_->weights_bytes, options_.threads);
  hugeInUse_ = true;
}

void CpuDevice::bindProgram() {
  const ProgramBases bases{arena_.data(), hugeInUse_ ? huge_.data() : mapped_.data(), {kv_.data()}};
  main_->executor.bind(bases);
  if (prompts_)
    prompts_->executor.bind(bases);
}

void CpuDevice::startBackground() {
  if (copierStarted_)
    return;
  copierStarted_ = true;
  if (!options_.mapWeights && mapped_.data())
    huge_ = Mapping::anonymous(module_->weights_bytes, "weights");
  copier_ = std::thread([this] { background(); });
}

void CpuDevice::background() {
  // Behind the threads of the step, but not so far that they, always busy or spinning, starve it.
  setpriority(PRIO_PROCESS, id_t(syscall(SYS_gettid)), 5);
  for (uint64_t at = 0; mapped_.data() && huge_.data() && at < module_->weights_bytes && !cancel_;) {
    const uint64_t piece = std::min(kCopyPiece, module_->weights_bytes - at);
    ssize_t n = pread(source_->fd(), huge_.data() + at, piece, off_t(source_->fileOffset() + at));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return; // the mapping keeps serving
    at += uint64_t(n);
  }
  if (cancel_)
    return;
  hugeReady_.store(huge_.data() != nullptr, std::memory_order_release);
  arena_.populate(cancel_);
  kv_.populate(cancel_);
}

void CpuDevice::finishBackground() {
  if (copier_.joinable())
    copier_.join();
}

void CpuDevice::step(const llmc_step_v1 &s) {
  checkStep(*module_, s, numBlocks_);
  if (!hugeInUse_ && hugeReady_.load(std::memory_order_acquire)) {
    hugeInUse_ = true;
    bindProgram();
  }
  bool whole = true;
  if (!prompts_) {
    whole = run(*main_, s, 0);
  } else {
    phases_->split(s);
    const llmc_step_v1 &prompts = phases_->prompts, &generated = phases_->generated;
    if (prompts.num_tokens || !generated.num_tokens)
      whole = run(*prompts_, prompts, 0);
    if (whole && prompts.num_logits && generated.num_tokens)
      keepLogits(prompts.num_logits);
    if (generated.num_tokens)
      whole &= run(*main_, generated, prompts.num_logits);
  }
  if (whole && s.samplers && s.num_logits)
    sample(s);
}

bool CpuDevice::run(Runner &runner, const llmc_step_v1 &s, uint32_t firstRow) {
  runner.buffers.fill(s, previousIds_);
  if (observer_) {
    LaunchHooks hooks;
    hooks.after = [&](const llmc_launch_v1 &launch, const llmc_variant_v1 &variant, uint32_t rows, double seconds) {
      observer_({launch, arena_.data(), rows, s.num_tokens, s.num_logits, s.num_seqs, variant, seconds});
    };
    runner.executor.run(*pool_, &hooks, s.stop_after_op);
  } else if (timer_) {
    runTimed(runner, s);
  } else {
    runner.executor.run(*pool_, nullptr, s.stop_after_op);
  }
  if (endsEarly(runner.program, s))
    return false;
  const llmc_module_v1 &m = *module_;
  auto *logits = reinterpret_cast<float *>(arena_.data() + runner.program.logits_offset);
  for (uint32_t i = 0; i < s.num_logits; ++i) {
    logits_[firstRow + i] = logits + uint64_t(i) * m.padded_vocab;
    if (s.out_logits)
      std::memcpy(s.out_logits + uint64_t(i) * m.vocab, logits_[firstRow + i], m.vocab * sizeof(float));
  }
  if (s.out_hidden && runner.program.hidden_offset != UINT64_MAX) {
    auto *hidden = reinterpret_cast<float *>(arena_.data() + runner.program.hidden_offset);
    for (uint32_t i = 0; i < s.num_logits; ++i)
      std::memcpy(s.out_hidden + uint64_t(i) * m.hidden, hidden + uint64_t(i) * m.padded_hidden,
                  m.hidden * sizeof(float));
  }
  return true;
}

void CpuDevice::runTimed(Runner &runner, const llmc_step_v1 &s) {
  const llmc_program_v1 &program = runner.program;
  std::vector<double> seconds(program.num_launches, -1);
  runner.executor.run(*pool_, nullptr, s.stop_after_op, 0, seconds.data());
  for (uint32_t i = 0; i < program.num_launches && seconds[i] >= 0; ++i)
    timer_(program.launches[i], *runner.buffers.plan(program.launches[i]).variant, seconds[i]);
}

void CpuDevice::keepLogits(uint32_t rows) {
  for (uint32_t i = 0; i < rows; ++i) {
    float *kept = kept_.data() + uint64_t(i) * module_->padded_vocab;
    std::memcpy(kept, logits_[i], module_->padded_vocab * sizeof(float));
    logits_[i] = kept;
  }
}

// A row is one thread's: what it gives does not depend on how many there are.
void CpuDevice::sample(const llmc_step_v1 &s) {
  const llmc_module_v1 &m = *module_;
  std::atomic<uint32_t> next{0};
  std::vector<std::exception_ptr> failed(pool_->size());
  auto body = [&](unsigned thread) {
    try {
      for (uint32_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < s.num_logits;)
        previousIds_[i] = std::max(samplers_[thread].sample(s, i, {logits_[i], m.vocab}), 0);
    } catch (...) { // out of memory
      failed[thread] = std::current_exception();
    }
  };
  pool_->run(body);
  for (const std::exception_ptr &exception : failed)
    if (exception)
      std::rethrow_exception(exception);
}

void CpuDevice::zeroBlocks(std::span<const int32_t> blocks) {
  for (int32_t b : blocks)
    checkBlock(b, numBlocks_);
  for (int32_t b : blocks)
    std::memset(block(b), 0, blockBytes());
}

void CpuDevice::copyBlocks(std::span<const std::pair<int32_t, int32_t>> fromTo) {
  for (auto [from, to] : fromTo) {
    checkBlock(from, numBlocks_);
    checkBlock(to, numBlocks_);
  }
  for (auto [from, to] : fromTo)
    std::memmove(block(to), block(from), blockBytes());
}

void CpuDevice::swapOut(std::span<const std::pair<int32_t, int32_t>> blockToSlot) {
  for (auto [from, to] : blockToSlot) {
    checkBlock(from, numBlocks_);
    checkBlock(to, numSlots_);
    std::memcpy(slot(to), block(from), blockBytes());
  }
}

void CpuDevice::swapIn(std::span<const std::pair<int32_t, int32_t>> slotToBlock) {
  for (auto [from, to] : slotToBlock) {
    checkBlock(from, numSlots_);
    checkBlock(to, numBlocks_);
    std::memcpy(block(to), slot(from), blockBytes());
  }
}

void CpuDevice::readBlock(int32_t index, void *to) const {
  checkBlock(index, numBlocks_);
  std::memcpy(to, block(index), blockBytes());
}

Ledger CpuDevice::ledger() const {
  Ledger ledger;
  if (mapped_.data())
    ledger.add("weights (file mapping)", mapped_.footprint(), MemoryKind::File);
  const uint64_t copy =
      huge_.data() ? huge_.footprint() : (module_->weights_bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (!options_.mapWeights || !mapped_.data())
    ledger.add(mapped_.data() ? "weights (huge-page copy)" : "weights", copy);
  ledger.add("arena", arena_.footprint());
  ledger.add("kv pool", kv_.footprint());
  if (numSlots_)
    ledger.add("swap space", swap_.footprint());
  return ledger;
}

std::unique_ptr<Device> makeCpuDevice(const DevicePayload &payload, const DeviceOptions &options) {
  return std::make_unique<CpuDevice>(payload, options);
}

} // namespace llmc
