//===- Batches.h - files of requests, answered in the background *- C++ -*-===//
//
// One thread answers them, one batch after the other, some lines at a time, as long as
// no other request waits. Results are gathered as by the command `batch`: a server
// that was killed goes on where it stopped.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_BATCHES_H
#define LLMC_RUNTIME_SERVER_BATCHES_H

#include "runtime/server/Completion.h"
#include "runtime/server/FileStore.h"
#include "runtime/tool/BatchItem.h"

#include <condition_variable>
#include <deque>
#include <thread>

namespace llmc {

/// The model, as a batch needs it. All of it outlives the batches.
struct BatchHost {
  Model &model;
  std::mutex &turn; // held while text is made tokens
  std::string name; // of the model, in answers
  uint64_t atATime; // lines, at most
  std::function<void(const Request &)> check;    // throws Error for a request that can never be answered
  std::function<void(Completion &)> submit;      // throws Error if the device has failed
  std::function<bool()> busy;                    // whether requests of others wait
  std::function<std::string()> failure;          // of the device; empty while it works
};

class Batches {
public:
  static constexpr size_t kMostLines = 50000, kMostBatches = 1000;

  /// Takes up what is in the folder. Throws Error if it cannot, or another process has it.
  Batches(const std::string &folder, uint64_t mostBytes, BatchHost host);
  /// Gives up what is under way; the next process takes it up.
  ~Batches();

  FileStore &files() { return files_; }
  uint64_t tokens() const { return latencies_.values().tokens; }

  // The interface's batch objects. Any thread.
  /// Throws BadRequest, and HttpError if there are too many.
  nlohmann::ordered_json create(const nlohmann::ordered_json &body);
  std::optional<nlohmann::ordered_json> find(const std::string &id) const;
  /// The latest first.
  std::vector<nlohmann::ordered_json> list() const;
  /// Its state then; none: there is no such batch. One that is over stays as it is.
  std::optional<nlohmann::ordered_json> cancel(const std::string &id);

private:
  struct Flying {
    const BatchLine *line;
    nlohmann::ordered_json customId;
    std::shared_ptr<Completion> completion;
  };
  struct Run; // of a batch

  void load();
  void work();
  void process(const std::string &id);
  void gather(Run &run);
  void launch(Run &run);
  void land(Run &run);
  std::vector<Completion *> takeLanded();
  bool hasLanded() const;
  void giveUp(Run &run);
  void finish(Run &run, bool cancelled);
  void fail(const std::string &id, const std::string &message);
  void set(const std::string &id, const nlohmann::ordered_json &changes);
  bool cancelled(const std::string &id) const;
  void lock();
  std::string recordOf(const std::string &id) const { return folder_ + "/batches/" + id + ".json"; }

  const std::string folder_;
  int lock_ = -1;
  FileStore files_;
  const BatchHost host_;
  Latencies latencies_; // of no interest to those who watch the server's

  mutable std::mutex mutex_; // of all below
  std::condition_variable work_;
  std::map<std::string, nlohmann::ordered_json> batches_;
  std::deque<std::string> queue_;
  bool stop_ = false;

  mutable std::mutex landing_; // of landed_: the engine's thread takes it, and may not wait for a disk
  std::vector<Completion *> landed_; // with their answers, not yet taken

  std::thread thread_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_BATCHES_H
