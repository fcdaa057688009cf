//===- BatchFile.cpp ------------------------------------------------------===//
#include "runtime/tool/BatchFile.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

namespace llmc {

namespace {

constexpr uint64_t kMostBytes = uint64_t(8) << 30;

uint64_t hashOf(const std::string &text, uint64_t seed) { // FNV-1a
  uint64_t hash = 0xcbf29ce484222325ull ^ seed;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}

template <typename Body> void forEachLine(const std::string &text, Body body) {
  uint64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    body(++number, text.substr(at, end - at));
    at = end + 1;
  }
}

} // namespace

std::vector<BatchLine> readBatch(const std::string &path, uint64_t seed) {
  std::vector<BatchLine> lines;
  forEachLine(readTextFile(path, kMostBytes), [&](uint64_t number, std::string text) {
    if (text.find_first_not_of(" \t\r") == std::string::npos)
      return;
    char hash[20];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hashOf(text, seed)));
    lines.push_back({number, std::move(text), "batch_req_" + std::to_string(number) + "_" + hash});
  });
  return lines;
}

void BatchOutput::fail(const std::string &what) const { throw Error(partial_ + ": " + what + ": " + std::strerror(errno)); }

BatchOutput::BatchOutput(const std::string &path, const std::vector<BatchLine> &lines) : path_(path), partial_(path + ".partial") {
  fd_ = open(partial_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0)
    fail("cannot open");
  try {
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0)
      throw Error(partial_ + ": another process is writing it");
    if (access(path.c_str(), F_OK) == 0) {
      unlink(partial_.c_str());
      throw Error(path + ": expected a new file, got one that is there: a complete batch; remove it to run the batch again");
    }
    takeUp(lines);
  } catch (...) {
    close(fd_);
    throw;
  }
}

BatchOutput::~BatchOutput() { close(fd_); }

void BatchOutput::takeUp(const std::vector<BatchLine> &lines) {
  std::string text = readTextFile(partial_, kMostBytes);
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  if (ftruncate(fd_, off_t(text.size())) != 0)
    fail("cannot cut the last line");
  std::unordered_set<std::string> known;
  for (const BatchLine &line : lines)
    known.insert(line.id);
  forEachLine(text, [&](uint64_t number, const std::string &result) {
    const auto json = nlohmann::json::parse(result, nullptr, false);
    const std::string id = json.is_object() && json.contains("id") && json["id"].is_string() ? json["id"].get<std::string>() : "";
    if (!known.count(id))
      throw Error(partial_ + ":" + std::to_string(number) +
                  ": expected the result of a line of the input, got something else (the input or the model has changed?); remove the "
                  "file to start again");
    done_.insert(id);
  });
}

void BatchOutput::append(const std::string &json) {
  const std::string line = json + "\n";
  for (size_t written = 0; written < line.size();) {
    const ssize_t count = write(fd_, line.data() + written, line.size() - written);
    if (count < 0 && errno != EINTR)
      fail("cannot write");
    written += size_t(std::max<ssize_t>(count, 0));
  }
  if (const auto now = std::chrono::steady_clock::now(); now - synced_ > std::chrono::seconds(1)) {
    fdatasync(fd_);
    synced_ = now;
  }
}

void BatchOutput::finish() {
  if (fsync(fd_) != 0)
    fail("cannot write");
  if (std::rename(partial_.c_str(), path_.c_str()) != 0)
    fail("cannot rename to " + path_);
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); directory >= 0) {
    fsync(directory);
    close(directory);
  }
}

} // namespace llmc
