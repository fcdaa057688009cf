//===- Traces.cpp ---------------------------------------------------------===//
#include "runtime/cts/Traces.h"
#include "llmc/Support/Error.h"

#include <algorithm>

namespace llmc::cts {

namespace {

uint64_t constantHash(uint64_t, std::span<const int32_t>) { return 7; }

std::string textOf(const Sequence &s) {
  std::string text = toString(s.finish);
  if (s.finish == Finish::Stop)
    text += " at " + std::to_string(s.stopId);
  for (int32_t id : s.output())
    text += " " + std::to_string(id);
  return text;
}

bool beginsAs(const Sequence &s, const Sequence &whole) {
  return s.generated() <= whole.generated() && std::equal(s.output().begin(), s.output().end(), whole.output().begin());
}

} // namespace

Request Traces::request(uint64_t room, uint32_t vocab) {
  const uint32_t plain = vocab - std::max(10u, vocab / 8); // special tokens are at the end of most vocabularies
  auto anyId = [&] { return int32_t(below(plain)); };
  Request r;
  const uint64_t length = 1 + below(std::min<uint64_t>(room, options_.longestPrompt));
  for (uint64_t i = 0; i < length; ++i) // a few texts with long common prefixes
    r.prompt.push_back(int32_t(i * 7 % plain));
  for (uint64_t i = below(length + 1); i < length && below(2); ++i)
    r.prompt[i] = anyId();
  if (options_.badToken >= 0 && below(25) == 0)
    r.prompt[below(length)] = options_.badToken;
  r.sampling.maxTokens = below(options_.mostTokens);
  r.sampling.temperature = below(2) ? 0.0 : 0.8;
  r.sampling.seed = below(100);
  r.sampling.repetitionPenalty = below(3) ? 1 : 1.2;
  if (below(3) == 0)
    for (uint32_t n = 0; n < 1 + vocab / 100; ++n)
      r.eosIds.push_back(anyId());
  r.priority = int64_t(below(3));
  if (below(4) == 0)
    r.cacheSalt = "other";
  return r;
}

EngineOptions Traces::engineOptions(const Device &device) {
  EngineOptions o;
  const uint64_t blocks = std::min<uint64_t>(device.numBlocks(), 2 + below(std::max<uint64_t>(options_.longestPrompt / 4, 2)));
  o.kvTokens = blocks * LLMC_KV_BLOCK;
  o.chunk = uint32_t(below(3) ? 0 : 1 + below(options_.longestPrompt / 3));
  o.tokenBudget = uint32_t(below(3) ? 0 : 1 + below(options_.longestPrompt / 3));
  o.maxRunning = uint32_t(below(4));
  o.policy = Policy(below(3));
  o.batching = below(8) ? Batching::Continuous : Batching::Static;
  o.ageing = uint32_t(1 + below(50));
  o.prefixCache = below(4) != 0;
  if (below(3) == 0)
    o.hash = constantHash;
  o.overlap = below(2) ? Overlap::On : Overlap::Off;
  if (below(8) == 0) {
    o.kv = KVLayout::Contiguous;
    o.prefixCache = false;
  }
  return o;
}

void Traces::ask(Engine &engine, std::vector<Asked> &asked) {
  Request r = request(engine.room(), engine.device().module().vocab);
  // Of a fork all but the prompt is its own.
  const size_t parent = asked.empty() ? 0 : below(asked.size());
  if (!asked.empty() && below(4) == 0 && asked[parent].sequence->finish == Finish::None) {
    r.prompt = asked[parent].request.prompt;
    r.cacheSalt = asked[parent].request.cacheSalt;
    asked.push_back({r, engine.fork(*asked[parent].sequence, r)});
  } else {
    asked.push_back({r, engine.submit(r)});
  }
}

void Traces::compare(Engine &alone, const Asked &asked) const {
  const Sequence &got = *asked.sequence;
  const std::shared_ptr<Sequence> want = alone.generate(asked.request);
  const bool good = got.finish == Finish::Cancelled ? beginsAs(got, *want)
                                                    : got.finish == want->finish && got.stopId == want->stopId && beginsAs(got, *want) &&
                                                          beginsAs(*want, got);
  if (!good)
    throw Error("prompt of " + std::to_string(got.promptLength) + " tokens: expected " + textOf(*want) + ", as alone, got " + textOf(got));
}

void Traces::play(Device &device) {
  const std::string where = "trace " + std::to_string(played_++) + ": ";
  const EngineOptions options = engineOptions(device);
  std::vector<Asked> asked;
  try {
    Engine engine(device, options);
    const size_t count = 1 + below(12);
    const uint64_t mostSteps = 300 * (options_.longestPrompt + options_.mostTokens);
    for (uint64_t steps = 0; asked.size() < count || !engine.scheduler().empty(); ++steps) {
      if (steps > mostSteps)
        throw Error("expected an end within " + std::to_string(mostSteps) + " steps, got none");
      while (asked.size() < count && below(3) == 0)
        ask(engine, asked);
      if (!asked.empty() && below(25) == 0)
        engine.cancel(asked[below(asked.size())].sequence);
      engine.step();
    }
    if (engine.blocks().available() != engine.blocks().total())
      throw Error("expected all " + std::to_string(engine.blocks().total()) + " blocks back, got " + std::to_string(engine.blocks().available()));
    counts_.swapped += engine.scheduler().swaps();
    EngineOptions same; // pool and context, which decide where an answer is cut
    same.kvTokens = options.kvTokens;
    Engine alone(device, same);
    for (const Asked &a : asked) {
      if (options_.exact)
        compare(alone, a);
      ++counts_.requests;
      counts_.tokens += a.sequence->generated();
      counts_.cached += a.sequence->cached;
      counts_.preempted += a.sequence->preemptions;
      counts_.failed += a.sequence->finish == Finish::Error;
      counts_.cancelled += a.sequence->finish == Finish::Cancelled;
    }
  } catch (const Error &error) {
    throw Error(where + error.what());
  }
}

} // namespace llmc::cts
