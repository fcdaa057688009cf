//===- Service.cpp --------------------------------------------------------===//
#include "runtime/server/Service.h"
#include "runtime/server/Batches.h"
#include "runtime/server/OpenApi.h"
#include "runtime/server/Page.h"
#include "runtime/server/PrometheusText.h"
#include "runtime/tool/ResponsesRequest.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace llmc {

using Json = nlohmann::ordered_json;

static LoadFlags loadFlags(const ServiceOptions &options) {
  LoadFlags flags = options.load;
  flags.context = 0; // of a request, not of the pool
  flags.threads = Replicas::threadsOfEach(options.replicas, flags.threads);
  return flags;
}

Service::Service(const ServiceOptions &options, Completion::Notify notify)
    : model_(loadFlags(options), options.exe), maxQueue_(options.maxQueue), names_(options.names), started_(std::time(nullptr)),
      notify_(std::move(notify)) {
  const Manifest &m = model_.manifest();
  model_.requireTokenizer();
  if (names_.empty())
    names_ = {m.model.name.empty() ? m.model.architecture : m.model.name};
  EngineOptions engine = options.engine;
  engine.context = context_ = std::min<uint64_t>(m.model.maxContext, options.load.context ? options.load.context : kDefaultContext);
  if (options.replicas > 1 && model_.gpu())
    throw Error("--replicas: expected 1 for a package that is for a GPU, got " + std::to_string(options.replicas));
  replicas_.emplace(options.replicas, [this] { return model_.makeDevice(2 * context_); }, engine);
  Json openApi = Json::parse(openApiText());
  Json &schemas = openApi["components"]["schemas"];
  schemas["TokenId"]["maximum"] = m.model.vocab - 1;
  if (!model_.tokenizer().addsBos())
    schemas["PromptText"]["minLength"] = 1;
  openApi_ = jsonText(openApi);
  if (!options.batchFolder.empty()) {
    const uint64_t most = options.engine.maxRunning ? options.engine.maxRunning : m.limits.maxSeqs;
    batches_ = std::make_unique<Batches>(options.batchFolder, options.batchSpace,
                                         BatchHost{model_, turn_, names_.front(), std::max<uint64_t>(1, most / 2),
                                                   [this](const Request &request) { replicas_->common().check(request); },
                                                   [this](Completion &completion) { completion.submit(replicas_->choose(completion.request().request)); },
                                                   [this] { return replicas_->metrics().waiting > 0; }, [this] { return replicas_->failure(); }});
  }
}

Service::~Service() = default;

void Service::refuseIfFull() const {
  if (draining_)
    throw HttpError(503, "the server is shutting down");
  if (const std::string failure = replicas_->failure(); !failure.empty())
    throw HttpError(503, failure);
  const uint64_t waiting = replicas_->metrics().waiting;
  if (waiting >= maxQueue_)
    throw HttpError(503, "expected fewer than " + std::to_string(maxQueue_) + " waiting requests (--max-queue), got " + std::to_string(waiting), "",
                    "overloaded", {{"Retry-After", "1"}});
}

void Service::checkModel(const std::string &name) const {
  if (!name.empty() && std::find(names_.begin(), names_.end(), name) == names_.end())
    throw HttpError(404, "model: expected " + names_.front() + ", got " + name, "model", "model_not_found");
}

HttpResponse Service::chatCompletions(const HttpRequest &request) {
  refuseIfFull();
  return complete(request, readCompletion(parseJson(request.body), true, model_, true), "messages");
}

HttpResponse Service::completions(const HttpRequest &request) {
  refuseIfFull();
  return complete(request, readCompletion(parseJson(request.body), false, model_, true), "prompt");
}

HttpResponse Service::responses(const HttpRequest &request) {
  refuseIfFull();
  return complete(request, readResponses(parseJson(request.body), model_, true), "input");
}

HttpResponse Service::complete(const HttpRequest &request, CompletionRequest completion, const char *promptField) {
  checkModel(completion.model);
  try {
    replicas_->common().check(completion.request);
  } catch (const Error &error) { // the parameters are good: it is the prompt
    const std::string message = error.what();
    throw HttpError(400, message, message.starts_with("prompt: ") ? promptField : "");
  }
  HttpResponse response;
  response.completion =
      std::make_shared<Completion>(std::move(completion), newId(), model_.tokenizer(), latencies_, request.arrival, notify_);
  try {
    response.completion->submit(replicas_->choose(response.completion->request().request));
  } catch (const Error &error) { // what is left: the device has failed
    throw HttpError(503, error.what());
  }
  return response;
}

