//===- PackageReader.h - opens a package and checks it ----------*- C++ -*-===//
#ifndef LLMC_RUNTIME_PACKAGE_PACKAGEREADER_H
#define LLMC_RUNTIME_PACKAGE_PACKAGEREADER_H

#include "llmc/package.h"
#include "runtime/package/Manifest.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// XXH3-64, the hash of sections, of the table and of weights.
uint64_t packageHash(const void *bytes, size_t size);

/// A package, mapped read-only. Throws Error naming the path: not a package, truncated, of a newer
/// version, a section outside the file, a damaged table.
class PackageReader {
public:
  explicit PackageReader(const std::string &path);
  /// The running executable (/proc/self/exe); messages name `displayName`.
  static PackageReader self(const std::string &displayName);
  ~PackageReader();
  PackageReader(PackageReader &&other) noexcept;
  PackageReader &operator=(PackageReader &&) = delete;

  const std::string &path() const { return path_; }
  int fd() const { return fd_; }
  uint64_t fileSize() const { return size_; }
  const std::vector<llmc_package_section> &sections() const { return table_; }

  const llmc_package_section *find(const std::string &name) const;
  /// Bytes of a section, its hash checked (every time; sections are small). Throws Error
  /// if absent or damaged. Not for "weights".
  std::string_view section(const std::string &name) const;
  /// Where the weights lie in the file. Throws Error if it holds none (WeightSource finds them wherever they are).
  const llmc_package_section &weights() const;
  /// Parses the section "manifest" and checks its weights against the section "weights", if they are embedded.
  Manifest manifest() const;

private:
  PackageReader(const std::string &file, const std::string &displayName);
  void readTable();

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  const std::byte *base_ = nullptr; // the whole file
  std::vector<llmc_package_section> table_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_PACKAGEREADER_H
