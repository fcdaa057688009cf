//===- Replay.cpp - a trace of requests through the engine ----------------===//
#include "llmc/Support/Error.h"
#include "runtime/engine/Engine.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/ScheduleFlags.h"
#include "runtime/tool/TraceFile.h"

#include <cstdio>
#include <map>
#include <memory>
#include <thread>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct ReplayFlags {
  LoadFlags load;
  ScheduleFlags schedule;
  std::string trace, steps, requests;
  std::vector<std::string> then; // flags of further runs
};

/// Lines of comma-separated values, for those who want to know where the time goes; of no path nothing.
class Log {
public:
  Log(const std::string &path, const char *columns) {
    if (path.empty())
      return;
    file_.reset(std::fopen(path.c_str(), "w"));
    if (!file_)
      throw Error(path + ": expected a file that can be written");
    std::fprintf(file_.get(), "%s\n", columns);
  }
  explicit operator bool() const { return bool(file_); }
  template <typename... Values> void add(Values... values) {
    const char *separator = "";
    ((std::fprintf(file_.get(), "%s%.9g", separator, double(values)), separator = ","), ...);
    std::fputc('\n', file_.get());
  }

private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

struct Logs {
  Log steps, requests;
};

/// One run: requests enter when their time has come, and generate as many tokens as the trace says.
class Replay {
public:
  Replay(Device &device, const EngineOptions &options, std::span<const SimulatedRequest> trace, Logs &logs)
      : device_(device), engine_(device, options), trace_(trace), makeIds_(device.module().vocab), logs_(logs) {}

  void run() {
    start_ = Clock::now();
    for (size_t next = 0; next < trace_.size() || !engine_.scheduler().empty();) {
      for (; next < trace_.size() && trace_[next].arrival <= seconds(); ++next)
        submit(trace_[next]);
      if (engine_.scheduler().empty())
        std::this_thread::sleep_for(std::chrono::duration<double>(next < trace_.size() ? trace_[next].arrival - seconds() : 0));
      else
        step();
    }
    result_.seconds = seconds();
    result_.preemptions = engine_.scheduler().preemptions();
    result_.finish();
  }

  Json figures() const {
    Json json = toJson(result_);
    json.erase("computed_tokens"), json.erase("queue"); // the engine does not tell
    json["pool_tokens"] = uint64_t(engine_.blocks().total()) * LLMC_KV_BLOCK;
    json["most_running"] = mostRunning_;
    json["swaps"] = engine_.scheduler().swaps();
    const double us = 1e6 / double(std::max<uint64_t>(result_.steps, 1));
    json["engine_us_per_step"] = us * (result_.busy - engine_.startSeconds() - engine_.waitSeconds());
    json["start_us_per_step"] = us * engine_.startSeconds(); // on a CPU with the step itself
    return json;
  }

private:
  double seconds() const { return secondsSince(start_); }

  void submit(const SimulatedRequest &r) {
    Request request;
    request.prompt = makeIds_(r);
    request.sampling.maxTokens = r.output;
    request.sampling.ignoreEos = true;
    request.cacheSalt = r.salt;
    request.priority = r.priority;
    request.onToken = [this, &r, last = r.arrival, first = true](const SampledToken &) mutable {
      const double now = seconds();
      ++generated_;
      if (first)
        firstToken_[&r] = now;
      (std::exchange(first, false) ? result_.firstToken : result_.interToken).add(now - last);
      last = now;
      return true;
    };
    request.onEnd = [this, &r](const Sequence &s) { end(r, s); };
    try {
      sequences_.push_back(engine_.submit(std::move(request)));
    } catch (const Error &error) {
      ++result_.refused;
      std::fprintf(stderr, "refused: %s\n", error.what());
    }
  }

  void end(const SimulatedRequest &r, const Sequence &s) {
    if (s.finish == Finish::Error)
      throw Error(s.error);
    ++(s.finish == Finish::CacheFull ? result_.cut : result_.finished);
    result_.promptTokens += s.promptLength;
    result_.cachedTokens += s.cached;
    result_.outputTokens += s.generated();
    if (logs_.requests)
      logs_.requests.add(r.arrival, s.promptLength, s.cached, s.generated(), firstToken_[&r] - r.arrival, seconds() - r.arrival, s.preemptions);
  }

  void step() {
    const double start = seconds(), waited = engine_.waitSeconds();
    if (engine_.step())
      device_.startBackground();
    const Scheduler &scheduler = engine_.scheduler();
    const double taken = seconds() - start;
    result_.count(taken, engine_.blocks(), poolIsFull());
    if (logs_.steps) {
      const uint64_t prompts = promptTokens();
      logs_.steps.add(start, taken, engine_.waitSeconds() - waited, int64_t(prompts - promptsRead_), std::exchange(generated_, 0),
                      scheduler.running(), scheduler.waiting(), engine_.blocks().total() - engine_.blocks().available());
      promptsRead_ = prompts;
    }
    mostRunning_ = std::max(mostRunning_, scheduler.running());
  }

