//===- BatchFile.h - results that outlive the process -----------*- C++ -*-===//
//
// Results of a batch go to OUTPUT.partial, a line each, and only when all are there
// does the file get its name. So a file named OUTPUT is complete. A process that was
// killed leaves whole lines and perhaps the start of one: the next one cuts that off,
// takes the others as done and goes on. One process at a time (flock).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_BATCHFILE_H
#define LLMC_RUNTIME_TOOL_BATCHFILE_H

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace llmc {

struct BatchLine {
  uint64_t number; // in the file, from 1
  std::string text;
  /// "batch_req_NUMBER_HASH": the hash is of the text and `seed`.
  std::string id;
};

/// All lines but blank ones. `seed`: what else an answer depends on (the model's weights).
std::vector<BatchLine> readBatch(const std::string &path, uint64_t seed);

class BatchOutput {
public:
  /// Throws Error if `path` is there, another process writes it, or what its partial file holds does not answer `lines`.
  BatchOutput(const std::string &path, const std::vector<BatchLine> &lines);
  ~BatchOutput();
  BatchOutput(const BatchOutput &) = delete;

  bool done(const BatchLine &line) const { return done_.count(line.id) > 0; }
  size_t doneBefore() const { return done_.size(); }
  /// `json`: one line, without its end. On the disk within a second.
  void append(const std::string &json);
  /// All results are there: gives the file its name.
  void finish();

private:
  void takeUp(const std::vector<BatchLine> &lines);
  [[noreturn]] void fail(const std::string &what) const;

  std::string path_, partial_;
  int fd_ = -1;
  std::unordered_set<std::string> done_;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_BATCHFILE_H
