//===- Progress.h - one line about long work --------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_PROGRESS_H
#define LLMC_RUNTIME_TOOL_PROGRESS_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace llmc {

/// "checked 1200/16060 MB" on standard error: on terminals renewed in place and gone at the end, elsewhere (where `always`
/// says so) one line when the work is done. Nothing is said of work shorter than `delay` seconds.
class Progress {
public:
  Progress(std::string what, uint64_t total, double delay = 0, bool always = false)
      : what_(std::move(what)), total_(total), delay_(delay), always_(always) {}
  ~Progress() {
    if (shown_)
      std::fputs("\r\033[K", stderr);
  }

  void operator()(uint64_t done) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (seconds < delay_)
      return;
    if (!terminal_) {
      if (always_ && done == total_)
        std::fprintf(stderr, "%s %llu MB in %.1f s (%.2f GB/s)\n", what_.c_str(), megabytes(done), seconds,
                     double(done) / seconds * 1e-9);
      return;
    }
    if (shown_ && done - shown_ < total_ / 200 && done < total_)
      return;
    shown_ = std::max<uint64_t>(done, 1);
    std::fprintf(stderr, "\r\033[K%s %llu/%llu MB", what_.c_str(), megabytes(done), megabytes(total_));
    std::fflush(stderr);
  }

private:
  static unsigned long long megabytes(uint64_t bytes) { return bytes / 1000000; }

  std::string what_;
  uint64_t total_, shown_ = 0;
  double delay_;
  bool always_;
  bool terminal_ = isatty(STDERR_FILENO);
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_PROGRESS_H
