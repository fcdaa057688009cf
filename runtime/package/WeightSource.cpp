//===- WeightSource.cpp ---------------------------------------------------===//
#include "runtime/package/WeightSource.h"
#include "llmc/Support/Error.h"
#include "runtime/package/JsonObject.h"
#include "runtime/package/RandomSource.h"
#include "runtime/package/Shards.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <sched.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmc {

namespace {

constexpr uint64_t kPiece = 4u << 20;

void readFile(int fd, const std::string &path, uint64_t offset, void *to, uint64_t bytes) {
  auto *at = static_cast<char *>(to);
  while (bytes > 0) {
    const ssize_t n = pread(fd, at, size_t(std::min<uint64_t>(bytes, 1u << 30)), off_t(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      throw Error(path + ": cannot read at byte " + std::to_string(offset) + ": " + std::strerror(errno));
    if (n == 0)
      throw Error(path + ": expected " + std::to_string(bytes) + " more bytes at byte " + std::to_string(offset) +
                  ", got the end of the file");
    at += n;
    offset += uint64_t(n);
    bytes -= uint64_t(n);
  }
}

void checkRange(const WeightSource &source, uint64_t offset, uint64_t bytes) {
  if (offset > source.size() || bytes > source.size() - offset)
    throw Error(source.describe() + ": weights: expected a range inside " + std::to_string(source.size()) + " bytes, got " +
                std::to_string(bytes) + " at " + std::to_string(offset));
}

/// The section "weights".
class EmbeddedSource final : public WeightSource {
public:
  explicit EmbeddedSource(const PackageReader &package)
      : section_(package.weights()), fd_(package.fd()), path_(package.path()) {}

  uint64_t size() const override { return section_.size; }
  void read(uint64_t offset, void *to, uint64_t bytes) const override {
    checkRange(*this, offset, bytes);
    readFile(fd_, path_, section_.offset + offset, to, bytes);
  }
  int fd() const override { return fd_; }
  uint64_t fileOffset() const override { return section_.offset; }
  std::string describe() const override { return "package " + path_; }

private:
  llmc_package_section section_;
  int fd_;
  std::string path_;
};

/// Files of their own.
class ShardSource final : public WeightSource {
public:
  ShardSource(std::string folder, const std::vector<Manifest::Shard> &shards) : folder_(std::move(folder)) {
    for (const Manifest::Shard &shard : shards) {
      files_.push_back(File(folder_ + "/" + shard.file, shard, size_));
      size_ += shard.bytes;
    }
  }

  uint64_t size() const override { return size_; }
  void read(uint64_t offset, void *to, uint64_t bytes) const override {
    checkRange(*this, offset, bytes);
    auto *at = static_cast<char *>(to);
    auto file = std::partition_point(files_.begin(), files_.end(), [&](const File &f) { return f.end() <= offset; });
    for (; bytes > 0; ++file) {
      const uint64_t count = std::min(bytes, file->end() - offset);
      readFile(file->fd, file->path, offset - file->begin, at, count);
      at += count;
      offset += count;
      bytes -= count;
    }
  }
  int fd() const override { return files_.size() == 1 ? files_.front().fd : -1; }
  std::string describe() const override {
    return std::to_string(files_.size()) + (files_.size() == 1 ? " shard in " : " shards in ") + folder_;
  }
  void verifyFiles(const std::function<void(uint64_t)> &progress) const override {
    std::vector<char> buffer(kPiece);
    uint64_t done = 0;
    for (const File &file : files_) {
      XXH3_state_t hash;
      XXH3_64bits_reset(&hash);
      for (uint64_t at = 0; at < file.shard.bytes;) {
        const uint64_t count = std::min<uint64_t>(buffer.size(), file.shard.bytes - at);
        readFile(file.fd, file.path, at, buffer.data(), count);
        XXH3_64bits_update(&hash, buffer.data(), count);
        at += count;
        done += count;
        progress(done);
      }
      if (const uint64_t actual = XXH3_64bits_digest(&hash); actual != file.shard.xxh3)
        throw Error(file.path + ": damaged shard: expected hash " + hexDigits(file.shard.xxh3) + ", got " + hexDigits(actual));
    }
  }

private:
  struct File {
    File(std::string name, const Manifest::Shard &shard, uint64_t begin) : path(std::move(name)), shard(shard), begin(begin) {
      fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0)
        throw Error(path + ": cannot open this shard of the weights: " + std::strerror(errno) +
                    "; expected it beside the package or in --weights-dir");
      struct stat info{};
      if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && uint64_t(info.st_size) == shard.bytes)
        return;
      close(fd);
      if (!S_ISREG(info.st_mode))
        throw Error(path + ": expected a regular file");
      throw Error(path + (uint64_t(info.st_size) < shard.bytes ? ": truncated shard" : ": wrong shard") + ": expected " +
                  std::to_string(shard.bytes) + " bytes, got " + std::to_string(info.st_size));
    }
    File(File &&other) noexcept : path(std::move(other.path)), shard(std::move(other.shard)), begin(other.begin), fd(other.fd) {
      other.fd = -1;
    }
    ~File() {
      if (fd >= 0)
        close(fd);
    }
    uint64_t end() const { return begin + shard.bytes; }

    std::string path;
    Manifest::Shard shard;
    uint64_t begin; // in the image
    int fd = -1;
  };

  std::string folder_;
  std::vector<File> files_;
  uint64_t size_ = 0;
};

/// Of the package's file itself, symbolic links resolved.
std::string folderOf(const PackageReader &package) {
  std::error_code failure;
  const auto real = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(package.fd()), failure);
  const auto folder = (failure ? std::filesystem::path(package.path()) : real).parent_path();
  return folder.empty() ? "." : folder.string();
}

