//===- Bench.cpp - tokens per second, as JSON -----------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/device/cpu/ReadBandwidth.h"
#include "runtime/engine/Engine.h"
#include "runtime/tool/BenchProfile.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/SampleFlags.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <nlohmann/json.hpp>

namespace llmc {

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::vector<int32_t> someIds(uint64_t count, uint32_t vocab) {
  std::vector<int32_t> ids;
  uint32_t x = 1;
  for (uint64_t i = 0; i < count; ++i) {
    x = x * 1664525u + 1013904223u;
    ids.push_back(int32_t((x >> 8) % vocab));
  }
  return ids;
}

namespace {

using Json = nlohmann::ordered_json;

/// Seconds of prefill and of the generated tokens after the first (each a step of one row).
std::pair<double, double> once(Device &device, const BenchFlags &flags, uint64_t prompt, uint64_t generate) {
  Engine engine(device, {.chunk = uint32_t(flags.chunk)});
  Request request;
  request.prompt = someIds(std::max<uint64_t>(prompt, 1), device.module().vocab);
  request.sampling = flags.sampling;
  request.sampling.maxTokens = generate + 1; // the first comes out of the prefill
  auto start = std::chrono::steady_clock::now(), first = start;
  bool started = false;
  request.onToken = [&](const SampledToken &) {
    if (!started)
      first = std::chrono::steady_clock::now();
    started = true;
    return true;
  };
  std::shared_ptr<Sequence> s = engine.generate(request);
  if (s->finish == Finish::Error)
    throw Error(s->error);
  if (s->generated() != generate + 1)
    throw Error("bench: expected room for " + std::to_string(prompt + generate) + " tokens, got " +
                std::to_string(s->ids.size()));
  return {std::chrono::duration<double>(first - start).count(), secondsSince(first)};
}

// Sequences of equal length that are decoded together, straight on the device: what its kernels can do. A step is started before the host
// has the tokens of the one before, as the engine does it.
class BatchRun {
public:
  BatchRun(Device &device, uint32_t sequences, const BenchFlags &flags)
      : device_(device), batches_{Batch(device), Batch(device)}, sequences_(sequences), prompt_(someIds(flags.prompt, device.module().vocab)),
        chunk_(flags.chunk ? uint32_t(flags.chunk) : device.module().max_tokens), sampler_(samplerOf(flags.sampling)) {
    const auto blocks = int32_t((flags.prompt + flags.generate + LLMC_KV_BLOCK) / LLMC_KV_BLOCK);
    for (int32_t s = 0; s < int32_t(sequences); ++s)
      for (int32_t b = 0; b < blocks; ++b)
        tables_.push_back(s * blocks + b);
    blocks_ = size_t(blocks);
  }

  /// Seconds of the prompts and of `generate` generated tokens after the first.
  std::pair<double, double> once(uint64_t generate) {
    auto start = std::chrono::steady_clock::now();
    // All prompts but their last tokens, in steps of chunk_; then those, which give the first token of each.
    const uint64_t body = prompt_.size() - 1;
    Batch &batch = batches_[0];
    for (uint64_t done = 0, all = body * sequences_; done < all;) {
      batch.clear();
      while (done < all && batch.tokens() < chunk_ && batch.sequences() < device_.module().max_seqs) {
        const uint64_t first = done % body;
        const uint64_t count = std::min<uint64_t>(body - first, chunk_ - batch.tokens());
        batch.add(std::span(prompt_).subspan(first, count), first, table(done / body));
        done += count;
      }
      device_.step(batch.step());
    }
    begin(body, prompt_.back());
    end();
    const double prefill = secondsSince(start);
    start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < generate; ++i) {
      begin(prompt_.size() + i, std::nullopt);
      if (i)
        end();
    }
    if (generate)
      end();
    return {prefill, secondsSince(start)};
  }

private:
  std::span<const int32_t> table(uint64_t sequence) const { return std::span(tables_).subspan(sequence * blocks_, blocks_); }

  // Starts a step of one token of each sequence: `id`, or what the step before chooses.
  void begin(uint64_t position, std::optional<int32_t> id) {
    sampler_.position = position;
    Batch &batch = batches_[begun_++ % 2];
    batch.clear();
    for (uint32_t s = 0; s < sequences_; ++s) {
      const int32_t token = id.value_or(-1 - int32_t(s));
      batch.add({&token, 1}, position, table(s));
      batch.wantLogits(s, &sampler_);
    }
    device_.enqueue(batch.step());
  }

