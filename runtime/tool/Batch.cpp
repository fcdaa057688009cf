//===- Batch.cpp - a file of requests to a file of answers ----------------===//
#include "llmc/Support/Error.h"
#include "runtime/tool/BatchItem.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/ResponseOutput.h"
#include "runtime/tool/ScheduleFlags.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <list>
#include <memory>
#include <unistd.h>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kDefaultContext = 8192;
constexpr size_t kWindow = 1024; // lines that are read ahead, so that policies have something to choose from

struct BatchFlags {
  LoadFlags load;
  ScheduleFlags schedule;
  std::string input, output;
};

/// A line that is being answered. Its choices are referred to by callbacks: it stays where it is.
struct Item {
  const BatchLine *line;
  Json customId;
  CompletionRequest request;
  std::vector<std::unique_ptr<Choice>> choices;
  std::vector<std::shared_ptr<Sequence>> sequences;

  bool finished() const {
    return std::all_of(sequences.begin(), sequences.end(), [](const auto &s) { return s->finish != Finish::None; });
  }
};

/// "120/1000 requests, 3 refused, 950 tokens/s": on terminals renewed in place, elsewhere one line at the end.
class BatchProgress {
public:
  explicit BatchProgress(size_t total) : total_(total) {}
  size_t done = 0, refused = 0;
  uint64_t tokens = 0;

  void show(bool last = false) {
    const double seconds = secondsSince(start_);
    if (!last && (!terminal_ || seconds - shown_ < 0.2))
      return;
    shown_ = seconds;
    std::fprintf(stderr, "%s%zu/%zu requests, %zu refused, %.1f tokens/s%s", terminal_ ? "\r\033[K" : "", done, total_, refused,
                 seconds > 0 ? double(tokens) / seconds : 0, last ? "\n" : "");
    std::fflush(stderr);
  }

private:
  size_t total_;
  bool terminal_ = isatty(STDERR_FILENO);
  double shown_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class BatchRun {
public:
  BatchRun(Model &model, Device &device, Engine &engine, const std::vector<BatchLine> &lines, BatchOutput &output)
      : model_(model), device_(device), engine_(engine), lines_(lines), output_(output), progress_(lines.size()) {}

  void run() {
    progress_.done = output_.doneBefore();
    for (size_t next = 0; next < lines_.size() || !items_.empty();) {
      for (; next < lines_.size() && items_.size() < kWindow; ++next)
        if (!output_.done(lines_[next]))
          submit(lines_[next]);
      if (engine_.step())
        device_.startBackground();
      for (auto item = items_.begin(); item != items_.end();)
        item = item->finished() ? (answer(*item), items_.erase(item)) : std::next(item);
      progress_.show();
    }
    output_.finish();
    progress_.show(true);
  }

private:
  void submit(const BatchLine &line) {
    BatchItem read = readBatchItem(line, model_);
    if (read.bad)
      return refuse(line, read.customId, *read.bad);
    Item &item = items_.emplace_back();
    item.line = &line;
    item.customId = std::move(read.customId);
    item.request = std::move(read.request);
    try {
      for (Request &request : item.request.requests()) {
        Choice &choice = *item.choices.emplace_back(std::make_unique<Choice>(model_.tokenizer(), request.sampling, &item.request.answer));
        request.onToken = [this, &choice](const SampledToken &token) {
          ++progress_.tokens;
          return choice.feed(token);
        };
        item.sequences.push_back(engine_.submit(std::move(request)));
      }
    } catch (const Error &error) { // the first of them: all have one prompt
      const Json customId = std::move(item.customId);
      items_.pop_back();
      refuse(line, customId, BadRequest("", error.what()));
    }
  }

  void refuse(const BatchLine &line, const Json &customId, const BadRequest &bad) {
    ++progress_.refused;
    write(batchRefusal(line, customId, bad));
  }

  void answer(Item &item) {
    std::vector<ChoiceEnd> ends;
    for (size_t i = 0; i < item.choices.size(); ++i) {
      item.choices[i]->finish(*item.sequences[i]);
      if (item.sequences[i]->finish == Finish::Error)
        return write(batchResult(*item.line, item.customId, 500, errorBody(item.sequences[i]->error, "server_error", "")));
      ends.push_back(item.choices[i]->end(*item.sequences[i]));
    }
    write(batchResult(*item.line, item.customId, 200,
                      answerBody(item.request, item.line->id, std::time(nullptr), model_.manifest().model.name, model_.tokenizer(), item.choices, ends)));
  }

  void write(const std::string &result) {
    output_.append(result);
    ++progress_.done;
  }

  Model &model_;
  Device &device_;
  Engine &engine_;
  const std::vector<BatchLine> &lines_;
  BatchOutput &output_;
  BatchProgress progress_;
  std::list<Item> items_;
};

int batch(const BatchFlags &flags, const std::string &name) {
  LoadFlags load = flags.load;
  load.context = 0; // of a request, not of the pool
  Model model(load, name);
  const Manifest &m = model.manifest();
  const std::vector<BatchLine> lines = readBatch(flags.input, m.weightsId());
  model.requireTokenizer();
  BatchOutput output(flags.output, lines);
  const uint64_t context = std::min<uint64_t>(m.model.maxContext, flags.load.context ? flags.load.context : kDefaultContext);
  EngineOptions options = flags.schedule.engineOptions();
  options.context = context;
  std::unique_ptr<Device> device = model.makeDevice(2 * context);
  Engine engine(*device, options);
  BatchRun(model, *device, engine, lines, output).run();
  return 0;
}

} // namespace

Command addBatch(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<BatchFlags>();
  CLI::App *sub = app.add_subcommand("batch", "answer a file of requests, many at a time");
  sub->add_option("INPUT", flags->input, "a line of JSON for each request: {\"custom_id\", \"method\", \"url\", \"body\"}")->required();
  sub->add_option("-o,--output", flags->output, "file for the results, in the order in which they are done")->type_name("FILE")->required();
  addScheduleFlags(*sub, flags->schedule);
  addLoadFlags(*sub, flags->load);
  addFormatFlags(*sub, flags->load);
  sub->get_option("--context")->description("longest prompt and answer of a request in tokens (default: 8192, at most the model's)");
  sub->get_option("--kv-memory")->description("memory of the KV cache, for all requests (default: two of the longest)");
  sub->footer("Input and output are those of OpenAI's batch interface, for /v1/chat/completions, /v1/completions and /v1/responses; docs/batch.md in llmc's\n"
              "sources lists the fields. A request that cannot be answered has its error in its line of the output.\n"
              "Results are gathered in FILE.partial, which becomes FILE when all are there: the same command goes on where a killed one\n"
              "has stopped.\n"
              "Example:\n  " + name + " batch requests.jsonl -o answers.jsonl --kv-memory=4GiB");
  return {sub, [flags, name] { return batch(*flags, name); }};
}

} // namespace llmc
