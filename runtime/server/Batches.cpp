//===- Batches.cpp - what batches are, and when they are answered ---------===//
//
// How one is answered is BatchRun.cpp's.
//
//===----------------------------------------------------------------------===//
#include "runtime/server/Batches.h"
#include "llmc/Support/File.h"
#include "runtime/server/Http.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace llmc {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static bool isOver(const Json &batch) {
  const std::string status = batch.at("status");
  return status == "completed" || status == "failed" || status == "cancelled";
}

Batches::Batches(const std::string &folder, uint64_t mostBytes, BatchHost host)
    : folder_(folder), files_(folder + "/files", mostBytes), host_(std::move(host)) {
  lock();
  try {
    load();
  } catch (...) {
    close(lock_);
    throw;
  }
  thread_ = std::thread([this] { work(); });
}

Batches::~Batches() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  thread_.join();
  close(lock_);
}

void Batches::lock() {
  const std::string path = folder_ + "/lock";
  lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const bool there = lock_ >= 0;
    if (there)
      close(lock_);
    throw Error("--batch-dir: " + folder_ + ": " + (there ? "another process serves it" : "cannot write in it"));
  }
}

void Batches::load() {
  std::error_code error;
  fs::create_directories(folder_ + "/batches", error);
  std::vector<std::pair<int64_t, std::string>> open;
  for (const auto &entry : fs::directory_iterator(folder_ + "/batches", error)) {
    if (entry.path().extension() != ".json")
      continue;
    try {
      const Json batch = Json::parse(readTextFile(entry.path(), 1 << 20));
      const std::string id = batch.at("id");
      if (entry.path() != fs::path(recordOf(id)))
        throw Error("expected the batch of its name, got " + id);
      if (isOver(batch))
        fs::remove(folder_ + "/batches/" + id + ".results", error);
      else
        open.emplace_back(batch.at("created_at").get<int64_t>(), id);
      batches_.emplace(id, batch);
    } catch (const std::exception &bad) {
      throw Error(entry.path().string() + ": expected a batch (remove it to go on without): " + bad.what());
    }
  }
  if (error)
    throw Error("--batch-dir: " + folder_ + ": " + error.message());
  std::sort(open.begin(), open.end());
  for (auto &[created, id] : open)
    queue_.push_back(std::move(id));
}

static std::string textOf(const Json &body, const char *key) {
  if (!body.contains(key) || !body[key].is_string())
    throw BadRequest(key, "expected a string, got " + (body.contains(key) ? std::string(body[key].type_name()) : "none"));
  return body[key];
}

static Json metadataOf(const Json &body) {
  const Json metadata = body.contains("metadata") ? body["metadata"] : Json();
  if (metadata.is_null())
    return metadata;
  const std::string wanted = "expected at most 16 strings, with keys of at most 64 and values of at most 512 bytes";
  if (!metadata.is_object() || metadata.size() > 16)
    throw BadRequest("metadata", wanted);
  for (const auto &[key, value] : metadata.items())
    if (key.size() > 64 || !value.is_string() || value.get_ref<const std::string &>().size() > 512)
      throw BadRequest("metadata", wanted);
  return metadata;
}

