//===- Buffers.h - memory that notices stray accesses -----------*- C++ -*-===//
#ifndef LLMC_TEST_NUMERICS_BUFFERS_H
#define LLMC_TEST_NUMERICS_BUFFERS_H

#include "llmc/Support/Float.h"
#include "llmc/abi.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace llmc::test {

inline int64_t alignUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Bytes that end where an inaccessible page begins.
class Guarded {
public:
  explicit Guarded(size_t bytes) : mapped(alignUp(bytes, 4096) + 4096) {
    void *place = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
      throw std::bad_alloc();
    base = static_cast<std::byte *>(place);
    mprotect(base + mapped - 4096, 4096, PROT_NONE);
    begin = base + mapped - 4096 - bytes;
  }
  Guarded(Guarded &&other) noexcept
      : mapped(other.mapped), base(std::exchange(other.base, nullptr)), begin(other.begin) {}
  Guarded &operator=(Guarded &&) = delete;
  ~Guarded() {
    if (base)
      munmap(base, mapped);
  }
  void *data() const { return begin; }

private:
  size_t mapped;
  std::byte *base, *begin = nullptr;
};

/// Values of a step's field or of a weight, with a guard.
template <typename T> class Array {
public:
  explicit Array(const std::vector<T> &values) : count(values.size()), memory(values.size() * sizeof(T)) {
    std::memcpy(memory.data(), values.data(), count * sizeof(T));
  }
  T *data() const { return static_cast<T *>(memory.data()); }
  size_t size() const { return count; }
  T &operator[](size_t i) const { return data()[i]; }

private:
  size_t count;
  Guarded memory;
};

/// An activation as the arena holds it: columns padded to 32, rows allocated up to a multiple of 16 (abi.h), plus `slack`.
/// Rows past the last are NaN (all ones in integers): kernels may compute on them but must not let them show.
template <typename T> class Rows {
public:
  int64_t rows, cols, stride, allocated;

  Rows(int64_t rows, int64_t cols, int64_t slack = 0, int64_t pad = LLMC_PAD)
      : rows(rows), cols(cols), stride(alignUp(cols, pad)), allocated(alignUp(rows, LLMC_ROW_PAD) + slack),
        memory(allocated * stride * sizeof(T)) {
    std::memset(memory.data(), 0xff, allocated * stride * sizeof(T));
    for (int64_t r = 0; r < rows; ++r)
      std::memset(row(r), 0, stride * sizeof(T));
  }
  T *data() const { return static_cast<T *>(memory.data()); }
  T *row(int64_t r) const { return data() + r * stride; }
  T &at(int64_t r, int64_t c) const { return row(r)[c]; }

private:
  Guarded memory;
};

inline Rows<float> randomRows(int64_t rows, int64_t cols, unsigned seed, float scale = 1.0f, int64_t slack = 0) {
  Rows<float> x(rows, cols, slack);
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, scale);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      x.at(r, c) = distribution(random);
  return x;
}

/// The first `count` rows of x in a buffer of their own.
template <typename T> Rows<T> firstRows(const Rows<T> &x, int64_t count) {
  Rows<T> y(count, x.cols, 0, x.stride);
  std::memcpy(y.data(), x.data(), count * x.stride * sizeof(T));
  return y;
}

/// A result before a launch: everything has a value that no kernel computes.
template <typename T> Rows<T> resultRows(int64_t rows, int64_t cols, int64_t pad = LLMC_PAD) {
  Rows<T> y(rows, cols, 0, pad);
  std::memset(y.data(), 0xcc, y.allocated * y.stride * sizeof(T));
  return y;
}

/// Bits of the first got.rows rows of `expected` (whose padding is 0); rows past them untouched.
template <typename T> void expectBits(const Rows<T> &got, const Rows<T> &expected, const std::string &what) {
  ASSERT_GE(expected.rows, got.rows) << what;
  ASSERT_EQ(expected.stride, got.stride) << what;
  for (int64_t r = 0; r < got.rows; ++r)
    for (int64_t c = 0; c < got.stride; ++c)
      ASSERT_EQ(std::memcmp(&got.at(r, c), &expected.at(r, c), sizeof(T)), 0)
          << what << ": row " << r << " of " << got.rows << ", column " << c << " of " << got.cols << ": got "
          << +got.at(r, c) << ", expected " << +expected.at(r, c);
  const auto *bytes = reinterpret_cast<const unsigned char *>(got.row(got.rows));
  for (int64_t i = 0; i < (got.allocated - got.rows) * got.stride * int64_t(sizeof(T)); ++i)
    ASSERT_EQ(bytes[i], 0xcc) << what << ": wrote past row " << got.rows << ", byte " << i;
}

} // namespace llmc::test

#endif // LLMC_TEST_NUMERICS_BUFFERS_H
