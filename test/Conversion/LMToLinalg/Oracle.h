//===- Oracle.h - runs the oracle of an lm module in process ----*- C++ -*-===//
//
// Source text -> lm-to-reference -> reference-to-llvm -> LLJIT, then the dispatches of @reference in order, as the
// runtime would. The JIT offers no symbol of the process, so that a kernel that needs one does not link.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_CONVERSION_LMTOLINALG_ORACLE_H
#define LLMC_TEST_CONVERSION_LMTOLINALG_ORACLE_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llmc::test {

/// Row-major, without padding.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<float> data;

  Matrix() = default;
  Matrix(int64_t rows, int64_t cols) : rows(rows), cols(cols), data(rows * cols) {}
  float &at(int64_t r, int64_t c) { return data[r * cols + c]; }
  float at(int64_t r, int64_t c) const { return data[r * cols + c]; }
};

/// Normally distributed values, the same for a seed everywhere.
Matrix randomMatrix(int64_t rows, int64_t cols, uint32_t seed, float scale = 1.0f);

struct Step {
  std::vector<int32_t> ids, positions, logitsRows;
};

class Oracle {
public:
  /// `module` holds lm.weights and @step. Throws std::runtime_error with the diagnostics.
  explicit Oracle(const std::string &module);
  ~Oracle();

  /// Values of all dispatches by name. Every launch is made in pieces of `unitsPerCall` units. Throws
  /// where a kernel writes outside its rows or leaves padding that is not zero.
  std::map<std::string, Matrix> run(const Step &step, const std::map<std::string, Matrix> &weights, int64_t unitsPerCall = 3);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace llmc::test

#endif // LLMC_TEST_CONVERSION_LMTOLINALG_ORACLE_H
