//===- Simulate.cpp - the scheduler on a trace, without a device ----------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/engine/Simulation.h"
#include "runtime/package/Profile.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/ScheduleFlags.h"
#include "runtime/tool/TraceFile.h"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace llmc {

namespace {

struct SimulateFlags {
  std::string package, trace, profile, stepTimes;
  float cachedNanoseconds = 0;
  ScheduleFlags schedule;
  bool json = false;
};

// One sequence each: a decoding step and one of a prompt, as bench --profile measures them.
std::vector<std::pair<double, double>> pointsOf(const Profile &profile, const std::string &path) {
  std::vector<std::pair<double, double>> points;
  for (const Profile::Step &step : profile.steps)
    points.emplace_back(double(step.sequences * step.tokens), step.seconds);
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end(), [](auto a, auto b) { return a.first == b.first; }), points.end());
  if (points.size() < 2)
    throw Error(path + ": expected steps of at least two sizes, got " + std::to_string(points.size()));
  return points;
}

StepCost costOf(const SimulateFlags &flags) {
  StepCost cost;
  cost.points = flags.profile.empty() ? StepCost::parsePoints(flags.stepTimes)
                                      : pointsOf(Profile::parse(readTextFile(flags.profile), flags.profile), flags.profile);
  cost.perCachedToken = double(flags.cachedNanoseconds) * 1e-9;
  return cost;
}

void print(const SimulationResult &r) {
  using Count = unsigned long long;
  std::printf("%llu requests: %llu finished, %llu cut by the pool, %llu refused\n", Count(r.finished + r.cut + r.refused), Count(r.finished),
              Count(r.cut), Count(r.refused));
  std::printf("%.1f s, busy %.1f %%, %llu steps, %llu preemptions, pool used %.1f %%, %.1f %% while requests wait for a place\n", r.seconds,
              r.seconds > 0 ? 100 * r.busy / r.seconds : 0, Count(r.steps), Count(r.preemptions), 100 * r.poolUsed, 100 * r.poolUsedSaturated);
  std::printf("%llu prompt tokens (%llu found in the cache), %llu output tokens, %.1f a second\n\n", Count(r.promptTokens),
              Count(r.cachedTokens), Count(r.outputTokens), r.seconds > 0 ? double(r.outputTokens) / r.seconds : 0);
  std::printf("%-20s %10s %10s %10s %10s %10s\n", "milliseconds", "mean", "p50", "p90", "p99", "max");
  for (const auto &[name, p] : {std::pair("first token", &r.firstToken), {"token to token", &r.interToken}, {"queue", &r.queue}})
    std::printf("%-20s %10.1f %10.1f %10.1f %10.1f %10.1f\n", name, 1e3 * p->mean(), 1e3 * p->at(0.5), 1e3 * p->at(0.9), 1e3 * p->at(0.99),
                1e3 * p->at(1));
}

int simulateTrace(const SimulateFlags &flags, const std::string &name) {
  const std::vector<SimulatedRequest> requests = readTrace(flags.trace);
  const StepCost cost = costOf(flags);
  LoadFlags load;
  load.package = flags.package;
  Model model(load, name);
  const Manifest &m = model.manifest();
  const SchedulerOptions options = within(flags.schedule.schedulerOptions(m.model.maxContext), uint32_t(m.limits.maxTokens), uint32_t(m.limits.maxSeqs), uint32_t(m.limits.maxLogits));
  const uint64_t tokens = flags.schedule.kvTokens ? flags.schedule.kvTokens : 8 * m.model.maxContext;
  const SimulationResult result = simulate(requests, options, uint32_t(blocksOf(tokens)), flags.schedule.hasPrefixCache(), cost);
  if (flags.json)
    std::printf("%s\n", toJson(result).dump().c_str());
  else
    print(result);
  return 0;
}

} // namespace

Command addSimulate(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App *sub = app.add_subcommand("simulate", "run the scheduler on a trace of requests, with predicted times in the place of the model");
  sub->add_option("--package", flags->package, "load this package instead of the executable's own")->group("");
  sub->add_option("--trace", flags->trace, "a line of JSON for each request: {\"arrival\": seconds, \"prompt\": tokens, \"output\": tokens}")
      ->type_name("FILE")
      ->required();
  CLI::Option *profile = sub->add_option("--profile", flags->profile, "take the times of steps from what bench --profile wrote")->type_name("FILE");
  CLI::Option *times =
      sub->add_option("--step-times", flags->stepTimes, "take these: seconds of steps of so many tokens; between them it is linear")
          ->type_name("TOKENS=SECONDS,...")
          ->excludes(profile);
  addReal(*sub, "--cached-token-ns", flags->cachedNanoseconds, "nanoseconds that a step takes longer for each token in its sequences' caches (default 0)",
          0, 1e9);
  addScheduleFlags(*sub, flags->schedule);
  sub->get_option("--kv-tokens")->description("tokens that the KV cache holds (default: eight times the model's context)");
  sub->add_flag("--json", flags->json, "print one line of JSON; times in seconds");
  sub->footer("A request may also have \"priority\", \"salt\" (a tenant), and \"prefix\" with \"prefix_tokens\": requests that name the same prefix\n"
              "begin with the same so many tokens. docs/scheduling.md in llmc's sources tells how requests are scheduled.\n"
              "Examples:\n  " + name + " bench --profile && " + name + " simulate --trace day.jsonl --profile " + name + ".profile.json\n  " + name +
              " simulate --trace day.jsonl --step-times 1=0.004,64=0.005,2048=0.05 --policy shortest-first");
  return {sub, [flags, name, profile, times] {
            if (!profile->count() && !times->count())
              throw CLI::RequiredError("--profile or --step-times");
            return simulateTrace(*flags, name);
          }};
}

} // namespace llmc
