//===- CodePointRanges.h - sets of code points as tables --------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_CODEPOINTRANGES_H
#define LLMC_RUNTIME_TOKENIZER_CODEPOINTRANGES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace llmc {

/// Whether `c` is in one of the ranges {first, last}, which ascend and do not overlap.
template <size_t N> bool isAmong(const uint32_t (&ranges)[N][2], uint32_t c) {
  const auto *after = std::upper_bound(std::begin(ranges), std::end(ranges), c, [](uint32_t value, const uint32_t(&range)[2]) { return value < range[0]; });
  return after != std::begin(ranges) && c <= after[-1][1];
}

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_CODEPOINTRANGES_H
