//===- Shards.h - the weights as files of their own -------------*- C++ -*-===//
//
// The image of the weights cut at multiples of one size, wherever that falls: NAME.weights-00001-of-00003 and so
// on. A folder of materialised weights has an index beside them, "weights.json".
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_PACKAGE_SHARDS_H
#define LLMC_RUNTIME_PACKAGE_SHARDS_H

#include "runtime/package/Manifest.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace llmc {

/// Writes to temporary names; on any error, and when keep() is never called, nothing is left.
///
///   ShardWriter writer(folder, "llama", total, 60 << 20);
///   writer.append(bytes, size) ...  shards = writer.close();  writer.rename();  ...  writer.keep();
class ShardWriter {
public:
  /// `total`: bytes that will be appended. `most`: bytes of one file; 0: all. Every member throws Error naming the file and
  /// the system's reason.
  ShardWriter(std::string folder, std::string name, uint64_t total, uint64_t most);
  ~ShardWriter();
  ShardWriter(const ShardWriter &) = delete;
  ShardWriter &operator=(const ShardWriter &) = delete;

  void append(const void *bytes, size_t size);
  uint64_t size() const { return written_; }
  /// The files, complete under their temporary names.
  const std::vector<Manifest::Shard> &close();
  void rename();
  /// The files stay. Not before everything that names them is in place.
  void keep() { kept_ = true; }

private:
  struct State;
  void open();
  void finishShard();
  std::string final(const std::string &file) const { return folder_ + "/" + file; }
  std::string temporary(const std::string &file) const { return final(file) + ".tmp"; }
  [[noreturn]] void fail(const std::string &doing);

  std::string folder_, name_;
  uint64_t total_, most_, count_, written_ = 0;
  int fd_ = -1;
  bool kept_ = false;
  size_t renamed_ = 0; // of shards_
  std::vector<Manifest::Shard> shards_;
  std::unique_ptr<State> state_; // of the running hash
};

/// DIR/weights.json.
struct ShardIndex {
  static constexpr const char *kFile = "weights.json";
  uint64_t weightsId = 0; // Manifest::weightsId of the package that wrote it
  uint64_t bytes = 0;
  std::vector<Manifest::Shard> shards;

  /// Written to a temporary name first.
  void write(const std::string &folder) const;
  static bool existsIn(const std::string &folder);
  static ShardIndex read(const std::string &folder);
};

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_SHARDS_H
