//===- Simulation.cpp -----------------------------------------------------===//
#include "runtime/engine/Simulation.h"
#include "llmc/Support/Error.h"
#include "llmc/abi.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>

namespace llmc {

double StepCost::operator()(uint64_t tokens, uint64_t cachedTokens) const {
  const double cached = perCachedToken * double(cachedTokens), n = double(tokens);
  size_t after = 0;
  while (after < points.size() && points[after].first < n)
    ++after;
  if (points.size() == 1 || after == 0)
    return points[0].second + cached;
  after = std::min(after, points.size() - 1);
  const auto [x0, y0] = points[after - 1];
  const auto [x1, y1] = points[after];
  return y0 + (n - x0) * (y1 - y0) / (x1 - x0) + cached;
}

std::vector<std::pair<double, double>> StepCost::parsePoints(const std::string &text) {
  std::vector<std::pair<double, double>> points;
  auto wrong = [&] { throw Error("step times: expected TOKENS=SECONDS,... with growing tokens, got '" + text + "'"); };
  for (const char *at = text.data(), *end = at + text.size(); at <= end;) {
    double tokens = 0, seconds = 0;
    auto [equals, bad] = std::from_chars(at, end, tokens);
    if (bad != std::errc() || equals == end || *equals != '=')
      wrong();
    auto [stop, worse] = std::from_chars(equals + 1, end, seconds);
    if (worse != std::errc() || (stop != end && *stop != ','))
      wrong();
    if (!(tokens >= 1 && std::isfinite(tokens) && seconds > 0 && std::isfinite(seconds)) || (!points.empty() && tokens <= points.back().first))
      wrong();
    points.emplace_back(tokens, seconds);
    if (stop == end)
      break;
    at = stop + 1;
  }
  return points;
}

double Percentiles::at(double share) const {
  if (values_.empty())
    return 0;
  const auto rank = size_t(std::ceil(share * double(values_.size())));
  const auto nth = values_.begin() + ptrdiff_t(std::clamp<size_t>(rank, 1, values_.size()) - 1);
  std::nth_element(values_.begin(), nth, values_.end());
  return *nth;
}

double Percentiles::mean() const {
  return values_.empty() ? 0 : std::accumulate(values_.begin(), values_.end(), 0.0) / double(values_.size());
}

std::vector<int32_t> PromptIds::operator()(const SimulatedRequest &r) {
  if (!r.ids.empty())
    return r.ids;
  const auto name = uint32_t(std::hash<std::string>()(r.prefix));
  const uint64_t shared = r.prefix.empty() ? 0 : std::min(r.prefixTokens, r.prompt);
  std::vector<int32_t> ids;
  ids.reserve(r.prompt + r.output);
  auto add = [&](uint32_t id) { ids.push_back(int32_t(vocab_ ? id % vocab_ : id)); };
  for (uint64_t i = 0; i < r.prompt; ++i)
    add(i < shared ? name + uint32_t(i) * 2654435761u : next_++);
  return ids;
}

void SimulationResult::count(double stepSeconds, const BlockManager &blocks, size_t waiting) {
  const double used = stepSeconds * double(blocks.total() - blocks.available()) / double(blocks.total());
  ++steps;
  busy += stepSeconds;
  poolUsed += used;
  if (waiting) {
    saturated += stepSeconds;
    poolUsedSaturated += used;
  }
}

void SimulationResult::finish() {
  if (busy > 0)
    poolUsed /= busy;
  if (saturated > 0)
    poolUsedSaturated /= saturated;
}

namespace {

struct Task : Job {
  const SimulatedRequest *request = nullptr;
  double lastToken = 0;
  bool started = false;
};

class Simulator {
public:
  Simulator(const SchedulerOptions &options, uint32_t blocks, bool prefixCache, const StepCost &cost)
      : blocks_(blocks, prefixCache), scheduler_(blocks_, options), cost_(cost), budget_(options.tokenBudget) {}

  void arrive(const SimulatedRequest &request) {
    if (request.prompt > pool() || request.prompt == 0) {
      ++result.refused;
      return;
    }
    auto task = std::make_unique<Task>();
    task->request = &request;
    task->promptLength = request.prompt;
    task->size = request.prompt + request.output;
    task->priority = request.priority;
    task->cacheSalt = request.salt;
    task->ids = makeIds_(request);
    result.promptTokens += request.prompt;
    scheduler_.add(*task);
    task.release(); // until finish()
  }

  bool idle() const { return scheduler_.empty(); }

  void step(double &now) {
    const StepPlan &plan = scheduler_.plan();
    uint64_t cached = 0;
    for (const StepPart &part : plan.parts) {
      Task &task = static_cast<Task &>(*part.job);
      cached += part.job->computed;
      if (!std::exchange(task.started, true)) {
        result.queue.add(now - task.request->arrival);
        result.cachedTokens += task.cached;
      }
    }
    const double seconds = cost_(plan.tokens, cached);
    now += seconds;
    result.computedTokens += plan.tokens;
    result.count(seconds, blocks_, plan.tokens < budget_ ? scheduler_.waiting() : 0);
    for (const StepPart &part : plan.parts)
      if (part.last)
        generate(static_cast<Task &>(*part.job), now);
    result.preemptions = scheduler_.preemptions();
  }

  SimulationResult result;

private:
  uint64_t pool() const { return uint64_t(blocks_.total()) * LLMC_KV_BLOCK; }

  void generate(Task &task, double now) {
    const uint64_t generated = task.ids.size() - task.promptLength;
    if (generated == 0)
      result.firstToken.add(now - task.request->arrival);
    else
      result.interToken.add(now - task.lastToken);
    task.lastToken = now;
    task.ids.push_back(--generated_);
    ++result.outputTokens;
    const bool full = task.ids.size() > pool();
    if (generated + 1 < task.request->output && !full)
      return;
    ++(generated + 1 < task.request->output ? result.cut : result.finished);
    scheduler_.remove(task);
    delete &task;
  }

  BlockManager blocks_;
  Scheduler scheduler_;
  const StepCost &cost_;
  uint64_t budget_; // tokens of a step
  PromptIds makeIds_;
  int32_t generated_ = 0; // ids unlike those of prompts
};

} // namespace

SimulationResult simulate(std::span<const SimulatedRequest> requests, const SchedulerOptions &options, uint32_t blocks, bool prefixCache,
                          const StepCost &cost) {
  for (size_t i = 1; i < requests.size(); ++i)
    if (requests[i].arrival < requests[i - 1].arrival)
      throw Error("trace: expected requests in order of arrival, got request " + std::to_string(i + 1) + " before the one in front of it");
  Simulator simulator(options, blocks, prefixCache, cost);
  double now = requests.empty() ? 0 : requests[0].arrival;
  for (size_t next = 0; next < requests.size() || !simulator.idle();) {
    if (simulator.idle())
      now = std::max(now, requests[next].arrival);
    for (; next < requests.size() && requests[next].arrival <= now; ++next)
      simulator.arrive(requests[next]);
    if (!simulator.idle())
      simulator.step(now);
  }
  SimulationResult result = std::move(simulator.result);
  if (!requests.empty())
    result.seconds = now - requests[0].arrival;
  result.finish();
  return result;
}

} // namespace llmc
