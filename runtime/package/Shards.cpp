//===- Shards.cpp ---------------------------------------------------------===//
#include "runtime/package/Shards.h"
#include "llmc/Support/File.h"
#include "runtime/package/ManifestWeights.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmc {

struct ShardWriter::State {
  XXH3_state_t hash;
};

ShardWriter::ShardWriter(std::string folder, std::string name, uint64_t total, uint64_t most)
    : folder_(folder.empty() ? "." : std::move(folder)), name_(std::move(name)), total_(total), most_(most ? most : total),
      count_(total ? (total - 1) / most_ + 1 : 0), state_(std::make_unique<State>()) {
  if (count_ > 99999)
    throw Error("--max-shard-size: expected at least " + std::to_string((total - 1) / 99999 + 1) +
                " bytes (99999 files at most), got " + std::to_string(most));
}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0)
    ::close(fd_);
  for (size_t i = 0; !kept_ && i < shards_.size(); ++i)
    unlink((i < renamed_ ? final(shards_[i].file) : temporary(shards_[i].file)).c_str());
}

void ShardWriter::fail(const std::string &doing) {
  throw Error(final(shards_.back().file) + ": cannot " + doing + ": " + std::strerror(errno));
}

void ShardWriter::open() {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".weights-%05zu-of-%05llu", shards_.size() + 1, static_cast<unsigned long long>(count_));
  shards_.push_back({name_ + suffix, 0, 0});
  const std::string path = temporary(shards_.back().file);
  unlink(path.c_str()); // of a run that was killed
  fd_ = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (fd_ < 0)
    fail("write");
  XXH3_64bits_reset(&state_->hash);
}

void ShardWriter::append(const void *bytes, size_t size) {
  const char *at = static_cast<const char *>(bytes);
  if (size > total_ - written_)
    throw Error(folder_ + ": expected " + std::to_string(total_) + " bytes of weights, got more");
  while (size > 0) {
    if (fd_ < 0)
      open();
    const size_t piece = size_t(std::min<uint64_t>(size, most_ - shards_.back().bytes));
    const ssize_t n = ::write(fd_, at, piece);
    if (n < 0 && errno == EINTR)
      continue;
    if (n == 0)
      errno = ENOSPC;
    if (n <= 0)
      fail("write at byte " + std::to_string(shards_.back().bytes));
    XXH3_64bits_update(&state_->hash, at, size_t(n));
    at += n;
    size -= size_t(n);
    written_ += uint64_t(n);
    shards_.back().bytes += uint64_t(n);
    if (shards_.back().bytes == most_)
      finishShard();
  }
}

void ShardWriter::finishShard() {
  shards_.back().xxh3 = XXH3_64bits_digest(&state_->hash);
  if (const int fd = fd_; fd_ = -1, ::close(fd) != 0) // NFS reports a full disk here
    fail("write");
}

const std::vector<Manifest::Shard> &ShardWriter::close() {
  if (written_ != total_)
    throw Error(folder_ + ": expected " + std::to_string(total_) + " bytes of weights, got " + std::to_string(written_));
  if (fd_ >= 0)
    finishShard();
  return shards_;
}

void ShardWriter::rename() {
  for (; renamed_ < shards_.size(); ++renamed_)
    if (const std::string &file = shards_[renamed_].file; std::rename(temporary(file).c_str(), final(file).c_str()) != 0)
      throw Error(final(file) + ": cannot rename " + temporary(file) + ": " + std::strerror(errno));
}

void ShardIndex::write(const std::string &folder) const {
  const Json j = {{"format", 1}, {"weights_id", hexDigits(weightsId)}, {"bytes", bytes}, {"shards", writeShards(shards)}};
  const std::string text = j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", path = folder + "/" + kFile;
  const std::string temporary = path + ".tmp";
  std::FILE *file = std::fopen(temporary.c_str(), "wb");
  const bool good = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file) != 0) || !good || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    unlink(temporary.c_str());
    throw Error(path + ": cannot write: " + reason);
  }
}

bool ShardIndex::existsIn(const std::string &folder) { return access((folder + "/" + kFile).c_str(), F_OK) == 0; }

ShardIndex ShardIndex::read(const std::string &folder) {
  const std::string path = folder + "/" + kFile, text = readTextFile(path);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const nlohmann::json::exception &error) {
    throw Error(path + ": no JSON: " + error.what());
  }
  JsonObject o(json, path);
  if (const auto format = o.number<uint32_t>("format"); format != 1)
    throw Error(path + ": format: expected 1, got " + std::to_string(format) + "; a newer llmc wrote it");
  ShardIndex index;
  index.weightsId = o.hash("weights_id");
  index.bytes = o.number<uint64_t>("bytes");
  index.shards = readShards(o, "shards", index.bytes);
  return index;
}

} // namespace llmc