  // Ends the one that was started first.
  void end() {
    device_.wait();
    for (int32_t chosen : batches_[ended_++ % 2].outIds())
      if (chosen == Sampler::kBadLogits)
        throw Error("bench: the model computed logits that are not finite in decoding step " + std::to_string(ended_));
  }

  Device &device_;
  Batch batches_[2];
  uint64_t begun_ = 0, ended_ = 0;
  uint32_t sequences_;
  std::vector<int32_t> prompt_, tables_;
  uint32_t chunk_; // tokens of prompts a step
  llmc_sampler_v1 sampler_;
  size_t blocks_ = 0;
};

Json batchFigures(Device &device, uint64_t sequences, const BenchFlags &flags) {
  BatchRun run(device, uint32_t(sequences), flags);
  run.once(std::min<uint64_t>(flags.generate, 8)); // warm
  std::vector<double> prefill, decode;
  for (uint64_t i = 0; i < flags.repeat; ++i) {
    const auto [promptSeconds, generateSeconds] = run.once(flags.generate);
    prefill.push_back(double(flags.prompt * sequences) / promptSeconds);
    decode.push_back(flags.generate ? double(flags.generate * sequences) / generateSeconds : 0);
  }
  std::fprintf(stderr, "batch %llu: prefill %.1f tokens/s, decode %.1f tokens/s\n", static_cast<unsigned long long>(sequences),
               median(prefill), median(decode));
  return {{"batch", sequences},
          {"prefill_tokens_per_second", median(prefill)},
          {"decode_tokens_per_second", median(decode)},
          {"decode_ms_per_step", flags.generate ? 1e3 * double(sequences) / median(decode) : 0},
          {"prefill_runs", prefill},
          {"decode_runs", decode}};
}

void checkBatches(Model &model, const BenchFlags &flags) {
  const Manifest &m = model.manifest();
  const uint64_t limit = std::min({m.limits.maxSeqs, m.limits.maxLogits, m.limits.maxTokens});
  for (uint64_t batch : flags.batches)
    if (batch > limit)
      throw Error("--batch: expected at most " + std::to_string(limit) +
                  " sequences, which is what the package was compiled for (tokens, sequences and rows of logits a step: " +
                  std::to_string(m.limits.maxTokens) + ", " + std::to_string(m.limits.maxSeqs) + ", " +
                  std::to_string(m.limits.maxLogits) + "), got " + std::to_string(batch));
  if (flags.chunk > m.limits.maxTokens)
    throw Error("--chunk: expected at most " + std::to_string(m.limits.maxTokens) +
                " tokens, which is what a step of the package takes, got " + std::to_string(flags.chunk));
  if (flags.prompt + flags.generate > m.model.maxContext)
    throw Error("--prompt, --gen: expected at most " + std::to_string(m.model.maxContext) +
                " tokens together (the model's context), got " + std::to_string(flags.prompt + flags.generate));
}

// Tokens of KV cache that all runs find room in.
uint64_t cacheTokens(const BenchFlags &flags) {
  const uint64_t each = flags.prompt + flags.generate + 1;
  if (flags.batches.empty())
    return each;
  const uint64_t most = *std::max_element(flags.batches.begin(), flags.batches.end());
  return most * blocksOf(each) * LLMC_KV_BLOCK;
}

void single(Device &device, const BenchFlags &flags, Json &j) {
  once(device, flags, std::min<uint64_t>(flags.prompt, 16), 1);
  device.startBackground();
  device.finishBackground();
  once(device, flags, flags.prompt, std::min<uint64_t>(flags.generate, 8)); // warm: every page touched
  std::vector<double> prefill, decode;
  for (uint64_t i = 0; i < flags.repeat; ++i) {
    auto [promptSeconds, generateSeconds] = once(device, flags, flags.prompt, flags.generate);
    prefill.push_back(double(flags.prompt) / promptSeconds);
    decode.push_back(flags.generate ? double(flags.generate) / generateSeconds : 0);
  }
  j["prefill_tokens_per_second"] = median(prefill);
  j["decode_tokens_per_second"] = median(decode);
  j["prefill_runs"] = prefill;
  j["decode_runs"] = decode;
}

// What decoding is bound by: the bytes of a token's weights and how fast they can be read, where they lie.
void roofline(Device &device, Json &j) {
  if (device.info().memoryTotal)
    throw Error("--roofline: expected a package for CPUs, got one for " + std::string(device.module().isa));
  device.startBackground();
  device.finishBackground();
  const double speed = readBandwidth({device.weights(), device.module().weights_bytes}, device.threads());
  j["weights_bytes"] = device.module().weights_bytes;
  j["read_bytes_per_second"] = speed;
  j["tokens_per_second_bound"] = speed / double(device.module().weights_bytes);
}

int bench(const BenchFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  checkBatches(model, flags);
  std::unique_ptr<Device> device = model.makeDevice(cacheTokens(flags));
  if (!flags.profile.empty())
    return benchProfile(model, *device, flags);
  Json j;
  j["model"] = model.manifest().model.name;
  j["isa"] = device->module().isa;
  j["threads"] = device->threads();
  j["prompt"] = flags.prompt;
  j["gen"] = flags.generate;
  j["load_seconds"] = model.deviceSeconds;
  if (const DeviceInfo gpu = device->info(); gpu.memoryTotal)
    j["gpu"] = {{"name", gpu.name},
                {"detail", gpu.detail},
                {"own_bytes", device->ledger().bytesOf(MemoryKind::Device)},
                {"used_before_bytes", gpu.usedBefore},
                {"used_after_bytes", gpu.usedAfter}};
  if (flags.roofline) {
    roofline(*device, j);
    std::printf("%s\n", j.dump().c_str());
    return 0;
  }
  if (flags.batches.empty())
    single(*device, flags, j);
  for (uint64_t batch : flags.batches) {
    device->startBackground();
    device->finishBackground();
    j["batches"].push_back(batchFigures(*device, batch, flags));
  }
  std::printf("%s\n", j.dump().c_str());
  return 0;
}

} // namespace

