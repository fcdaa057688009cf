//===- Service.h - a model that answers HTTP requests -----------*- C++ -*-===//
//
// What every route does, without sockets: a request in, a response or an answer that
// is being generated out.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_SERVICE_H
#define LLMC_RUNTIME_SERVER_SERVICE_H

#include "runtime/server/Completion.h"
#include "runtime/server/Http.h"
#include "runtime/server/Replicas.h"
#include "runtime/tool/Model.h"

#include <atomic>
#include <map>

namespace llmc {

class Batches;

struct ServiceOptions {
  LoadFlags load; // its context is that of a request
  std::string exe;                // how messages call the executable
  EngineOptions engine;           // of each replica
  uint64_t replicas = 1;          // engines, each on its share of the CPUs
  std::vector<std::string> names; // of the model; the first is what it is called in answers; none: as in the package
  uint64_t maxQueue = 1024;       // requests that wait for their first step, at most
  std::string batchFolder;        // of files and batches; none: there are none
  uint64_t batchSpace = uint64_t(10) << 30; // bytes of all files
};

/// Counted by whoever speaks HTTP.
struct HttpCounters {
  void answered(const std::string &path, unsigned status) {
    std::lock_guard lock(mutex);
    ++responses[{path, status}];
  }
  std::mutex mutex;                                               // of responses
  std::map<std::pair<std::string, unsigned>, uint64_t> responses; // by route and status
  std::atomic<uint64_t> connections{0}, streams{0};               // now
};

class Service {
public:
  static constexpr uint64_t kDefaultContext = 8192;

  /// Loads the model. Throws Error.
  Service(const ServiceOptions &options, Completion::Notify notify);
  ~Service();

  // The routes (Routes.cpp has their table). They throw HttpError, and BadRequest for what a request says wrong. Those that
  // make tokens of text take turns: whoever calls them holds turn().
  HttpResponse chatCompletions(const HttpRequest &request);
  HttpResponse completions(const HttpRequest &request);
  HttpResponse responses(const HttpRequest &request);
  HttpResponse tokenize(const HttpRequest &request);
  HttpResponse detokenize(const HttpRequest &request);
  HttpResponse models(const HttpRequest &request);
  HttpResponse model(const HttpRequest &request);
  HttpResponse health(const HttpRequest &request);
  HttpResponse ready(const HttpRequest &request);
  HttpResponse metrics(const HttpRequest &request);
  HttpResponse openApi(const HttpRequest &request);
  HttpResponse page(const HttpRequest &request);

  // Of files and batches (ServiceBatches.cpp); they read and write files.
  HttpResponse createFile(const HttpRequest &request);
  HttpResponse files(const HttpRequest &request);
  HttpResponse file(const HttpRequest &request);
  HttpResponse fileContent(const HttpRequest &request);
  HttpResponse deleteFile(const HttpRequest &request);
  HttpResponse createBatch(const HttpRequest &request);
  HttpResponse listBatches(const HttpRequest &request);
  HttpResponse batch(const HttpRequest &request);
  HttpResponse cancelBatch(const HttpRequest &request);

  /// From now on new answers are refused.
  void drain() { draining_ = true; }
  const std::string &name() const { return names_.front(); }
  EngineMetrics engineMetrics() const { return replicas_->metrics(); }
  HttpCounters &counters() { return counters_; }
  std::mutex &turn() { return turn_; }
  bool hasBatches() const { return batches_ != nullptr; }

private:
  HttpResponse complete(const HttpRequest &request, CompletionRequest completion, const char *promptField);
  void refuseIfFull() const;
  Batches &batches() const;
  void checkModel(const std::string &name) const;
  nlohmann::ordered_json describe(const std::string &name) const;

  Model model_;
  uint64_t context_ = 0, maxQueue_;
  std::vector<std::string> names_;
  std::string openApi_;
  int64_t started_;
  Completion::Notify notify_;
  Latencies latencies_;
  HttpCounters counters_;
  std::atomic<bool> draining_{false};
  std::mutex turn_; // of whoever makes text tokens
  std::optional<Replicas> replicas_;
  std::unique_ptr<Batches> batches_; // goes first
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_SERVICE_H
