//===- Seconds.h ------------------------------------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_ENGINE_SECONDS_H
#define LLMC_RUNTIME_ENGINE_SECONDS_H

#include <chrono>

namespace llmc {

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_SECONDS_H
