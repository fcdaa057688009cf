//===- CpuDevice.cpp ------------------------------------------------------===//
#include "runtime/device/cpu/CpuDevice.h"
#include "llmc/Support/Error.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/engine/Sampler.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
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

  loadWeights(payload);
  const uint64_t wanted = options.kvTokens ? options.kvTokens : module_->max_context;
  const uint64_t blocks =
      options.kvBytes ? options.kvBytes / blockBytes() : (wanted + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK;
  if (blocks == 0)
    throw Error("--kv-memory: expected at least " + std::to_string(blockBytes()) + " bytes (one block of " +
                std::to_string(LLMC_KV_BLOCK) + " tokens), got " + std::to_string(options.kvBytes));
  if (blocks > INT32_MAX / LLMC_KV_BLOCK || blocks > UINT64_MAX / 4 / blockBytes())
    throw Error("KV pool: " + std::to_string(blocks) + " blocks are too many");
  numBlocks_ = uint32_t(blocks);

  const uint64_t weights = options.mapWeights ? 0 : module_->weights_bytes;
  const uint64_t total = weights + module_->program.arena_bytes + blocks * blockBytes();
  if (uint64_t have = availableMemory(); options.checkMemory && total > have)
    throw Error("the model needs " + std::to_string(total) + " bytes (weights " + std::to_string(weights) + ", arena " +
                std::to_string(module_->program.arena_bytes) + ", KV pool " + std::to_string(blocks * blockBytes()) +
                "), but only " + std::to_string(have) + " are available");
  arena_ = Mapping::anonymous(module_->program.arena_bytes, "arena");
  kv_ = Mapping::anonymous(blocks * blockBytes(), "KV pool");
  pool_ = std::make_unique<ThreadPool>(options.threads ? options.threads : ThreadPool::availableCpus(),
                                       options.pinThreads);
  buffers_.emplace(*module_, module_->max_tokens);
  executor_.emplace(module_->program, *buffers_);
  previousIds_.assign(module_->max_logits, 0);
  bindProgram();
}

CpuDevice::~CpuDevice() {
  cancel_ = true;
  if (copier_.joinable())
    copier_.join();
}

void CpuDevice::loadWeights(const DevicePayload &payload) {
  if (payload.weightsBytes != module_->weights_bytes)
    throw Error(path_ + ": expected " + std::to_string(module_->weights_bytes) + " bytes of weights, got " +
                std::to_string(payload.weightsBytes));
  struct stat info;
  // A mapping past the end of the file would fault when first touched.
  if (fstat(payload.weightsFd, &info) != 0)
    throw Error(path_ + ": cannot read the weights: " + std::strerror(errno));
  if (uint64_t(info.st_size) < payload.weightsOffset ||
      uint64_t(info.st_size) - payload.weightsOffset < payload.weightsBytes)
    throw Error(path_ + ": truncated: the weights end at byte " +
                std::to_string(payload.weightsOffset + payload.weightsBytes) + ", the file at " +
                std::to_string(info.st_size));
  weightsFd_ = payload.weightsFd;
  weightsOffset_ = payload.weightsOffset;
  mapped_ = Mapping::file(weightsFd_, weightsOffset_, module_->weights_bytes, path_ + ": weights");
}

void CpuDevice::bindProgram() {
  executor_->bind({arena_.data(), hugeInUse_ ? huge_.data() : mapped_.data(), {kv_.data()}});
}

void CpuDevice::startBackground() {
  if (copierStarted_)
    return;
  copierStarted_ = true;
  if (!options_.mapWeights)
    huge_ = Mapping::anonymous(module_->weights_bytes, "weights");
  copier_ = std::thread([this] { background(); });
}

