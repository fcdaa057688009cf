//===- File.cpp -----------------------------------------------------------===//
#include "llmc/Support/File.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llmc;

InputFile InputFile::open(const std::string &path) {
  InputFile file;
  file.name = path;
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  file.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor < 0)
    throw Error(path + ": cannot open: " + std::strerror(errno));
  struct stat status;
  if (::fstat(file.descriptor, &status) != 0)
    throw Error(path + ": cannot read its size: " + std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    throw Error(path + ": expected a regular file, got " +
                (S_ISDIR(status.st_mode) ? "a folder" : "a special file"));
  file.bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

InputFile InputFile::fromMemory(std::string name, std::string_view bytes) {
  InputFile file;
  file.name = std::move(name);
  file.memory = bytes.data();
  file.bytes = bytes.size();
  return file;
}

InputFile::InputFile(InputFile &&other) noexcept
    : name(std::move(other.name)), bytes(other.bytes), memory(other.memory), descriptor(other.descriptor) {
  other.descriptor = -1;
}

InputFile::~InputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

void InputFile::read(uint64_t offset, void *destination, uint64_t count) const {
  if (count == 0)
    return;
  if (offset > bytes || count > bytes - offset)
    throw Error(name + ": expected " + std::to_string(count) + " bytes at byte " + std::to_string(offset) +
                ", got a file of " + std::to_string(bytes) + " bytes");
  if (descriptor < 0) {
    std::memcpy(destination, memory + offset, count);
    return;
  }
  char *out = static_cast<char *>(destination);
  while (count > 0) {
    ssize_t got = ::pread(descriptor, out, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error(name + ": cannot read at byte " + std::to_string(offset) + ": " + std::strerror(errno));
    if (got == 0)
      throw Error(name + ": the file became shorter while it was read, it ends at byte " +
                  std::to_string(offset));
    out += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<uint64_t>(got);
  }
}

void ByteCursor::fail(uint64_t at, std::string_view what, const std::string &message) const {
  throw Error(file.path() + ": " + std::string(what) + " at byte " + std::to_string(at) + ": " + message);
}

void ByteCursor::checkCount(uint64_t count, uint64_t smallest, uint64_t fieldOffset,
                            std::string_view what) const {
  if (count > remaining() / smallest)
    fail(fieldOffset, what,
         "expected at most " + std::to_string(remaining() / smallest) + " (" + std::to_string(remaining()) +
             " bytes are left in the file), got " + std::to_string(count));
}

void ByteCursor::readBytes(void *destination, uint64_t count, std::string_view what) {
  constexpr uint64_t bufferBytes = 256 * 1024;
  if (count > remaining())
    fail(position, what,
         "expected " + std::to_string(count) + " more bytes, got the end of the file after " +
             std::to_string(remaining()));
  char *out = static_cast<char *>(destination);
  while (count > 0) {
    if (position < bufferStart || position >= bufferStart + buffer.size()) {
      buffer.resize(std::min(bufferBytes, remaining()));
      bufferStart = position;
      file.read(position, buffer.data(), buffer.size());
    }
    uint64_t start = position - bufferStart, step = std::min<uint64_t>(count, buffer.size() - start);
    std::memcpy(out, buffer.data() + start, step);
    out += step;
    position += step;
    count -= step;
  }
}

void ByteCursor::skip(uint64_t count, std::string_view what) {
  if (count > remaining())
    fail(position, what,
         "expected " + std::to_string(count) + " more bytes, got the end of the file after " +
             std::to_string(remaining()));
  position += count;
}

std::string llmc::readTextFile(const std::string &path, uint64_t limit) {
  InputFile file = InputFile::open(path);
  if (file.size() > limit)
    throw Error(path + ": expected at most " + std::to_string(limit) + " bytes, got " +
                std::to_string(file.size()));
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}
