//===- FileStore.cpp ------------------------------------------------------===//
#include "runtime/server/FileStore.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/server/Http.h"
#include "runtime/tool/CompletionRequest.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace llmc {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static constexpr uint64_t kMostDescription = 1 << 20;

Json StoredFile::describe() const {
  return {{"id", id}, {"object", "file"}, {"bytes", bytes}, {"created_at", created}, {"filename", name}, {"purpose", purpose}, {"status", "processed"}};
}

static void syncFolder(const std::string &path) {
  const std::string folder = fs::path(path).parent_path();
  if (const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    fsync(fd);
    close(fd);
  }
}

void writeDurably(const std::string &path, std::string_view text) {
  const std::string fresh = path + ".new";
  auto fail = [&](int fd) {
    const std::string why = std::strerror(errno);
    if (fd >= 0)
      close(fd);
    unlink(fresh.c_str());
    throw Error(fresh + ": cannot write: " + why);
  };
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0)
    fail(fd);
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR)
      fail(fd);
    text.remove_prefix(size_t(std::max<ssize_t>(count, 0)));
  }
  if (fsync(fd) != 0)
    fail(fd);
  close(fd);
  if (std::rename(fresh.c_str(), path.c_str()) != 0)
    fail(-1);
  syncFolder(path);
}

FileStore::FileStore(const std::string &folder, uint64_t mostBytes) : folder_(folder), mostBytes_(mostBytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::vector<fs::path> found;
  for (const auto &entry : fs::directory_iterator(folder, error))
    found.push_back(entry.path());
  if (error)
    throw Error(folder + ": expected a folder: " + error.message());
  for (const fs::path &path : found)
    if (path.extension() == ".json")
      load(path);
  for (const fs::path &path : found) // what a killed process had not finished, or not finished to remove
    if (path.extension() == ".new" || (path.extension() != ".json" && path.filename().string().starts_with("file-") && !files_.count(path.filename())))
      fs::remove(path, error);
}

void FileStore::load(const std::string &path) {
  try {
    const Json json = Json::parse(readTextFile(path, kMostDescription));
    const StoredFile file{json.at("id"), json.at("filename"), json.at("purpose"), json.at("created_at"), json.at("bytes")};
    if (path != pathOf(file.id) + ".json" || fs::file_size(pathOf(file.id)) != file.bytes)
      throw Error("expected the file beside it to have " + std::to_string(file.bytes) + " bytes");
    bytes_ += file.bytes;
    files_.emplace(file.id, file);
  } catch (const std::exception &error) {
    throw Error(path + ": expected the description of a file (remove it to go on without): " + error.what());
  }
}

void FileStore::publish(const StoredFile &file) {
  writeDurably(pathOf(file.id) + ".json", jsonText(file.describe()));
  std::lock_guard lock(mutex_);
  bytes_ += file.bytes;
  files_[file.id] = file;
}

StoredFile FileStore::add(const std::string &name, const std::string &purpose, std::string_view content) {
  {
    std::lock_guard lock(mutex_);
    const auto uploaded = size_t(std::count_if(files_.begin(), files_.end(), [](const auto &f) { return f.second.purpose == "batch"; }));
    if (uploaded >= kMostFiles)
      throw HttpError(400, "file: expected fewer than " + std::to_string(kMostFiles) + " files that are kept; delete some", "file");
    if (bytes_ + content.size() > mostBytes_)
      throw HttpError(400, "file: expected at most " + std::to_string(mostBytes_) + " bytes in all files (--batch-space), got " +
                               std::to_string(bytes_ + content.size()) + "; delete some", "file");
  }
  const StoredFile file{"file-" + newId(), name, purpose, std::time(nullptr), content.size()};
  writeDurably(pathOf(file.id), content);
  publish(file);
  return file;
}

StoredFile FileStore::adopt(const std::string &path, const std::string &id, const std::string &name, const std::string &purpose) {
  if (std::rename(path.c_str(), pathOf(id).c_str()) != 0)
    throw Error(path + ": cannot rename to " + pathOf(id) + ": " + std::strerror(errno));
  const StoredFile file{id, name, purpose, std::time(nullptr), fs::file_size(pathOf(id))};
  publish(file);
  return file;
}

std::optional<StoredFile> FileStore::find(const std::string &id) const {
  std::lock_guard lock(mutex_);
  const auto at = files_.find(id);
  return at == files_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<StoredFile> FileStore::list() const {
  std::vector<StoredFile> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto &[id, file] : files_)
      all.push_back(file);
  }
  std::sort(all.begin(), all.end(), [](const StoredFile &a, const StoredFile &b) { return std::tie(a.created, a.id) > std::tie(b.created, b.id); });
  return all;
}

bool FileStore::remove(const std::string &id) {
  std::lock_guard lock(mutex_);
  const auto at = files_.find(id);
  if (at == files_.end())
    return false;
  unlink((pathOf(id) + ".json").c_str()); // first: a content without it is removed at the next start
  unlink(pathOf(id).c_str());
  syncFolder(pathOf(id));
  bytes_ -= at->second.bytes;
  files_.erase(at);
  return true;
}

} // namespace llmc