void CpuDevice::background() {
  // Behind the threads of the step, but not so far that they, always busy or spinning, starve it.
  setpriority(PRIO_PROCESS, id_t(syscall(SYS_gettid)), 5);
  for (uint64_t at = 0; huge_.data() && at < module_->weights_bytes && !cancel_;) {
    const uint64_t piece = std::min(kCopyPiece, module_->weights_bytes - at);
    ssize_t n = pread(weightsFd_, huge_.data() + at, piece, off_t(weightsOffset_ + at));
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

void CpuDevice::checkStep(const llmc_step_v1 &s) const {
  const llmc_module_v1 &m = *module_;
  auto fail = [](const std::string &what) { throw Error("step: " + what); };
  auto atMost = [&](const char *what, uint32_t value, uint32_t limit) {
    if (value > limit)
      fail(std::string("expected at most ") + std::to_string(limit) + " " + what + ", got " + std::to_string(value));
  };
  if (s.version != LLMC_ABI_VERSION || s.struct_size != sizeof(llmc_step_v1))
    fail("expected version " + std::to_string(LLMC_ABI_VERSION) + ", got " + std::to_string(s.version));
  atMost("tokens", s.num_tokens, m.max_tokens);
  atMost("sequences", s.num_seqs, m.max_seqs);
  atMost("rows of logits", s.num_logits, m.max_logits);
  if (s.num_kv_groups != m.num_kv_groups)
    fail("expected " + std::to_string(m.num_kv_groups) + " KV groups, got " + std::to_string(s.num_kv_groups));
  if (s.tree_mask || s.adapter_ids || s.embeddings)
    fail("tree masks, adapters and embedding rows are not supported by this module");
  if (!s.token_ids || !s.positions || !s.seq_starts || !s.kv_lengths || !s.kv || (s.num_logits && !s.logits_rows))
    fail("an input is null");
  for (uint32_t t = 0; t < s.num_tokens; ++t) {
    const int64_t id = s.token_ids[t];
    if (id >= int64_t(m.vocab) || id < -int64_t(m.max_logits))
      fail("expected token ids below " + std::to_string(m.vocab) + ", got " + std::to_string(id));
  }
  if (s.seq_starts[0] != 0 || s.seq_starts[s.num_seqs] != int32_t(s.num_tokens))
    fail("the sequences do not cover the tokens");
  for (uint32_t i = 0; i < s.num_logits; ++i)
    if (uint32_t(s.logits_rows[i]) >= s.num_tokens || (i && s.logits_rows[i] <= s.logits_rows[i - 1]))
      fail("the rows of logits are not ascending token indices");
  checkKv(s);
}

void CpuDevice::checkKv(const llmc_step_v1 &s) const {
  auto fail = [](const std::string &what) { throw Error("step: " + what); };
  const llmc_kv_view_v1 &kv = s.kv[0];
  if (!kv.block_table || !kv.slots)
    fail("a block table or the slots are null");
  for (uint32_t i = 0; i < s.num_seqs; ++i) {
    const int32_t begin = s.seq_starts[i], end = s.seq_starts[i + 1];
    if (end < begin)
      fail("the sequence starts descend");
    const int64_t length = s.kv_lengths[i];
    if (length < end - begin || length > int64_t(kv.block_table_stride) * LLMC_KV_BLOCK)
      fail("expected a KV length of at least the new tokens and at most " +
           std::to_string(uint64_t(kv.block_table_stride) * LLMC_KV_BLOCK) + ", got " + std::to_string(length));
    for (int32_t t = begin; t < end; ++t)
      if (s.positions[t] != length - (end - t) || kv.slots[t] < -1 ||
          uint32_t(kv.slots[t] + 1) > numBlocks_ * LLMC_KV_BLOCK)
        fail("token " + std::to_string(t) + " has position " + std::to_string(s.positions[t]) + " and slot " +
             std::to_string(kv.slots[t]) + ", which do not fit a cache of " + std::to_string(length) + " tokens and " +
             std::to_string(numBlocks_) + " blocks");
    for (int64_t b = 0; b * LLMC_KV_BLOCK < length; ++b)
      if (uint32_t(kv.block_table[i * uint64_t(kv.block_table_stride) + uint64_t(b)]) >= numBlocks_)
        fail("sequence " + std::to_string(i) + " refers to a block that does not exist");
  }
}

void CpuDevice::step(const llmc_step_v1 &s) {
  checkStep(s);
  if (!hugeInUse_ && hugeReady_.load(std::memory_order_acquire)) {
    hugeInUse_ = true;
    bindProgram();
  }
  buffers_->fill(s);
  for (uint32_t t = 0; t < s.num_tokens; ++t)
    if (int32_t &id = buffers_->ids[t]; id < 0)
      id = previousIds_[size_t(-1 - id)];
  if (observer_) {
    LaunchHooks hooks;
    hooks.after = [&](const llmc_launch_v1 &launch, const llmc_variant_v1 &variant, uint32_t rows, double seconds) {
      observer_({launch, arena_.data(), rows, s.num_tokens, s.num_logits, s.num_seqs, variant, seconds});
    };
    executor_->run(*pool_, &hooks, s.stop_after_op);
  } else {
    executor_->run(*pool_, nullptr, s.stop_after_op);
  }
  if (s.stop_after_op < 0 || uint32_t(s.stop_after_op) + 1 >= module_->program.num_launches)
    output(s);
}

void CpuDevice::output(const llmc_step_v1 &s) {
  const llmc_module_v1 &m = *module_;
  auto *logits = reinterpret_cast<float *>(arena_.data() + m.program.logits_offset);
  for (uint32_t i = 0; s.out_logits && i < s.num_logits; ++i)
    std::memcpy(s.out_logits + uint64_t(i) * m.vocab, logits + uint64_t(i) * m.padded_vocab, m.vocab * sizeof(float));
  if (s.out_hidden && m.program.hidden_offset != UINT64_MAX) {
    auto *hidden = reinterpret_cast<float *>(arena_.data() + m.program.hidden_offset);
    for (uint32_t i = 0; i < s.num_logits; ++i)
      std::memcpy(s.out_hidden + uint64_t(i) * m.hidden, hidden + uint64_t(i) * m.padded_hidden,
                  m.hidden * sizeof(float));
  }
  Sampler sampler;
  std::vector<std::pair<int32_t, float>> probabilities;
  for (uint32_t i = 0; s.samplers && i < s.num_logits; ++i) {
    const llmc_sampler_v1 &settings = s.samplers[i];
    const bool wanted = s.out_logprobs && s.out_logprob_ids;
    const int32_t id = sampler.sample({logits + uint64_t(i) * m.padded_vocab, m.vocab}, settings,
                                      wanted ? &probabilities : nullptr);
    if (s.out_ids)
      s.out_ids[i] = id;
    previousIds_[i] = std::max(id, 0);
    for (uint32_t k = 0; wanted && id >= 0 && k < probabilities.size(); ++k) {
      s.out_logprob_ids[uint64_t(i) * (1 + settings.logprobs) + k] = probabilities[k].first;
      s.out_logprobs[uint64_t(i) * (1 + settings.logprobs) + k] = probabilities[k].second;
    }
  }
}

void CpuDevice::zeroBlocks(std::span<const int32_t> blocks) {
  for (int32_t b : blocks)
    std::memset(block(b), 0, blockBytes());
}

void CpuDevice::copyBlocks(std::span<const std::pair<int32_t, int32_t>> fromTo) {
  for (auto [from, to] : fromTo)
    std::memcpy(block(to), block(from), blockBytes());
}

void CpuDevice::readBlock(int32_t index, void *to) const { std::memcpy(to, block(index), blockBytes()); }

Ledger CpuDevice::ledger() const {
  Ledger ledger;
  ledger.add("weights (file mapping)", mapped_.footprint(), false);
  if (!options_.mapWeights)
    ledger.add("weights (huge-page copy)", huge_.data() ? huge_.footprint()
                                                        : (module_->weights_bytes + kHugePage - 1) / kHugePage * kHugePage);
  ledger.add("arena", arena_.footprint());
  ledger.add("kv pool", kv_.footprint());
  return ledger;
}

std::unique_ptr<Device> makeCpuDevice(const DevicePayload &payload, const DeviceOptions &options) {
  return std::make_unique<CpuDevice>(payload, options);
}

} // namespace llmc
