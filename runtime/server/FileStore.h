//===- FileStore.h - files of clients and of batches ------------*- C++ -*-===//
//
// In a folder, each with a description beside it (ID.json): both are whole at any
// moment, so that a process that was killed leaves nothing half done.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_FILESTORE_H
#define LLMC_RUNTIME_SERVER_FILESTORE_H

#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct StoredFile {
  std::string id, name, purpose;
  int64_t created = 0;
  uint64_t bytes = 0;
  nlohmann::ordered_json describe() const; // as the interface of files has it
};

/// Writes `text` to a file that has either all of it or its earlier content, whatever happens. Throws Error.
void writeDurably(const std::string &path, std::string_view text);

/// Any thread.
class FileStore {
public:
  static constexpr size_t kMostFiles = 1000; // uploaded; those that batches make are not counted

  /// Makes the folder if need be. `mostBytes`: of all files together. Throws Error for a folder or a description that cannot be read.
  FileStore(const std::string &folder, uint64_t mostBytes);

  /// Throws HttpError if there is no room for it.
  StoredFile add(const std::string &name, const std::string &purpose, std::string_view content);
  /// Takes a file over (renames it) as `id`, whether or not there is room.
  StoredFile adopt(const std::string &path, const std::string &id, const std::string &name, const std::string &purpose);
  std::optional<StoredFile> find(const std::string &id) const;
  /// The latest first.
  std::vector<StoredFile> list() const;
  /// False: there is none.
  bool remove(const std::string &id);
  std::string pathOf(const std::string &id) const { return folder_ + "/" + id; }

private:
  void load(const std::string &description);
  void publish(const StoredFile &file);

  const std::string folder_;
  const uint64_t mostBytes_;
  mutable std::mutex mutex_; // of all below
  std::map<std::string, StoredFile> files_;
  uint64_t bytes_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_FILESTORE_H
