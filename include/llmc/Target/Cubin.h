//===- Cubin.h - PTX to a cubin that passes the gate ------------*- C++ -*-===//
//
// ptxas is NVIDIA's assembler and no part of llmc; without one a package holds PTX alone, which the driver compiles at
// load. With one, every kernel must pass the gate (DESIGN D6): no spilled registers, no stack, no remark C75xx (wgmma
// serialised, setmaxnreg ignored). A kernel that fails it would run, several times slower than planned, so that it is an
// error and not a warning. MLIR-free.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TARGET_CUBIN_H
#define LLMC_TARGET_CUBIN_H

#include "llmc/Support/Error.h"
#include "llmc/abi.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// A kernel as llmc_cuda_kernel_v1 has it.
struct GPUKernel {
  std::string cubin, ptx;   // cubin empty: PTX alone
  uint32_t threads = 0;     // of a CTA
  uint32_t sharedBytes = 0; // dynamic shared memory
  uint32_t persistent = 0;  // loops over units: the CTAs of a unit; 0: no loop
  uint32_t registers = 0;   // of a thread, from ptxas; 0 without a cubin
  std::vector<llmc_tensor_map_v1> tensorMaps;

  /// The bytes that the kernel compiler passes around and caches.
  std::string serialize() const;
  /// Throws Error where the bytes are none of serialize().
  static GPUKernel parse(std::string_view bytes);
};

/// What `ptxas -v` says of the kernels of one file.
struct PtxasReport {
  uint32_t registers = 0;              // the largest of them
  std::vector<std::string> complaints; // lines that the gate refuses, and errors
};
PtxasReport parsePtxasOutput(std::string_view output);

struct Ptxas {
  std::string path;
  std::string version; // "13.0.88"; part of the cache's key
};

/// $LLMC_PTXAS (throws Error when that is none), else the first of: beside llmc, $CUDA_HOME/bin, /usr/local/cuda/bin,
/// $PATH, where scripts/install-deps.sh puts the one from PyPI (ptxasFolder()).
std::optional<Ptxas> findPtxas();

/// $XDG_CACHE_HOME or ~/.cache, then "/llmc/ptxas/bin"; empty without a home.
std::string ptxasFolder();

/// What ptxas made does not pass.
struct GateError : Error {
  using Error::Error;
};

/// Assembles `kernel.ptx` for `chip` ("sm_90a"), fills in cubin and registers. Throws GateError with the first complaint:
/// "expected no spills, stack or C75xx remarks from ptxas, got: 8 bytes stack frame, ...".
void assemble(GPUKernel &kernel, const std::string &ptxas, const std::string &chip);

} // namespace llmc

#endif // LLMC_TARGET_CUBIN_H
