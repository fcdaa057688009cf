//===- PackageWriter.cpp --------------------------------------------------===//
#include "runtime/package/PackageWriter.h"
#include "llmc/Support/Error.h"
#include "llmc/abi.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmc {

struct PackageWriter::State {
  XXH3_state_t hash;
};

PackageWriter::PackageWriter(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp"), state_(std::make_unique<State>()) {
  struct stat info;
  if (stat(path_.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    throw Error(path_ + ": expected a file name, got a directory");
  unlink(temporary_.c_str()); // of a run that was killed
  fd_ = open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd_ < 0)
    throw Error(path_ + ": cannot write: " + std::strerror(errno));
}

PackageWriter::~PackageWriter() {
  if (fd_ >= 0) { // not finished
    close(fd_);
    unlink(temporary_.c_str());
  }
}

void PackageWriter::fail(const std::string &doing) {
  const std::string reason = std::strerror(errno);
  if (fd_ >= 0)
    close(fd_);
  fd_ = -1;
  unlink(temporary_.c_str());
  throw Error(path_ + ": cannot " + doing + ": " + reason);
}

void PackageWriter::write(const void *bytes, size_t size) {
  const char *at = static_cast<const char *>(bytes);
  while (size > 0) {
    const ssize_t n = fd_ < 0 ? -1 : ::write(fd_, at, size);
    if (n < 0 && errno == EINTR && fd_ >= 0)
      continue;
    if (n == 0)
      errno = ENOSPC;
    if (n <= 0)
      fail("write at byte " + std::to_string(position_));
    at += n;
    size -= size_t(n);
    position_ += uint64_t(n);
  }
}

void PackageWriter::pad(uint64_t alignment) {
  static const char zeros[4096] = {};
  uint64_t missing = (alignment - position_ % alignment) % alignment;
  while (missing > 0) {
    const size_t piece = size_t(std::min<uint64_t>(missing, sizeof zeros));
    write(zeros, piece);
    missing -= piece;
  }
}

void PackageWriter::stub(const std::string &stubPath) {
  if (position_ != 0)
    throw Error(path_ + ": the runtime must come first");
  const int in = ::open(stubPath.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0)
    throw Error(stubPath + ": cannot read the runtime: " + std::strerror(errno));
  std::vector<char> buffer(1 << 20);
  try {
    while (true) {
      const ssize_t n = read(in, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        throw Error(stubPath + ": cannot read the runtime: " + std::strerror(errno));
      if (n == 0)
        break;
      write(buffer.data(), size_t(n));
    }
  } catch (...) {
    close(in);
    throw;
  }
  close(in);
  if (position_ == 0)
    throw Error(stubPath + ": the runtime is empty");
  executable_ = true;
}

void PackageWriter::begin(const std::string &name) {
  llmc_package_section entry{};
  if (open_ || name.empty() || name.size() >= sizeof entry.name)
    throw Error(path_ + ": section '" + name + "' cannot begin");
  for (const llmc_package_section &other : table_)
    if (name == other.name)
      throw Error(path_ + ": section '" + name + "' exists already");
  pad(name == "weights" ? LLMC_WEIGHT_ALIGNMENT : 4096);
  std::memcpy(entry.name, name.data(), name.size());
  entry.offset = position_;
  table_.push_back(entry);
  open_ = true;
  XXH3_64bits_reset(&state_->hash);
}

void PackageWriter::append(const void *bytes, size_t size) {
  if (!open_)
    throw Error(path_ + ": no section is open");
  if (std::strcmp(table_.back().name, "weights") != 0)
    XXH3_64bits_update(&state_->hash, bytes, size);
  write(bytes, size);
}

uint64_t PackageWriter::size() const { return open_ ? position_ - table_.back().offset : 0; }

void PackageWriter::end() {
  if (!open_)
    throw Error(path_ + ": no section is open");
  llmc_package_section &entry = table_.back();
  entry.size = position_ - entry.offset;
  entry.xxh3 = std::strcmp(entry.name, "weights") == 0 ? 0 : XXH3_64bits_digest(&state_->hash);
  open_ = false;
}

void PackageWriter::section(const std::string &name, std::string_view bytes) {
  begin(name);
  append(bytes.data(), bytes.size());
  end();
}

void PackageWriter::finish() {
  if (open_)
    throw Error(path_ + ": section '" + table_.back().name + "' is still open");
  pad(4096);
  llmc_package_trailer trailer{};
  trailer.table_offset = position_;
  trailer.count = uint32_t(table_.size());
  trailer.version = 1;
  trailer.table_xxh3 = XXH3_64bits(table_.data(), table_.size() * sizeof(llmc_package_section));
  trailer.file_size = position_ + table_.size() * sizeof(llmc_package_section) + sizeof trailer;
  std::memcpy(trailer.magic, LLMC_PACKAGE_MAGIC, sizeof trailer.magic);
  write(table_.data(), table_.size() * sizeof(llmc_package_section));
  write(&trailer, sizeof trailer);
  if (fchmod(fd_, executable_ ? 0755 : 0644) != 0)
    fail("set its mode");
  if (const int fd = fd_; fd_ = -1, close(fd) != 0) // NFS reports a full disk here
    fail("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail("rename " + temporary_);
}

} // namespace llmc