unsigned availableCpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? unsigned(std::max(CPU_COUNT(&set), 1)) : 1;
}

/// body(i) for i in [0, count), on several threads; the first exception ends the others and is thrown.
void parallel(unsigned threads, uint64_t count, const std::function<void(uint64_t)> &body) {
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  auto work = [&] {
    try {
      for (uint64_t i; (i = next++) < count;)
        body(i);
    } catch (...) {
      next = count;
      std::lock_guard lock(mutex);
      if (!failure)
        failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (uint64_t t = 1; t < std::min<uint64_t>(threads ? threads : availableCpus(), count); ++t)
      others.emplace_back(work);
  } catch (const std::system_error &) {
    // As many as the system gives; this thread does the rest.
  }
  work();
  for (std::thread &thread : others)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace

std::unique_ptr<WeightSource> WeightSource::open(const PackageReader &package, const std::string &directory) {
  const Manifest manifest = package.manifest();
  const Manifest::WeightsOrigin &origin = manifest.weightsOrigin;
  using Kind = Manifest::WeightsOrigin::Kind;
  const bool separate = origin.kind == Kind::Separate;
  if (!directory.empty() && (!separate || ShardIndex::existsIn(directory))) {
    const ShardIndex index = ShardIndex::read(directory);
    if (const uint64_t id = manifest.weightsId(); index.weightsId != id)
      throw Error(directory + "/" + ShardIndex::kFile + ": expected the weights of " + package.path() + " (id " + hexDigits(id) +
                  "), got those of another package (id " + hexDigits(index.weightsId) + ")");
    return std::make_unique<ShardSource>(directory, index.shards);
  }
  if (separate)
    return std::make_unique<ShardSource>(directory.empty() ? folderOf(package) : directory, origin.shards);
  if (origin.kind == Kind::Random)
    return std::make_unique<RandomSource>(manifest, package.path());
  return std::make_unique<EmbeddedSource>(package);
}

void WeightSource::readParallel(uint64_t offset, void *to, uint64_t bytes, unsigned threads) const {
  const uint64_t end = offset + bytes;
  checkRange(*this, offset, bytes);
  parallel(threads, (bytes + kPiece - 1) / kPiece, [&](uint64_t i) {
    const uint64_t at = offset + i * kPiece;
    read(at, static_cast<char *>(to) + i * kPiece, std::min(kPiece, end - at));
  });
}

uint64_t verifyWeights(const WeightSource &source, const Manifest &manifest, unsigned threads,
                       const std::function<void(uint64_t)> &progress) {
  source.verifyFiles(progress);
  std::atomic<uint64_t> compared{0};
  std::mutex mutex;
  uint64_t done = 0;
  parallel(threads, manifest.weights.size(), [&](uint64_t i) {
    const Manifest::Weight &w = manifest.weights[i];
    if (!w.xxh3)
      return;
    std::vector<char> buffer(std::min(kPiece, w.bytes));
    XXH3_state_t hash;
    XXH3_64bits_reset(&hash);
    for (uint64_t at = 0; at < w.bytes;) {
      const uint64_t count = std::min<uint64_t>(buffer.size(), w.bytes - at);
      source.read(w.offset + at, buffer.data(), count);
      XXH3_64bits_update(&hash, buffer.data(), count);
      at += count;
      std::lock_guard lock(mutex);
      progress(done += count);
    }
    if (const uint64_t actual = XXH3_64bits_digest(&hash); actual != *w.xxh3)
      throw Error("weight " + w.name + " is damaged: its " + std::to_string(w.bytes) + " bytes at " + std::to_string(w.offset) +
                  " do not have the hash of the manifest (expected " + hexDigits(*w.xxh3) + ", got " + hexDigits(actual) + ")");
    ++compared;
  });
  return compared;
}

} // namespace llmc
