//===- Bench.cpp - tokens per second, as JSON -----------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/engine/Engine.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Model.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

struct BenchFlags {
  LoadFlags load;
  uint64_t prompt = 512, generate = 128, repeat = 5;
  bool ops = false;
};

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Any ids do: the work does not depend on them.
std::vector<int32_t> someIds(uint64_t count, uint32_t vocab) {
  std::vector<int32_t> ids;
  uint32_t x = 1;
  for (uint64_t i = 0; i < count; ++i) {
    x = x * 1664525u + 1013904223u;
    ids.push_back(int32_t((x >> 8) % vocab));
  }
  return ids;
}

/// Seconds of prefill and of the generated tokens after the first (each a step of one row).
std::pair<double, double> once(Device &device, uint64_t prompt, uint64_t generate) {
  Engine engine(device);
  Request request;
  request.prompt = someIds(std::max<uint64_t>(prompt, 1), device.module().vocab);
  request.maxTokens = generate + 1; // the first comes out of the prefill
  auto start = std::chrono::steady_clock::now(), first = start;
  bool started = false;
  request.onToken = [&](int32_t) {
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

// Time per op of one prefill and one decode step; launches run one by one, so the sum exceeds the step.
Json profile(Device &device, uint64_t prompt, uint64_t generate) {
  std::map<std::string, std::pair<double, double>> seconds; // prefill, decode
  device.setObserver([&](const LaunchView &view) {
    std::string op = view.launch.op;
    if (view.launch.layer >= 0)
      if (size_t dot = op.find('.', 4); op.rfind("blk.", 0) == 0 && dot != std::string::npos)
        op = op.substr(dot + 1);
    auto &cell = seconds[op + " (" + view.variant.name + ")"];
    (view.rows > 1 ? cell.first : cell.second) += view.seconds;
  });
  once(device, prompt, generate);
  device.setObserver(nullptr);
  Json ops = Json::object();
  for (auto &[op, cell] : seconds)
    ops[op] = {{"prefill_ms", cell.first * 1e3}, {"decode_ms_per_token", cell.second * 1e3 / double(std::max<uint64_t>(generate, 1))}};
  return ops;
}

int bench(const BenchFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  std::unique_ptr<Device> device = model.makeDevice(flags.prompt + flags.generate + 1);
  once(*device, std::min<uint64_t>(flags.prompt, 16), 1);
  device->startBackground();
  device->finishBackground();
  once(*device, flags.prompt, std::min<uint64_t>(flags.generate, 8)); // warm: every page touched
  std::vector<double> prefill, decode;
  for (uint64_t i = 0; i < flags.repeat; ++i) {
    auto [promptSeconds, generateSeconds] = once(*device, flags.prompt, flags.generate);
    prefill.push_back(double(flags.prompt) / promptSeconds);
    decode.push_back(flags.generate ? double(flags.generate) / generateSeconds : 0);
  }
  Json j;
  j["model"] = model.manifest().model.name;
  j["isa"] = device->module().isa;
  j["threads"] = device->threads();
  j["prompt"] = flags.prompt;
  j["gen"] = flags.generate;
  j["prefill_tokens_per_second"] = median(prefill);
  j["decode_tokens_per_second"] = median(decode);
  j["prefill_runs"] = prefill;
  j["decode_runs"] = decode;
  if (flags.ops)
    j["ops"] = profile(*device, flags.prompt, flags.generate);
  std::printf("%s\n", j.dump(flags.ops ? 1 : -1).c_str());
  return 0;
}

} // namespace

Command addBench(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App *sub = app.add_subcommand("bench", "measure prefill and decode speed; one line of JSON");
  addCount(*sub, "--prompt", flags->prompt, "tokens of the prompt (default 512)", 1, 1 << 24);
  addCount(*sub, "--gen", flags->generate, "tokens to generate (default 128)", 0, 1 << 24);
  addCount(*sub, "--repeat", flags->repeat, "runs; the figures are their medians (default 5)", 1, 10000);
  sub->add_flag("--ops", flags->ops, "add the time of every kernel");
  addLoadFlags(*sub, flags->load);
  sub->footer("Example:\n  " + name + " bench --threads 2 --prompt 512 --gen 128");
  return {sub, [flags, name] { return bench(*flags, name); }};
}

} // namespace llmc
