//===- llmc.cpp - llmc.h over the engine ----------------------------------===//
//
// No exception leaves a function. A request's channel belongs to its reader and to
// the engine's callbacks; whoever of the two goes last takes it along.
//
//===----------------------------------------------------------------------===//
#include "llmc/llmc.h"
#include "llmc/Support/Error.h"
#include "runtime/engine/EngineThread.h"
#include "runtime/tool/CompletionResponse.h"
#include "runtime/tool/Model.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

namespace {

using namespace llmc;

constexpr uint64_t kDefaultContext = 8192;

LoadFlags flagsFor(const char *path) {
  LoadFlags flags;
  flags.package = path;
  return flags;
}

struct State {
  State(const char *path, const llmc_options &options) : model(flagsFor(path), path) {
    const Manifest &manifest = model.manifest();
    model.requireTokenizer();
    const uint64_t context = std::min<uint64_t>(manifest.model.maxContext, options.context ? options.context : kDefaultContext);
    DeviceOptions device;
    device.threads = options.threads;
    device.device = options.device;
    device.kvBytes = options.kv_bytes;
    device.kvTokens = 2 * context;
    device.mapWeights = options.map_weights;
    this->device = makeDevice(model.package(), manifest, model.weights(), device);
    EngineOptions engine;
    engine.context = context;
    engine.policy = policyNamed(options.policy ? options.policy : "fcfs");
    engine.maxRunning = options.max_running;
    engine.tokenBudget = options.token_budget;
    engine.prefixCache = !options.no_prefix_cache;
    ledger = this->device->ledger();
    model.addTo(ledger);
    this->engine.emplace(*this->device, engine);
  }

  Model model;
  std::mutex text; // of model's tokenizer and template
  std::unique_ptr<Device> device;
  Ledger ledger;
  std::optional<EngineThread> engine; // goes first
};

/// From the engine's thread to the reader.
struct Channel {
  Channel(const Tokenizer &tokenizer, const SamplingParams &params) : choice(tokenizer, params) {}

  Choice choice; // the engine's thread's

  std::mutex mutex; // of all below
  std::condition_variable changed;
  std::string text; // not read yet
  bool ended = false;
  std::string finish, error;
  uint64_t promptTokens = 0, cachedTokens = 0, completionTokens = 0;

  bool token(const SampledToken &token) {
    const bool more = choice.feed(token);
    hand();
    return more;
  }
  void end(const Sequence &s) {
    choice.finish(s);
    const bool clean = s.finish != Finish::Cancelled && s.finish != Finish::Error;
    std::lock_guard lock(mutex);
    take();
    ended = true;
    finish = clean ? choice.end(s).finish : toString(s.finish);
    error = s.error;
    promptTokens = s.promptLength;
    cachedTokens = s.cached;
    completionTokens = s.generated();
    changed.notify_all();
  }

private:
  void hand() {
    if (choice.pieces.empty())
      return;
    std::lock_guard lock(mutex);
    take();
    changed.notify_all();
  }
  void take() {
    for (const AnswerPiece &piece : std::exchange(choice.pieces, {})) // all of them content
      text += piece.text;
  }
};

void tell(char *error, const char *message) {
  if (error)
    std::snprintf(error, LLMC_ERROR_BYTES, "%s", message);
}

/// body(), or null and the message of what it threw.
template <typename Body> auto guarded(char *error, Body body) -> decltype(body()) {
  tell(error, "");
  try {
    return body();
  } catch (const std::bad_alloc &) {
    tell(error, "out of memory");
  } catch (const std::exception &thrown) {
    tell(error, thrown.what());
  }
  return nullptr;
}

/// The interface calls the host's own memory by its owner.
const char *nameOf(MemoryKind kind) { return kind == MemoryKind::Anonymous ? "process" : toString(kind); }

} // namespace

struct llmc_model {
  std::shared_ptr<State> state;
};

struct llmc_request {
  std::shared_ptr<State> state;
  std::shared_ptr<Channel> channel;
  EngineThread::Ticket ticket = 0;
  std::string shown; // the text of the last event
};

void llmc_options_init(llmc_options *options) {
  *options = llmc_options{};
  options->struct_size = sizeof *options;
}

