//===- Completion.h - an answer on its way to a connection ------*- C++ -*-===//
//
// The engine's thread makes text of tokens and leaves it here; a connection takes it
// when its client can. The engine never waits: text of a reader that is slow runs
// together into one piece, and one that lets too much pile up is given up.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_COMPLETION_H
#define LLMC_RUNTIME_SERVER_COMPLETION_H

#include "runtime/engine/EngineThread.h"
#include "runtime/tool/CompletionResponse.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

namespace llmc {

/// What requests have waited for; filled by the engine's thread.
class Latencies {
public:
  struct Values {
    Histogram firstToken, interToken, request; // seconds
    uint64_t tokens = 0, slowReaders = 0;
  };
  Values values() const {
    std::lock_guard lock(mutex_);
    return values_;
  }
  template <typename Change> void change(Change change) {
    std::lock_guard lock(mutex_);
    change(values_);
  }

private:
  mutable std::mutex mutex_;
  Values values_;
};

class Completion : public std::enable_shared_from_this<Completion> {
public:
  using Clock = std::chrono::steady_clock;
  /// Called on the engine's thread when there is something to take; hands on and returns.
  using Notify = std::function<void(std::shared_ptr<Completion>)>;
  static constexpr size_t kMostPending = 256 << 10; // bytes that a client has not taken

  Completion(CompletionRequest request, std::string id, const Tokenizer &tokenizer, Latencies &latencies, Clock::time_point arrival, Notify notify);

  /// Throws Error as EngineThread::submit; what was submitted before is cancelled.
  void submit(EngineThread &engine);
  /// Nothing more is wanted; `why`: for a client that is still there. Any thread, any time, after submit().
  void cancel(const std::string &why);

  const CompletionRequest &request() const { return request_; }
  const std::string &id() const { return id_; }
  const Tokenizer &tokenizer() const { return tokenizer_; }
  int64_t created() const { return created_; }

  /// What has come for a choice since the last time.
  struct News {
    size_t choice = 0;
    AnswerPieces pieces;
    std::vector<TokenRow> rows;
    std::optional<ChoiceEnd> end;
  };
  /// Where a stream stands.
  struct State {
    std::vector<News> news; // of streams; in order for each choice
    bool ended = false;     // all choices; after these news nothing comes
    bool tooSlow = false;   // given up: the client has not read
    std::string error;      // the answer is worth nothing
    unsigned status = 500;  // of the error
  };
  State take();
  // Of an answer that has ended well, which nobody changes any more:
  const std::vector<ChoiceEnd> &ends() const { return ends_; } // of the choices
  /// Of one that was not streamed. `model`: what it calls the model where the request does not.
  nlohmann::ordered_json body(const std::string &model) const;

  /// The connection's, on its own thread: what `notify` leads to.
  std::function<void()> onNews;

private:
  bool token(size_t choice, const SampledToken &token);
  void end(size_t choice, const Sequence &sequence);
  void hand(size_t choice);

  const CompletionRequest request_;
  const std::string id_;
  const Tokenizer &tokenizer_;
  const int64_t created_;
  Latencies &latencies_;
  const Clock::time_point arrival_;
  const Notify notify_;
  EngineThread *engine_ = nullptr;
  std::vector<EngineThread::Ticket> tickets_;
  std::atomic<bool> cancelled_{false};

  // The engine's thread's, until all have ended.
  std::vector<std::unique_ptr<Choice>> choices_;
  std::vector<Clock::time_point> last_; // of each choice's tokens
  std::vector<ChoiceEnd> ends_;

  std::mutex mutex_; // of all below
  std::vector<News> pending_; // by choice
  size_t pendingBytes_ = 0, open_;
  bool tooSlow_ = false;
  std::string error_, why_; // of the model; of cancel()
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_COMPLETION_H
