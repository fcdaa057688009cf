//===- BatchRun.cpp - answers one batch -----------------------------------===//
//
// All on the batches' own thread, but for the news that an answer is complete.
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/server/Batches.h"
#include "runtime/server/Http.h"
#include "runtime/tool/Model.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace llmc {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static constexpr auto kPause = std::chrono::milliseconds(20); // between looks at whether others wait, and at what was told just before

struct Batches::Run {
  std::string id, endpoint, results; // results: a line each, in the order in which they are done
  std::vector<BatchLine> lines;
  std::optional<BatchOutput> output;
  size_t next = 0;
  std::map<Completion *, Flying> flying;
  uint64_t completed = 0, failed = 0;
  bool givenUp = false;

  void write(const std::string &result, bool good) {
    output->append(result);
    ++(good ? completed : failed);
  }
};

static bool isSuccess(const std::string &result) {
  const Json json = Json::parse(result);
  return json.at("response").at("status_code") == 200;
}

void Batches::process(const std::string &id) {
  Run run;
  run.id = id;
  run.results = folder_ + "/batches/" + id + ".results";
  const Json batch = *find(id);
  run.endpoint = batch["endpoint"];
  if (!fs::exists(run.results)) {
    const std::string input = batch["input_file_id"];
    if (!files_.find(input))
      throw Error("input_file_id: expected a file, got " + input + ", which was deleted");
    run.lines = readBatch(files_.pathOf(input), host_.model.manifest().weightsId());
    if (run.lines.empty() || run.lines.size() > kMostLines)
      throw Error("expected 1 to " + std::to_string(kMostLines) + " requests in the file, got " + std::to_string(run.lines.size()));
    run.output.emplace(run.results, run.lines);
    set(id, {{"status", "in_progress"},
             {"in_progress_at", int64_t(std::time(nullptr))},
             {"request_counts", {{"total", run.lines.size()}, {"completed", 0}, {"failed", 0}}}});
    gather(run);
    if (run.givenUp && !cancelled(id))
      return; // the server ends: to be gone on with
    run.output->finish();
    run.output.reset();
  }
  finish(run, cancelled(id));
}

// Until all lines have their results, or there is no use in going on.
void Batches::gather(Run &run) {
  if (run.output->doneBefore() > 0) {
    std::ifstream before(run.results + ".partial");
    for (std::string line; std::getline(before, line);)
      ++(isSuccess(line) ? run.completed : run.failed);
  }
  for (;;) {
    launch(run);
    set(run.id, {{"request_counts", {{"total", run.lines.size()}, {"completed", run.completed}, {"failed", run.failed}}}});
    if (run.next == run.lines.size() && run.flying.empty())
      return;
    bool on = true;
    {
      std::unique_lock lock(mutex_);
      auto isOver = [&] { return stop_ || batches_.at(run.id)["status"] == "cancelling"; };
      work_.wait_for(lock, kPause, [&] { return hasLanded() || isOver(); });
      stop_ |= !host_.failure().empty(); // nothing can go on in this process
      on = !isOver();
    }
    if (!on)
      return giveUp(run);
    land(run);
  }
}

// Others go first: the batch has lines under way only where nobody waits.
void Batches::launch(Run &run) {
  while (run.next < run.lines.size() && run.flying.size() < host_.atATime && !host_.busy()) {
    const BatchLine &line = run.lines[run.next++];
    if (run.output->done(line))
      continue;
    BatchItem item;
    {
      std::lock_guard turn(host_.turn);
      item = readBatchItem(line, host_.model, run.endpoint);
    }
    try {
      if (!item.bad)
        host_.check(item.request.request);
    } catch (const Error &error) {
      item.bad.emplace("", error.what());
    }
    if (item.bad) {
      run.write(batchRefusal(line, item.customId, *item.bad), false);
      continue;
    }
    auto landed = [this](std::shared_ptr<Completion> completion) {
      std::lock_guard lock(landing_);
      landed_.push_back(completion.get());
      work_.notify_all();
    };
    auto completion =
        std::make_shared<Completion>(std::move(item.request), line.id, host_.model.tokenizer(), latencies_, Completion::Clock::now(), landed);
    try {
      host_.submit(*completion);
      run.flying[completion.get()] = {&line, std::move(item.customId), completion};
    } catch (const Error &) { // the device has failed: gather() sees it
      return;
    }
  }
}

bool Batches::hasLanded() const {
  std::lock_guard lock(landing_);
  return !landed_.empty();
}

std::vector<Completion *> Batches::takeLanded() {
  std::lock_guard lock(landing_);
  return std::exchange(landed_, {});
}

void Batches::land(Run &run) {
  for (Completion *completion : takeLanded()) {
    const Flying flown = std::move(run.flying.extract(completion).mapped());
    const Completion::State state = completion->take();
    if (!state.error.empty() && !host_.failure().empty())
      continue; // not the line's fault: it has no result yet
    if (state.error.empty())
      run.write(batchResult(*flown.line, flown.customId, 200,
                            completion->body(host_.name)),
                true);
    else
      run.write(batchResult(*flown.line, flown.customId, int(state.status), errorBody(state.error, "server_error", "")), false);
  }
}

// Ends what is under way without its results.
void Batches::giveUp(Run &run) {
  run.givenUp = true;
  for (const auto &[completion, flying] : run.flying)
    completion->cancel("the batch does not go on");
  while (!run.flying.empty()) {
    std::unique_lock lock(mutex_);
    work_.wait_for(lock, kPause, [&] { return hasLanded(); });
    for (Completion *completion : takeLanded())
      run.flying.erase(completion);
  }
}

// Successes and errors become two files, as in OpenAI's interface; one without a line does not come to be.
void Batches::finish(Run &run, bool cancelled) {
  set(run.id, {{"status", "finalizing"}, {"finalizing_at", int64_t(std::time(nullptr))}});
  const std::string good = run.results + ".output", bad = run.results + ".error";
  run.completed = run.failed = 0;
  {
    std::ifstream in(run.results);
    std::ofstream output(good), error(bad);
    for (std::string line; std::getline(in, line);) {
      const bool success = isSuccess(line);
      (success ? output : error) << line << '\n';
      ++(success ? run.completed : run.failed);
    }
    output.close();
    error.close();
    if (!output || !error)
      throw Error(run.results + ": cannot write its parts");
  }
  auto publish = [&](const std::string &path, const char *kind, uint64_t lines) -> Json {
    if (lines == 0) {
      fs::remove(path);
      return nullptr;
    }
    const std::string id = "file-" + run.id.substr(6) + "-" + kind; // the same again after a crash
    return files_.adopt(path, id, run.id + "_" + kind + ".jsonl", "batch_output").id;
  };
  const Json outputId = publish(good, "output", run.completed), errorId = publish(bad, "error", run.failed);
  const uint64_t total = (*find(run.id))["request_counts"]["total"];
  set(run.id, {{"status", cancelled ? "cancelled" : "completed"},
               {cancelled ? "cancelled_at" : "completed_at", int64_t(std::time(nullptr))},
               {"output_file_id", outputId},
               {"error_file_id", errorId},
               {"request_counts", {{"total", total}, {"completed", run.completed}, {"failed", run.failed}}}});
  fs::remove(run.results);
}

} // namespace llmc
