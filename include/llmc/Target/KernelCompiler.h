//===- KernelCompiler.h - kernels to objects in worker processes *- C++ -*-===//
//
// DESIGN D6: code generation may abort, hang or run out of memory, so that it runs in other processes (this
// executable with --worker), one per kernel. What went wrong there becomes an Error naming the kernel.
// Results are kept in a cache by content. MLIR-free.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TARGET_KERNELCOMPILER_H
#define LLMC_TARGET_KERNELCOMPILER_H

#include "llmc/Support/ScratchFolder.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct KernelJob {
  std::string name;     // for messages
  std::string bytecode; // MLIR; self-contained
  std::string isa;      // of cpuTargets() or gpuTargets()
  std::string form;     // "object", "asm", "llvm"; of a GPU: "ptx", "cubin" (a GPUKernel), "llvm"
  /// Form "cubin": path and version of ptxas; empty: PTX alone.
  std::string ptxas = {}, ptxasVersion = {};
};

/// Compiled kernels by hash, as files of one folder. Damaged files count as absent; failing to write is no error.
class KernelCache {
public:
  /// `folder` empty: no cache.
  explicit KernelCache(std::string folder);

  /// Of everything that decides the result: the job, and this executable with its LLVM.
  std::string key(const KernelJob &job) const;
  std::optional<std::string> load(const std::string &key) const;
  void store(const std::string &key, std::string_view code) const;

  /// --cache-dir, else $LLMC_CACHE_DIR, else $XDG_CACHE_HOME/llmc, else ~/.cache/llmc, else none.
  static std::string defaultFolder();

private:
  std::string folder;
  uint64_t compilerHash = 0;
};

struct KernelCompilerOptions {
  unsigned jobs = 2;       // worker processes at a time
  std::string cacheFolder; // empty: no cache
};

struct KernelProgress {
  size_t done, total, cached;
};

/// The code of each job, in order. Throws Error naming the first kernel that failed.
std::vector<std::string> compileKernels(const std::vector<KernelJob> &jobs, const KernelCompilerOptions &options,
                                        const std::function<void(const KernelProgress &)> &progress);

/// Links objects to the bytes of a shared object that exports llmc_module_v1 and needs no other. Throws Error
/// naming what is undefined.
std::string linkSharedObject(const std::vector<std::string> &objects, const std::string &soname);

} // namespace llmc

#endif // LLMC_TARGET_KERNELCOMPILER_H
