//===- Progress.h - lines of a compile on stderr ----------------*- C++ -*-===//
#ifndef LLMC_LIB_PIPELINES_PROGRESS_H
#define LLMC_LIB_PIPELINES_PROGRESS_H

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <unistd.h>

namespace llmc {

/// Lines "llmc: 1.2 s  what" on stderr; on a terminal the line of a running phase is renewed in place.
class Progress {
public:
  void say(const char *format, ...) __attribute__((format(printf, 2, 3))) {
    va_list arguments;
    va_start(arguments, format);
    line(format, arguments, "\n");
    va_end(arguments);
  }
  /// Shown on terminals only.
  void renew(const char *format, ...) __attribute__((format(printf, 2, 3))) {
    if (!terminal)
      return;
    va_list arguments;
    va_start(arguments, format);
    line(format, arguments, "\r");
    va_end(arguments);
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

private:
  void line(const char *format, va_list arguments, const char *end) {
    std::fprintf(stderr, "%sllmc: %5.1f s  ", terminal ? "\r\033[K" : "", seconds());
    std::vfprintf(stderr, format, arguments);
    std::fputs(end, stderr);
    std::fflush(stderr);
  }
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  bool terminal = isatty(STDERR_FILENO);
};

} // namespace llmc

#endif // LLMC_LIB_PIPELINES_PROGRESS_H