  // Requests wait, and none of them finds room beside a block for each running one.
  bool poolIsFull() const {
    const uint64_t free = engine_.blocks().available(), running = engine_.scheduler().running();
    bool waiting = false;
    for (const std::shared_ptr<Sequence> &s : sequences_) {
      if (s->finish != Finish::None || !s->blocks.empty())
        continue;
      waiting = true;
      if (blocksOf(s->length()) + running <= free)
        return false;
    }
    return waiting;
  }

  // Of all prompts, what is computed now.
  uint64_t promptTokens() const {
    uint64_t sum = 0;
    for (const std::shared_ptr<Sequence> &s : sequences_)
      sum += s->finish == Finish::None ? std::min(s->computed, s->promptLength) : s->promptLength;
    return sum;
  }

  Device &device_;
  Engine engine_;
  std::span<const SimulatedRequest> trace_;
  PromptIds makeIds_;
  Clock::time_point start_;
  SimulationResult result_;
  size_t mostRunning_ = 0;
  Logs &logs_;
  std::map<const SimulatedRequest *, double> firstToken_; // when each had it
  std::vector<std::shared_ptr<Sequence>> sequences_;
  uint64_t generated_ = 0, promptsRead_ = 0; // of this step; of the steps before
};

EngineOptions optionsOf(const ReplayFlags &flags, const ScheduleFlags &schedule) {
  EngineOptions options = schedule.engineOptions();
  options.context = flags.load.context;
  return options;
}

/// Flags of scheduling out of a text, what it does not name as in `base`.
ScheduleFlags changed(const ScheduleFlags &base, const std::string &text) {
  ScheduleFlags flags = base;
  CLI::App app("--then");
  app.set_help_flag();
  addScheduleFlags(app, flags);
  try {
    app.parse(text);
  } catch (const CLI::ParseError &error) {
    throw Error("--then '" + text + "': " + error.what());
  }
  return flags;
}

// Tokens of KV cache that all requests find room in.
uint64_t cacheTokens(std::span<const SimulatedRequest> trace) {
  uint64_t blocks = 0;
  for (const SimulatedRequest &r : trace)
    blocks += blocksOf(r.prompt + r.output);
  return blocks * LLMC_KV_BLOCK;
}

int replay(const ReplayFlags &flags, const std::string &name) {
  std::vector<std::pair<std::string, ScheduleFlags>> runs{{"", flags.schedule}};
  for (const std::string &text : flags.then)
    runs.emplace_back(text, changed(flags.schedule, text));
  const std::vector<SimulatedRequest> trace = readTrace(flags.trace);
  LoadFlags load = flags.load;
  load.context = 0; // of a request, not of the pool
  Model model(load, name);
  std::unique_ptr<Device> device = model.makeDevice(cacheTokens(trace));
  Logs logs{{flags.steps, "start_s,step_s,wait_s,prompt_tokens,generated,running,waiting,blocks"},
            {flags.requests, "arrival_s,prompt_tokens,cached_tokens,output_tokens,first_token_s,seconds,preemptions"}};
  for (const auto &[text, schedule] : runs) {
    Replay run(*device, optionsOf(flags, schedule), trace, logs);
    run.run();
    Json json{{"model", model.manifest().model.name}, {"flags", text}};
    json.update(run.figures());
    std::printf("%s\n", json.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

} // namespace

Command addReplay(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App *sub = app.add_subcommand("replay", "run a trace of requests in real time and measure; a line of JSON");
  sub->add_option("--trace", flags->trace, "a line of JSON for each request, as for simulate; \"prompt\": a list of token ids, or how many")
      ->type_name("FILE")
      ->required();
  sub->add_option("--then", flags->then, "run it again with these flags of scheduling (may be given many times)")->type_name("'FLAGS'")->allow_extra_args(false);
  sub->add_option("--steps", flags->steps, "write a line of comma-separated values for each step")->type_name("FILE");
  sub->add_option("--requests", flags->requests, "the same for each request, in the order of their ends")->type_name("FILE");
  addScheduleFlags(*sub, flags->schedule);
  addLoadFlags(*sub, flags->load);
  sub->get_option("--context")->description("longest prompt and answer of a request in tokens (default: the model's)");
  sub->get_option("--kv-memory")->description("memory of the KV cache, for all requests (default: all of the trace at a time)");
  sub->footer("Every request generates as many tokens as its line says, greedily. docs/scheduling.md in llmc's sources tells how requests are\n"
              "scheduled.\n"
              "Example:\n  " + name + " replay --trace day.jsonl --then '--batching=static' --then '--kv-tokens=100000'");
  return {sub, [flags, name] { return replay(*flags, name); }};
}

} // namespace llmc