Command addBench(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App *sub = app.add_subcommand("bench", "measure prefill and decode speed; one line of JSON");
  addCount(*sub, "--prompt", flags->prompt, "tokens of the prompt (default 512)", 1, 1 << 24);
  addCount(*sub, "--gen,--generate", flags->generate, "tokens to generate (default 128)", 0, 1 << 24);
  addCount(*sub, "--repeat", flags->repeat, "runs; the figures are their medians (default 5)", 1, 10000);
  addCounts(*sub, "--batch", flags->batches,
            "decode so many sequences at a time, e.g. 1,16,64; the figures are tokens of all of them", 1, 1 << 20);
  addCount(*sub, "--chunk", flags->chunk, "tokens of prompts a step (default: as many as the package takes)", 1, 1 << 24);
  const std::string usual = profileFile(name);
  CLI::Option *profile = sub->add_option("--profile", flags->profile,
                  "time every launch of a step of the prompt and of one of decoding instead: a table of the kernels, and FILE (default " +
                      usual + ") for llmc explain")
      ->expected(0, 1)
      ->default_str(usual)
      ->type_name("[FILE]");
  sub->add_flag("--bursts", flags->bursts,
                "GPU: of a profile, time the launches of an op alone and in short bursts, where the card's power limit plays no part")
      ->needs(profile);
  sub->get_option("--chunk")->excludes(profile); // it times whole steps
  sub->add_flag("--roofline", flags->roofline, "CPU: measure how fast the weights can be read instead, which bounds decoding")->excludes(profile);
  addDrawFlags(*sub, flags->sampling);
  addLoadFlags(*sub, flags->load);
  sub->footer("Example:\n  " + name + " bench --threads 2 --prompt 512 --gen 128\n  " + name + " bench --batch 1,16,64 --temperature 0.8 --top-p 0.95\n  " + name +
              " bench --profile --prompt 512 && llmc explain " + name + " --profile " + usual);
  return {sub, [flags, name] {
            checkSampleFlags(flags->sampling, UINT64_MAX);
            if (!flags->profile.empty())
              flags->generate = 1; // the token behind the prompt
            return bench(*flags, name);
          }};
}

} // namespace llmc
