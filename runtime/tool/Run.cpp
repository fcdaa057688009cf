//===- Run.cpp - answers one prompt ---------------------------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/device/Memory.h"
#include "runtime/engine/Engine.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tool/Answer.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/ConstraintFlags.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/SampleFlags.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

struct RunFlags {
  LoadFlags load;
  SamplingParams sampling;
  ConstraintFlags constraint;
  std::string prompt, system, messages;
  bool continueFinal = false; // the last of messages
  bool raw = false, special = false, ids = false, json = false, stats = false, hasSystem = false;
  int32_t stopAfterOp = -1;
};

struct Times {
  double prompt = 0, firstToken = 0, generation = 0; // seconds; firstToken counts from exec
};

std::string readStandardInput() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

/// Seconds since exec, from /proc/self/stat's start time (clock ticks) as a floor for what ran before main.
double secondsSinceExec() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  double now = 0;
  uptime >> now;
  const size_t close = text.rfind(')');
  if (close == std::string::npos)
    return 0;
  std::istringstream rest(text.substr(close + 2));
  std::string field;
  for (int i = 3; i <= 22 && rest >> field; ++i)
    ;
  return now - std::strtod(field.c_str(), nullptr) / double(sysconf(_SC_CLK_TCK));
}

uint64_t anonymousBytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string line;
  while (std::getline(rollup, line))
    if (line.rfind("Anonymous:", 0) == 0)
      return std::strtoull(line.c_str() + 10, nullptr, 10) * 1024;
  return 0;
}

