//===- PackageReader.cpp --------------------------------------------------===//
#include "runtime/package/PackageReader.h"
#include "llmc/Support/Error.h"
#include "llmc/abi.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmc {

uint64_t packageHash(const void *bytes, size_t size) { return XXH3_64bits(bytes, size); }

PackageReader::PackageReader(const std::string &path) : PackageReader(path, path) {}

PackageReader PackageReader::self(const std::string &displayName) {
  return PackageReader("/proc/self/exe", displayName);
}

PackageReader::PackageReader(const std::string &file, const std::string &displayName) : path_(displayName) {
  fd_ = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0)
    throw Error(path_ + ": cannot open: " + std::strerror(errno));
  try {
    struct stat info;
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode))
      throw Error(path_ + ": expected a regular file");
    size_ = uint64_t(info.st_size);
    if (size_ < sizeof(llmc_package_trailer))
      throw Error(path_ + ": no package: expected at least " + std::to_string(sizeof(llmc_package_trailer)) +
                  " bytes, got " + std::to_string(size_));
    void *base = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (base == MAP_FAILED)
      throw Error(path_ + ": cannot map: " + std::strerror(errno));
    base_ = static_cast<const std::byte *>(base);
    readTable();
  } catch (...) {
    if (base_)
      munmap(const_cast<std::byte *>(base_), size_);
    close(fd_);
    throw;
  }
}

PackageReader::PackageReader(PackageReader &&other) noexcept
    : path_(std::move(other.path_)), fd_(other.fd_), size_(other.size_), base_(other.base_),
      table_(std::move(other.table_)) {
  other.fd_ = -1;
  other.base_ = nullptr;
}

PackageReader::~PackageReader() {
  if (base_)
    munmap(const_cast<std::byte *>(base_), size_);
  if (fd_ >= 0)
    close(fd_);
}

void PackageReader::readTable() {
  llmc_package_trailer trailer;
  std::memcpy(&trailer, base_ + size_ - sizeof trailer, sizeof trailer);
  if (std::memcmp(trailer.magic, LLMC_PACKAGE_MAGIC, sizeof trailer.magic) != 0)
    throw Error(path_ + ": no package, or a truncated one: expected " LLMC_PACKAGE_MAGIC
                        " in the last 8 bytes of its " +
                std::to_string(size_));
  if (trailer.version != 1)
    throw Error(path_ + ": expected package version 1, got " + std::to_string(trailer.version));
  if (trailer.file_size != size_)
    throw Error(path_ + ": damaged package: expected " + std::to_string(trailer.file_size) + " bytes, got " +
                std::to_string(size_));
  const uint64_t room = size_ - sizeof trailer;
  if (trailer.table_offset > room || room - trailer.table_offset != trailer.count * sizeof(llmc_package_section))
    throw Error(path_ + ": damaged package: a table of " + std::to_string(trailer.count) + " sections at byte " +
                std::to_string(trailer.table_offset) + " does not end at the trailer");
  const std::byte *table = base_ + trailer.table_offset;
  if (packageHash(table, trailer.count * sizeof(llmc_package_section)) != trailer.table_xxh3)
    throw Error(path_ + ": damaged package: the table of sections has a wrong hash");
  table_.resize(trailer.count);
  std::memcpy(table_.data(), table, trailer.count * sizeof(llmc_package_section));
  std::set<std::string> names;
  for (const llmc_package_section &s : table_) {
    if (strnlen(s.name, sizeof s.name) == sizeof s.name || !s.name[0])
      throw Error(path_ + ": damaged package: a section has no name");
    if (!names.insert(s.name).second)
      throw Error(path_ + ": damaged package: two sections are named '" + std::string(s.name) + "'");
    if (s.offset > trailer.table_offset || s.size > trailer.table_offset - s.offset)
      throw Error(path_ + ": damaged package: section '" + s.name + "' (" + std::to_string(s.size) +
                  " bytes at byte " + std::to_string(s.offset) + ") ends beyond the table at byte " +
                  std::to_string(trailer.table_offset));
  }
}

const llmc_package_section *PackageReader::find(const std::string &name) const {
  for (const llmc_package_section &s : table_)
    if (name == s.name)
      return &s;
  return nullptr;
}

std::string_view PackageReader::section(const std::string &name) const {
  const llmc_package_section *s = find(name);
  if (!s)
    throw Error(path_ + ": the package has no section '" + name + "'");
  const std::byte *bytes = base_ + s->offset;
  if (packageHash(bytes, s->size) != s->xxh3)
    throw Error(path_ + ": damaged package: section '" + name + "' has a wrong hash");
  return {reinterpret_cast<const char *>(bytes), s->size};
}

const llmc_package_section &PackageReader::weights() const {
  const llmc_package_section *s = find("weights");
  if (!s)
    throw Error(path_ + ": the package has no section 'weights'");
  if (s->offset % LLMC_WEIGHT_ALIGNMENT)
    throw Error(path_ + ": damaged package: the weights start at byte " + std::to_string(s->offset) +
                ", expected a multiple of " + std::to_string(LLMC_WEIGHT_ALIGNMENT));
  return *s;
}

Manifest PackageReader::manifest() const {
  Manifest manifest = Manifest::parse(section("manifest"), path_);
  if (manifest.weightsOrigin.kind != Manifest::WeightsOrigin::Kind::Embedded)
    return manifest; // checked by parse
  const llmc_package_section &all = weights();
  for (const Manifest::Weight &w : manifest.weights)
    if (w.offset > all.size || w.bytes > all.size - w.offset)
      throw Error(path_ + ": weight '" + w.name + "' (" + std::to_string(w.bytes) + " bytes at " +
                  std::to_string(w.offset) + ") ends beyond the " + std::to_string(all.size) + " bytes of weights");
  return manifest;
}

} // namespace llmc
