//===- KernelCompiler.h - kernels to objects in worker processes *- C++ -*-===//
//
// DESIGN D6: code generation may abort, hang or run out of memory, so that it runs in other processes (this
// executable with --worker), one per kernel. What went wrong there becomes an Error naming the kernel.
// Results are kept in a cache by content. MLIR-free.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TARGET_KERNELCOMPILER_H
#define LLMC_TARGET_KERNELCOMPILER_H

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
  std::string isa;      // of cpuTargets()
  std::string form;     // "object", "asm", "llvm"
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

/// A folder under $TMPDIR that goes away with the object. Throws Error.
class ScratchFolder {
public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  std::string file(const std::string &name) const { return path + "/" + name; }

private:
  std::string path;
};

/// Whole files; throw Error naming the path and the system's reason.
void writeFile(const std::string &path, std::string_view bytes);
std::string readFile(const std::string &path);

} // namespace llmc

#endif // LLMC_TARGET_KERNELCOMPILER_H
