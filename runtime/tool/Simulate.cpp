//===- Simulate.cpp - the scheduler on a trace, without a device ----------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/engine/Simulation.h"
#include "runtime/package/Profile.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/ScheduleFlags.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

struct SimulateFlags {
  std::string package, trace, profile, stepTimes;
  float cachedNanoseconds = 0;
  uint64_t kvTokens = 0;
  ScheduleFlags schedule;
  bool json = false;
};

class TraceLine {
public:
  TraceLine(const std::string &text, const std::string &where) : where_(where) {
    try {
      json_ = Json::parse(text);
    } catch (const Json::exception &) {
    }
    if (!json_.is_object())
      throw Error(where_ + ": expected a JSON object, got '" + text.substr(0, 60) + "'");
    static const char *const keys[] = {"arrival", "prompt", "output", "priority", "prefix", "prefix_tokens", "salt"};
    for (const auto &[key, value] : json_.items())
      if (std::find(std::begin(keys), std::end(keys), key) == std::end(keys))
        throw Error(where_ + ": " + key + ": expected one of arrival, prompt, output, priority, prefix, prefix_tokens, salt");
  }

  SimulatedRequest request() const {
    SimulatedRequest r;
    r.arrival = number("arrival", 0, 1e12, false);
    r.prompt = uint64_t(number("prompt", 1, 1 << 30, true));
    r.output = uint64_t(number("output", 1, 1 << 30, true));
    r.priority = json_.contains("priority") ? int64_t(number("priority", -1e6, 1e6, true)) : 0;
    r.prefixTokens = json_.contains("prefix_tokens") ? uint64_t(number("prefix_tokens", 0, double(r.prompt), true)) : 0;
    r.prefix = text("prefix");
    r.salt = text("salt");
    return r;
  }

private:
  double number(const char *key, double least, double most, bool whole) const {
    const Json value = json_.contains(key) ? json_[key] : Json();
    const double x = value.is_number() ? value.get<double>() : NAN;
    if (!(x >= least && x <= most) || (whole && x != std::floor(x)))
      throw Error(where_ + ": " + key + ": expected a " + (whole ? "whole " : "") + "number from " + Json(least).dump() + " to " +
                  Json(most).dump() + ", got " + (value.is_null() ? "none" : value.dump()));
    return x;
  }
  std::string text(const char *key) const {
    if (!json_.contains(key))
      return "";
    if (!json_[key].is_string())
      throw Error(where_ + ": " + key + ": expected a string, got " + json_[key].dump());
    return json_[key].get<std::string>();
  }

  std::string where_;
  Json json_;
};

std::vector<SimulatedRequest> readTrace(const std::string &path) {
  const std::string text = readTextFile(path, 8ull << 30);
  std::vector<SimulatedRequest> requests;
  uint64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    if (text.find_first_not_of(" \t\r", at) < end)
      requests.push_back(TraceLine(text.substr(at, end - at), path + ":" + std::to_string(line)).request());
    at = end + 1;
  }
  if (requests.empty())
    throw Error(path + ": expected at least one request, got none");
  std::sort(requests.begin(), requests.end(), [](const SimulatedRequest &a, const SimulatedRequest &b) { return a.arrival < b.arrival; });
  return requests;
}

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

Json percentiles(const Percentiles &p) {
  return {{"mean", p.mean()}, {"p50", p.at(0.5)}, {"p90", p.at(0.9)}, {"p99", p.at(0.99)}, {"max", p.at(1)}};
}

Json toJson(const SimulationResult &r) {
  return {{"requests", r.finished + r.cut + r.refused},
          {"finished", r.finished},
          {"cut_by_the_pool", r.cut},
          {"refused", r.refused},
          {"seconds", r.seconds},
          {"busy_seconds", r.busy},
          {"steps", r.steps},
          {"preemptions", r.preemptions},
          {"prompt_tokens", r.promptTokens},
          {"cached_tokens", r.cachedTokens},
          {"computed_tokens", r.computedTokens},
          {"output_tokens", r.outputTokens},
          {"output_tokens_per_second", r.seconds > 0 ? double(r.outputTokens) / r.seconds : 0},
          {"pool_used", r.poolUsed},
          {"time_to_first_token", percentiles(r.firstToken)},
          {"inter_token", percentiles(r.interToken)},
          {"queue", percentiles(r.queue)}};
}

void print(const SimulationResult &r) {
  using Count = unsigned long long;
  std::printf("%llu requests: %llu finished, %llu cut by the pool, %llu refused\n", Count(r.finished + r.cut + r.refused), Count(r.finished),
              Count(r.cut), Count(r.refused));
  std::printf("%.1f s, busy %.1f %%, %llu steps, %llu preemptions, pool used %.1f %%\n", r.seconds,
              r.seconds > 0 ? 100 * r.busy / r.seconds : 0, Count(r.steps), Count(r.preemptions), 100 * r.poolUsed);
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
  SchedulerOptions options;
  flags.schedule.applyTo(options);
  options = within(options, uint32_t(m.limits.maxTokens), uint32_t(m.limits.maxSeqs), uint32_t(m.limits.maxLogits));
  const uint64_t tokens = flags.kvTokens ? flags.kvTokens : 8 * m.model.maxContext;
  const SimulationResult result = simulate(requests, options, uint32_t((tokens + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK), flags.schedule.prefixCache, cost);
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
  addCount(*sub, "--kv-tokens", flags->kvTokens, "tokens that the KV cache holds (default: eight times the model's context)", 1, 1ull << 32);
  addScheduleFlags(*sub, flags->schedule);
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
