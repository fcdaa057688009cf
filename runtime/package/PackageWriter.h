//===- PackageWriter.h - makes an executable out of its parts ---*- C++ -*-===//
//
// Layout: llmc/package.h. Everything is written to FILE.tmp beside FILE and renamed at the
// end; on any error nothing is left.
//
//   PackageWriter writer("smollm2");
//   writer.stub("llmc-runtime-stub");
//   writer.section("manifest", json);
//   writer.begin("weights");  writer.append(bytes, size) ...  writer.end();
//   writer.finish();
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_PACKAGE_PACKAGEWRITER_H
#define LLMC_RUNTIME_PACKAGE_PACKAGEWRITER_H

#include "llmc/package.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class PackageWriter {
public:
  /// Creates FILE.tmp. Every member throws Error naming the path and the system's reason.
  explicit PackageWriter(std::string path);
  ~PackageWriter();
  PackageWriter(const PackageWriter &) = delete;
  PackageWriter &operator=(const PackageWriter &) = delete;

  /// Copies the runtime executable to the start of the file. Left out, the result is a payload (.llmc).
  void stub(const std::string &stubPath);
  /// A whole section. Names: at most 47 bytes, each once.
  void section(const std::string &name, std::string_view bytes);
  /// A section in pieces. "weights" starts at a multiple of LLMC_WEIGHT_ALIGNMENT, others of 4096.
  void begin(const std::string &name);
  void append(const void *bytes, size_t size);
  /// Bytes of the open section so far.
  uint64_t size() const;
  void end();
  /// Table, trailer, mode 755 (644 without a stub), fsync-free rename onto the path.
  void finish();

private:
  struct State;
  void write(const void *bytes, size_t size);
  void pad(uint64_t alignment);
  [[noreturn]] void fail(const std::string &doing);

  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t position_ = 0;
  bool executable_ = false, open_ = false;
  std::vector<llmc_package_section> table_;
  std::unique_ptr<State> state_; // of the running hash
};

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_PACKAGEWRITER_H
