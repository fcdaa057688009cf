//===- Kernels.h - compiled kernels of an lm module, in process -*- C++ -*-===//
//
// Source text -> lm-to-tile -> tile-to-llvm -> the compiler's own code generation -> JITLink. The process offers no
// symbols, so that a kernel that needs one does not link. $LLMC_TEST_ISA chooses the instruction set (avx2). MLIR-free for
// its users.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_NUMERICS_KERNELS_H
#define LLMC_TEST_NUMERICS_KERNELS_H

#include "llmc/abi.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llmc::test {

struct Variant {
  std::string kernel;
  uint32_t maxRows, rowBlock, colBlocks;
  llmc_kernel_fn function;

  /// All units of a launch as a worker thread of the runtime would run them (denormals flushed), in pieces of three
  /// units, the last first: units are independent. `rows` is the dynamic row count; `blocks` the row blocks if the
  /// launch counts query tiles.
  void launch(const std::vector<void *> &arguments, int64_t rows, int64_t blocks = -1) const;
};

struct Dispatch {
  std::string op;
  std::vector<Variant> variants; // ascending maxRows
};

class Kernels {
public:
  /// `module` holds lm.weights and @step; for the instruction set in LLMC_TEST_ISA (AVX2). Throws std::runtime_error with the diagnostics.
  explicit Kernels(const std::string &module);
  ~Kernels();

  /// By lm value. Throws std::runtime_error where there is none.
  const Dispatch &operator[](const std::string &op) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Calls `test` with kernels for each instruction set that this machine has, and with emulated tiles.
void forEveryIsa(const std::function<void()> &test);

/// MXCSR with denormals flushed while it lives, as around every kernel (and therefore around its model).
class FlushDenormals {
public:
  FlushDenormals();
  ~FlushDenormals();

private:
  unsigned saved;
};

} // namespace llmc::test

#endif // LLMC_TEST_NUMERICS_KERNELS_H