llmc_model *llmc_load(const char *path, const llmc_options *options, char *error) {
  return guarded(error, [&] {
    llmc_options all;
    llmc_options_init(&all);
    if (options)
      std::memcpy(&all, options, std::min(options->struct_size, sizeof all));
    return new llmc_model{std::make_shared<State>(path, all)};
  });
}

void llmc_model_free(llmc_model *model) { delete model; }

llmc_request *llmc_submit(llmc_model *model, const char *url, const char *body, char *error) {
  return guarded(error, [&] {
    State &state = *model->state;
    const bool chat = std::strcmp(url, "/v1/chat/completions") == 0;
    if (!chat && std::strcmp(url, "/v1/completions") != 0)
      throw BadRequest("url", "expected /v1/chat/completions or /v1/completions, got " + std::string(url));
    CompletionRequest completion;
    {
      std::lock_guard lock(state.text);
      completion = readCompletion(parseJson(body), chat, state.model);
    }
    if (completion.answer.tools)
      throw BadRequest("tools", "expected none (llmc_next gives text alone)");
    if (!completion.answer.showReasoning)
      throw BadRequest("include_reasoning", "expected true (llmc_next gives the text as it is)");
    if (completion.choices != 1)
      throw BadRequest("n", "expected 1, got " + std::to_string(completion.choices));
    Request &request = completion.request;
    auto result = std::make_unique<llmc_request>();
    result->state = model->state;
    result->channel = std::make_shared<Channel>(state.model.tokenizer(), request.sampling);
    request.onToken = [channel = result->channel](const SampledToken &token) { return channel->token(token); };
    request.onEnd = [channel = result->channel](const Sequence &s) { channel->end(s); };
    result->ticket = state.engine->submit(std::move(request));
    return result.release();
  });
}

void llmc_request_free(llmc_request *request) {
  if (request)
    request->state->engine->cancel(request->ticket);
  delete request;
}

void llmc_cancel(llmc_request *request) { request->state->engine->cancel(request->ticket); }

int32_t llmc_next(llmc_request *request, llmc_event *event, int64_t timeout_ms) {
  Channel &channel = *request->channel;
  *event = llmc_event{};
  event->text = event->finish = event->error = "";
  std::unique_lock lock(channel.mutex);
  auto ready = [&] { return !channel.text.empty() || channel.ended; };
  if (timeout_ms < 0)
    channel.changed.wait(lock, ready);
  else if (!channel.changed.wait_for(lock, std::chrono::milliseconds(std::min<int64_t>(timeout_ms, 1ll << 40)), ready))
    return event->kind = LLMC_EVENT_TIMEOUT;
  if (!channel.text.empty()) {
    request->shown = std::exchange(channel.text, {});
    event->text = request->shown.c_str();
    event->text_bytes = request->shown.size();
    return event->kind = LLMC_EVENT_TEXT;
  }
  event->finish = channel.finish.c_str(); // these change no more
  event->error = channel.error.c_str();
  event->prompt_tokens = channel.promptTokens;
  event->cached_tokens = channel.cachedTokens;
  event->completion_tokens = channel.completionTokens;
  return event->kind = LLMC_EVENT_END;
}

void llmc_get_metrics(const llmc_model *model, llmc_metrics *metrics) {
  const EngineMetrics m = model->state->engine->metrics();
  llmc_metrics all{sizeof all,    m.submitted,   m.finished, m.cancelled, m.failed, m.promptTokens, m.cachedTokens, m.generatedTokens,
                   m.steps,       m.preemptions, m.running,  m.waiting,   m.blocks, m.freeBlocks,   m.cached};
  all.struct_size = std::min(metrics->struct_size, sizeof all);
  std::memcpy(metrics, &all, all.struct_size);
}

size_t llmc_get_ledger(const llmc_model *model, llmc_ledger_item *items, size_t capacity) {
  const std::vector<LedgerItem> &all = model->state->ledger.items;
  for (size_t i = 0; i < std::min(capacity, all.size()); ++i)
    items[i] = {all[i].name.c_str(), nameOf(all[i].kind), all[i].bytes};
  return all.size();
}
