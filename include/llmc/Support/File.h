//===- File.h - checked reading of files ------------------------*- C++ -*-===//
//
// Untrusted files are read with pread, not through a mapping: a file that another
// process cuts short in mid-read then gives an Error, never SIGBUS.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_SUPPORT_FILE_H
#define LLMC_SUPPORT_FILE_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// A regular file (or, for tests and fuzzers, a span of memory that outlives it).
class InputFile {
public:
  /// Opens `path`; throws Error if it is absent, unreadable or no regular file.
  static InputFile open(const std::string &path);
  static InputFile fromMemory(std::string name, std::string_view bytes);

  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;
  ~InputFile();

  const std::string &path() const { return name; }
  uint64_t size() const { return bytes; } // when it was opened

  /// Copies [offset, offset + count) to `destination`; throws Error if it is not all there.
  void read(uint64_t offset, void *destination, uint64_t count) const;

private:
  InputFile() = default;
  std::string name;
  uint64_t bytes = 0;
  const char *memory = nullptr;
  int descriptor = -1;
};

/// Reads little-endian values of an InputFile in order, through a small buffer.
class ByteCursor {
public:
  explicit ByteCursor(const InputFile &file) : file(file) {}

  uint64_t offset() const { return position; }
  uint64_t remaining() const { return file.size() - position; }

  /// The next values; `what` names the field in the error ("tensor count").
  template <class T> T read(std::string_view what) {
    T value;
    readBytes(&value, sizeof(T), what);
    return value;
  }
  void readBytes(void *destination, uint64_t count, std::string_view what);
  void skip(uint64_t count, std::string_view what);

  /// Throws unless `count` items of at least `smallest` bytes each fit in what is left:
  /// the rule that lets no claimed number drive an allocation.
  void checkCount(uint64_t count, uint64_t smallest, uint64_t fieldOffset, std::string_view what) const;

  /// "FILE: WHAT at byte N: ..." as an Error to throw.
  [[noreturn]] void fail(uint64_t at, std::string_view what, const std::string &message) const;

private:
  const InputFile &file;
  uint64_t position = 0;
  std::vector<char> buffer;
  uint64_t bufferStart = 0;
};

/// The whole text of a side file. Throws Error beyond `limit` bytes.
std::string readTextFile(const std::string &path, uint64_t limit = uint64_t(256) << 20);

} // namespace llmc

#endif // LLMC_SUPPORT_FILE_H