std::vector<int32_t> promptIds(Model &model, const RunFlags &flags) {
  ChatPrompt::Options options;
  options.parseSpecial = flags.special;
  options.addGenerationPrompt = !flags.continueFinal;
  options.continueFinalMessage = flags.continueFinal ? "content" : "";
  if (!flags.messages.empty())
    return model.encodeChat(readTextFile(flags.messages), options);
  const std::string prompt = flags.prompt == "-" ? readStandardInput() : flags.prompt;
  if (flags.raw)
    return model.encode(prompt, flags.special);
  for (const auto &[text, what] : {std::pair(prompt, "prompt"), std::pair(flags.system, "--system")})
    if (const size_t at = utf8::firstInvalid(text); at != text.size())
      throw Error(std::string(what) + ": expected UTF-8 text, got a malformed byte at offset " + std::to_string(at));
  Json messages = Json::array();
  if (flags.hasSystem)
    messages.push_back({{"role", "system"}, {"content", flags.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return model.encodeChat(messages.dump(), options);
}

void printStats(Model &model, Device &device, const Sequence &s, const Times &t) {
  device.finishBackground();
  Ledger ledger = device.ledger();
  model.addTo(ledger);
  const double perToken = s.generated() > 1 ? t.generation / double(s.generated() - 1) : 0;
  std::fprintf(stderr,
               "\ntokenizer %.1f ms, template %.1f ms, load %.1f ms, prefill %zu tokens %.1f ms (%.0f tokens/s)\n"
               "first token %.1f ms after start, then %zu tokens of %.2f ms (%.1f tokens/s), %u threads, %s\n",
               model.tokenizerSeconds * 1e3, model.templateSeconds * 1e3, model.deviceSeconds * 1e3,
               s.request.prompt.size(), t.prompt * 1e3, double(s.request.prompt.size()) / t.prompt, t.firstToken * 1e3,
               size_t(s.generated() ? s.generated() - 1 : 0), perToken * 1e3, perToken > 0 ? 1 / perToken : 0,
               device.threads(), device.module().isa);
  for (const LedgerItem &item : ledger.items)
    std::fprintf(stderr, "%-28s %14llu bytes%s\n", item.name.c_str(), static_cast<unsigned long long>(item.bytes),
                 memoryNote(item.kind));
  if (const DeviceInfo gpu = device.info(); gpu.memoryTotal)
    std::fprintf(stderr, "%-28s %14llu bytes, %s grew by %llu while loading and uses %llu of %llu\n", "GPU memory",
                 static_cast<unsigned long long>(ledger.bytesOf(MemoryKind::Device)), gpu.name.c_str(),
                 static_cast<unsigned long long>(gpu.usedAfter - gpu.usedBefore),
                 static_cast<unsigned long long>(gpu.usedAfter), static_cast<unsigned long long>(gpu.memoryTotal));
  std::fprintf(stderr, "%-28s %14llu bytes, process %llu\n", "anonymous memory",
               static_cast<unsigned long long>(ledger.anonymousBytes()),
               static_cast<unsigned long long>(anonymousBytes()));
}

void printJson(const Answer &answer, const Tokenizer &tokenizer, bool withIds) {
  const Sequence &s = *answer.sequence;
  Json j;
  if (withIds) {
    j["prompt_ids"] = s.request.prompt;
    std::vector<int32_t> ids(s.output().begin(), s.output().end());
    if (s.stopId >= 0) // as sampled: the id that ended the answer included
      ids.push_back(s.stopId);
    j["ids"] = ids;
  }
  j.update(answer.toJson(tokenizer));
  std::printf("%s\n", j.dump().c_str());
}

int run(const RunFlags &flags, const std::string &name) {
  checkSampleFlags(flags.sampling, 0);
  Model model(flags.load, name);
  checkSampleFlags(flags.sampling, model.manifest().model.vocab);
  Request request;
  request.prompt = promptIds(model, flags);
  model.checkPrompt(request.prompt.size());
  request.sampling = flags.sampling;
  request.eosIds = model.tokenizer().eosIds();
  request.stopAfterOp = flags.stopAfterOp;
  request.constraint = constraintOf(flags.constraint, model);

  const uint64_t wanted = std::min<uint64_t>(flags.sampling.maxTokens, UINT32_MAX);
  const uint64_t limit = model.manifest().model.maxContext;
  std::unique_ptr<Device> device = model.makeDevice(std::min<uint64_t>(limit, request.prompt.size() + wanted));
  Engine engine(*device, {.context = flags.load.context});

  Times times;
  const auto start = std::chrono::steady_clock::now();
  auto first = start;
  const bool json = flags.ids || flags.json;
  AnswerHooks hooks;
  hooks.onText = [&](const std::string &piece) {
    if (!json) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    }
  };
  hooks.onFirstToken = [&] {
    first = std::chrono::steady_clock::now();
    times.prompt = secondsSince(start);
    times.firstToken = secondsSinceExec();
    device->startBackground();
  };
  const Answer result = answer(engine, model.tokenizer(), std::move(request), hooks);
  if (result.sequence->generated())
    times.generation = secondsSince(first);
  if (json)
    printJson(result, model.tokenizer(), flags.ids);
  else if (!result.text.empty() && result.text.back() != '\n')
    std::putchar('\n');
  std::fflush(stdout);
  if (flags.stats)
    printStats(model, *device, *result.sequence, times);
  const Sequence &sequence = *result.sequence;
  if (sequence.finish == Finish::Error)
    throw Error(sequence.error);
  if (sequence.finish == Finish::CacheFull)
    throw Error("the KV cache is full after " + std::to_string(sequence.ids.size()) + " tokens; see --kv-memory and --context");
  return 0;
}

} // namespace

Command addRun(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<RunFlags>();
  flags->sampling.maxTokens = kDefaultMaxTokens;
  CLI::App *sub = app.add_subcommand("run", "answer a prompt");
  sub->add_option("PROMPT", flags->prompt, "the user's message; - reads it from standard input");
  sub->add_option("--system", flags->system, "system message (empty text is a message, too)")
      ->each([flags](const std::string &) { flags->hasSystem = true; })
      ->allow_extra_args(false);
  auto *messages = sub->add_option("--messages", flags->messages, "JSON file with the whole conversation: [{\"role\": ..., \"content\": ...}, ...]");
  sub->add_flag("--continue-final-message", flags->continueFinal, "go on with the last message of --messages, mostly the start of an answer")->needs(messages);
  sub->add_flag("--raw", flags->raw, "continue PROMPT as it is, without the chat template");
  sub->add_flag("--special", flags->special, "what looks like a control token in PROMPT or messages is one (default: it is text)");
  addSampleFlags(*sub, flags->sampling);
  addConstraintFlags(*sub, flags->constraint);
  sub->add_flag("--json", flags->json, "print {\"text\", \"finish\", \"stop\", \"prompt_tokens\", \"completion_tokens\"} as JSON");
  sub->add_flag("--ids", flags->ids, "the same with \"prompt_ids\" and \"ids\"");
  addLogprobsFlag(*sub, flags->sampling);
  addLoadFlags(*sub, flags->load);
  sub->add_flag("--stats", flags->stats, "print times and memory on standard error");
  addInteger(*sub, "--stop-after-op", flags->stopAfterOp, "end every step behind this op (see info --json); for bisection");
  sub->footer("Examples:\n  " + name + " run \"What is a compiler?\"\n  " + name +
              " run -t 0.8 --top-p 0.95 --seed 7 \"Write a haiku\"\n  echo \"Once upon a time\" | " + name +
              " run --raw -n 64 -\n  " + name +
              " run --stop $'\\n' --json --logprobs 3 \"The capital of France is\"\ndocs/sampling.md in llmc's sources tells what every flag does, docs/constrained.md those that hold the answer.");
  return {sub, [flags, name, sub] {
            if (flags->sampling.logprobs >= 0 && !flags->json && !flags->ids)
              throw CLI::ValidationError("--logprobs", "expected --json or --ids with it, got neither");
            if (flags->prompt.empty() && flags->messages.empty() && !sub->count("PROMPT"))
              throw CLI::RequiredError("PROMPT");
            return run(*flags, name);
          }};
}

} // namespace llmc