Json Batches::create(const Json &body) {
  if (!body.is_object())
    throw BadRequest("body", "expected an object, got " + std::string(body.type_name()));
  for (const auto &[key, value] : body.items())
    if (key != "input_file_id" && key != "endpoint" && key != "completion_window" && key != "metadata")
      throw BadRequest(key, "unknown or not supported");
  const std::string input = textOf(body, "input_file_id"), endpoint = textOf(body, "endpoint"), window = textOf(body, "completion_window");
  if (!isBatchUrl(endpoint))
    throw BadRequest("endpoint", "expected /v1/chat/completions, /v1/completions or /v1/responses, got " + endpoint.substr(0, 100));
  if (window != "24h")
    throw BadRequest("completion_window", "expected 24h, got " + window.substr(0, 100));
  const auto file = files_.find(input);
  if (!file || file->purpose != "batch")
    throw BadRequest("input_file_id", "expected the id of a file with purpose batch, got " + input.substr(0, 100));
  const Json batch{{"id", "batch_" + newId()}, {"object", "batch"}, {"endpoint", endpoint}, {"errors", nullptr},
                   {"input_file_id", input}, {"completion_window", window}, {"status", "validating"}, {"output_file_id", nullptr},
                   {"error_file_id", nullptr}, {"created_at", int64_t(std::time(nullptr))}, {"in_progress_at", nullptr}, {"expires_at", nullptr},
                   {"finalizing_at", nullptr}, {"completed_at", nullptr}, {"failed_at", nullptr}, {"expired_at", nullptr},
                   {"cancelling_at", nullptr}, {"cancelled_at", nullptr}, {"request_counts", {{"total", 0}, {"completed", 0}, {"failed", 0}}},
                   {"metadata", metadataOf(body)}};
  std::lock_guard lock(mutex_);
  if (batches_.size() >= kMostBatches)
    throw HttpError(400, "expected fewer than " + std::to_string(kMostBatches) + " batches that are kept in --batch-dir");
  const std::string id = batch["id"];
  writeDurably(recordOf(id), jsonText(batch));
  batches_.emplace(id, batch);
  queue_.push_back(id);
  work_.notify_all();
  return batch;
}

std::optional<Json> Batches::find(const std::string &id) const {
  std::lock_guard lock(mutex_);
  const auto at = batches_.find(id);
  return at == batches_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<Json> Batches::list() const {
  std::vector<Json> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto &[id, batch] : batches_)
      all.push_back(batch);
  }
  auto order = [](const Json &batch) { return std::pair(batch["created_at"].get<int64_t>(), batch["id"].get<std::string>()); };
  std::sort(all.begin(), all.end(), [&](const Json &a, const Json &b) { return order(a) > order(b); });
  return all;
}

std::optional<Json> Batches::cancel(const std::string &id) {
  std::lock_guard lock(mutex_);
  const auto at = batches_.find(id);
  if (at == batches_.end())
    return std::nullopt;
  if (!isOver(at->second) && at->second["status"] != "finalizing" && at->second["status"] != "cancelling") {
    at->second["status"] = "cancelling";
    at->second["cancelling_at"] = int64_t(std::time(nullptr));
    writeDurably(recordOf(id), jsonText(at->second));
    work_.notify_all();
  }
  return at->second;
}

void Batches::set(const std::string &id, const Json &changes) {
  std::lock_guard lock(mutex_);
  Json &batch = batches_.at(id);
  const bool cancelling = batch["status"] == "cancelling" && changes.contains("status") && !isOver(changes);
  batch.update(changes);
  if (cancelling) // it was told so meanwhile
    batch["status"] = "cancelling";
  if (changes.contains("status"))
    writeDurably(recordOf(id), jsonText(batch));
}

bool Batches::cancelled(const std::string &id) const {
  std::lock_guard lock(mutex_);
  return batches_.at(id)["status"] == "cancelling";
}

void Batches::fail(const std::string &id, const std::string &message) {
  set(id, {{"status", "failed"},
           {"failed_at", int64_t(std::time(nullptr))},
           {"errors", {{"object", "list"}, {"data", Json::array({{{"code", "invalid_input"}, {"message", message}, {"param", nullptr}, {"line", nullptr}}})}}}});
}

void Batches::work() {
  for (;;) {
    std::string id;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (stop_)
        return;
      id = queue_.front();
      queue_.pop_front();
    }
    try {
      process(id);
    } catch (const std::exception &error) { // a full disk, say, or an input that was deleted
      try {
        fail(id, error.what());
      } catch (const std::exception &worse) {
        std::fprintf(stderr, "batch %s: %s\n", id.c_str(), worse.what());
      }
    }
  }
}

} // namespace llmc