// Of a JSON body: an object without other keys than these.
static Json bodyOf(const HttpRequest &request, std::initializer_list<const char *> keys) {
  Json body = parseJson(request.body);
  if (!body.is_object())
    throw BadRequest("body", "expected an object, got " + std::string(body.type_name()));
  for (const auto &[key, value] : body.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw BadRequest(key, "unknown or not supported");
  return body;
}

static bool flag(const Json &body, const char *key, bool otherwise) {
  if (!body.contains(key) || body[key].is_null())
    return otherwise;
  if (!body[key].is_boolean())
    throw BadRequest(key, "expected true or false, got " + std::string(body[key].type_name()));
  return body[key];
}

HttpResponse Service::tokenize(const HttpRequest &request) {
  const Json body = bodyOf(request, {"model", "prompt", "messages", "add_special_tokens", "add_generation_prompt"});
  if (body.contains("model"))
    checkModel(body["model"].is_string() ? body["model"].get<std::string>() : body["model"].dump());
  if (body.contains("prompt") == body.contains("messages"))
    throw BadRequest("prompt", "expected either prompt or messages");
  std::vector<int32_t> ids;
  if (body.contains("prompt")) {
    if (!body["prompt"].is_string())
      throw BadRequest("prompt", "expected a string, got " + std::string(body["prompt"].type_name()));
    if (body.contains("add_generation_prompt"))
      throw BadRequest("add_generation_prompt", "expected messages with it");
    const Tokenizer &t = model_.tokenizer();
    const bool special = flag(body, "add_special_tokens", true);
    ids = t.encode(body["prompt"].get<std::string>(), false, special && t.addsBos());
  } else {
    if (body.contains("add_special_tokens"))
      throw BadRequest("add_special_tokens", "expected prompt with it: the model's template says what a conversation begins with");
    ChatPrompt::Options options;
    options.addGenerationPrompt = flag(body, "add_generation_prompt", true);
    try {
      ids = model_.encodeChat(body["messages"].dump(), options);
    } catch (const Error &error) {
      throw BadRequest("messages", error.what());
    }
  }
  return jsonResponse({{"count", ids.size()}, {"max_model_len", replicas_->common().room()}, {"tokens", ids}});
}

HttpResponse Service::detokenize(const HttpRequest &request) {
  const Json body = bodyOf(request, {"model", "tokens"});
  if (body.contains("model"))
    checkModel(body["model"].is_string() ? body["model"].get<std::string>() : body["model"].dump());
  const Json tokens = body.contains("tokens") ? body["tokens"] : Json();
  if (!tokens.is_array())
    throw BadRequest("tokens", "expected a list of token ids, got " + std::string(tokens.type_name()));
  const uint64_t vocab = model_.manifest().model.vocab;
  std::vector<int32_t> ids;
  for (const Json &id : tokens)
    if (const double number = id.is_number() ? id.get<double>() : -1; number >= 0 && number < double(vocab) && std::trunc(number) == number)
      ids.push_back(int32_t(number));
    else
      throw BadRequest("tokens", "expected token ids below " + std::to_string(vocab) + ", got " + id.dump().substr(0, 60));
  return jsonResponse({{"prompt", model_.tokenizer().decode(ids, false)}});
}

Json Service::describe(const std::string &name) const {
  return {{"id", name}, {"object", "model"}, {"created", started_}, {"owned_by", "llmc"}, {"max_model_len", replicas_->common().room()}};
}

HttpResponse Service::models(const HttpRequest &) {
  Json data = Json::array();
  for (const std::string &name : names_)
    data.push_back(describe(name));
  return jsonResponse({{"object", "list"}, {"data", data}});
}

HttpResponse Service::model(const HttpRequest &request) {
  const std::string &name = request.param;
  if (name.empty())
    throw HttpError(404, "model: expected " + names_.front() + ", got none", "model", "model_not_found");
  checkModel(name);
  return jsonResponse(describe(name));
}

HttpResponse Service::health(const HttpRequest &) {
  if (const std::string failure = replicas_->failure(); !failure.empty())
    throw HttpError(503, failure);
  return jsonResponse({{"status", "ok"}});
}

HttpResponse Service::ready(const HttpRequest &) {
  refuseIfFull();
  return jsonResponse({{"status", "ready"}});
}

HttpResponse Service::openApi(const HttpRequest &) {
  HttpResponse response;
  response.body = openApi_;
  return response;
}

HttpResponse Service::page(const HttpRequest &request) {
  for (const PageFile &file : pageFiles())
    if (file.path == request.path)
      return {.type = std::string(file.type),
              .body = std::string(file.text),
              .headers = {{"Content-Security-Policy", kPagePolicy}, {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"}, {"Cache-Control", "no-cache"}}};
  throw HttpError(404, "path: expected a file of the page, got " + request.path);
}

HttpResponse Service::metrics(const HttpRequest &) {
  HttpResponse response;
  response.type = "text/plain; version=0.0.4; charset=utf-8";
  Latencies::Values latencies = latencies_.values();
  latencies.tokens += batches_ ? batches_->tokens() : 0;
  response.body = prometheusText(replicas_->metrics(), latencies, counters_);
  return response;
}

} // namespace llmc
