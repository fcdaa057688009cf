//===- WeightSource.h - where the packed weights come from ------*- C++ -*-===//
//
// A package holds its weights, or names shard files beside it, or holds only the recipe of random
// ones. A device sees one image of size() bytes, as llmc_weight_v1::offset counts, and reads any part of it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_PACKAGE_WEIGHTSOURCE_H
#define LLMC_RUNTIME_PACKAGE_WEIGHTSOURCE_H

#include "runtime/package/PackageReader.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace llmc {

class WeightSource {
public:
  /// `directory`: where shard files are (flag --weights-dir). Empty: beside the package. Given, it replaces an
  /// embedded section or a recipe too: then it must hold what `weights --materialize` wrote for this package.
  /// Throws Error naming the shard that is missing or has not the size of the manifest.
  /// `package` must outlive the source.
  static std::unique_ptr<WeightSource> open(const PackageReader &package, const std::string &directory = "");
  virtual ~WeightSource() = default;

  /// Bytes of the image.
  virtual uint64_t size() const = 0;
  /// Copies (or generates) bytes [offset, offset + bytes) of the image. Any number of threads at a time. Throws Error when
  /// the range is not inside the image or a file cannot be read.
  virtual void read(uint64_t offset, void *to, uint64_t bytes) const = 0;

  /// True when the image is one plain span of an open file: byte 0 is byte fileOffset() of fd(), whose length has
  /// been checked. The file stays open as long as the source.
  bool mappable() const { return fd() >= 0; }
  virtual int fd() const { return -1; }
  virtual uint64_t fileOffset() const { return 0; }

  /// For messages: "package PATH", "3 shards in DIR", "random, seed 7".
  virtual std::string describe() const = 0;
  /// Compares the files with the hashes of the manifest (reads everything). Throws Error naming the file, the expected and
  /// the actual hash. `progress` gets the bytes done. Nothing to do for sources without files of their own.
  virtual void verifyFiles(const std::function<void(uint64_t)> &progress) const {}

  /// read() by `threads` threads (0: as many as this process may use), each a share of the range.
  void readParallel(uint64_t offset, void *to, uint64_t bytes, unsigned threads = 0) const;
};

/// Hashes every weight of the manifest that has a hash, and the files of the source. Throws Error naming the first weight
/// or file that differs; returns the number of weights compared. `progress` gets the bytes done.
uint64_t verifyWeights(const WeightSource &source, const Manifest &manifest, unsigned threads,
                       const std::function<void(uint64_t)> &progress);

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_WEIGHTSOURCE_H
