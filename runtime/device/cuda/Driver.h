//===- Driver.h - the CUDA driver API, found at run time --------*- C++ -*-===//
//
// Declares what is used of the CUDA driver API (CUDA Toolkit Reference Manual, "CUDA Driver API") under names of its own,
// so that building needs no toolkit and an executable starts on a machine without a driver. Members are named like the
// documented functions; each is bound to the symbol that current headers map it to (cuMemAlloc -> cuMemAlloc_v2).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_DRIVER_H
#define LLMC_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "llmc/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace llmc::cuda {

// Types and enumerators of cuda.h that are part of the driver's binary interface.
using Result = int;                    // CUresult
using Ordinal = int;                   // CUdevice
using Pointer = unsigned long long;    // CUdeviceptr
using Context = struct ContextTag *;   // CUcontext
using Module = struct ModuleTag *;     // CUmodule
using Function = struct FunctionTag *; // CUfunction
using Stream = struct StreamTag *;     // CUstream
using Event = struct EventTag *;       // CUevent
using Graph = struct GraphTag *;       // CUgraph
using GraphNode = struct GraphNodeTag *; // CUgraphNode
using GraphExec = struct GraphExecTag *; // CUgraphExec
struct alignas(128) TensorMap {        // CUtensorMap
  uint64_t opaque[16];
};

struct LaunchAttribute { // CUlaunchAttribute
  int id;
  char pad[4];
  union { // CUlaunchAttributeValue
    char bytes[64];
    int number;
  } value;
};
struct LaunchConfig { // CUlaunchConfig
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
struct KernelNode { // CUDA_KERNEL_NODE_PARAMS_v2
  Function function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void **parameters, **extra;
  void *kernel, *context;
};
struct GraphEdge { // CUgraphEdgeData
  unsigned char fromPort, toPort, type, reserved[5];
};
constexpr GraphEdge kFullEdge{};
/// The later kernel may start when all CTAs of the earlier one have executed griddepcontrol.launch_dependents.
constexpr GraphEdge kProgrammaticEdge{1, 0, 1, {}};

enum : int { kProgrammaticStreamSerialization = 6 }; // CUlaunchAttributeID
enum : int { // CUdevice_attribute
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97
};
enum : int { kMaxDynamicSharedSizeBytes = 8 }; // CUfunction_attribute
enum : int {                                   // CUjit_option
  kJitInfoLogBuffer = 3,
  kJitInfoLogBufferSizeBytes = 4,
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferSizeBytes = 6
};
enum : unsigned { kStreamNonBlocking = 1, kEventDefault = 0, kEventDisableTiming = 2 };
enum : Result { kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100 };

/// A call that did not return CUDA_SUCCESS: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
class DriverError : public Error {
public:
  DriverError(const std::string &message, Result result) : Error(message), result(result) {}
  Result result;
};

struct Driver {
  Result (*cuInit)(unsigned flags) = nullptr;
  Result (*cuDriverGetVersion)(int *version) = nullptr; // 1000 * major + 10 * minor
  Result (*cuGetErrorName)(Result, const char **) = nullptr;
  Result (*cuGetErrorString)(Result, const char **) = nullptr;

  Result (*cuDeviceGetCount)(int *) = nullptr;
  Result (*cuDeviceGet)(Ordinal *, int index) = nullptr;
  Result (*cuDeviceGetName)(char *, int length, Ordinal) = nullptr;
  Result (*cuDeviceGetAttribute)(int *, int attribute, Ordinal) = nullptr;
  Result (*cuDevicePrimaryCtxRetain)(Context *, Ordinal) = nullptr;
  Result (*cuDevicePrimaryCtxRelease)(Ordinal) = nullptr;
  Result (*cuCtxSetCurrent)(Context) = nullptr;

  Result (*cuMemGetInfo)(size_t *free, size_t *total) = nullptr;
  Result (*cuMemAlloc)(Pointer *, size_t) = nullptr;
  Result (*cuMemFree)(Pointer) = nullptr;
  Result (*cuMemHostAlloc)(void **, size_t, unsigned flags) = nullptr;
  Result (*cuMemFreeHost)(void *) = nullptr;
  Result (*cuMemcpyHtoDAsync)(Pointer, const void *, size_t, Stream) = nullptr;
  Result (*cuMemcpyDtoHAsync)(void *, Pointer, size_t, Stream) = nullptr;
  Result (*cuMemcpyDtoDAsync)(Pointer, Pointer, size_t, Stream) = nullptr;
  Result (*cuMemsetD8Async)(Pointer, unsigned char, size_t, Stream) = nullptr;

  Result (*cuModuleLoadDataEx)(Module *, const void *image, unsigned count, int *options, void **values) = nullptr;
  Result (*cuModuleUnload)(Module) = nullptr;
  Result (*cuModuleGetFunction)(Function *, Module, const char *name) = nullptr;
  Result (*cuFuncSetAttribute)(Function, int attribute, int value) = nullptr;
  Result (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *ctas, Function, int threads, size_t sharedBytes) = nullptr;
  Result (*cuLaunchKernelEx)(const LaunchConfig *, Function, void **parameters, void **extra) = nullptr;

  Result (*cuStreamCreate)(Stream *, unsigned flags) = nullptr;
  Result (*cuStreamDestroy)(Stream) = nullptr;
  Result (*cuStreamSynchronize)(Stream) = nullptr;
  Result (*cuEventCreate)(Event *, unsigned flags) = nullptr;
  Result (*cuEventDestroy)(Event) = nullptr;
  Result (*cuEventRecord)(Event, Stream) = nullptr;
  Result (*cuEventSynchronize)(Event) = nullptr;
  Result (*cuEventElapsedTime)(float *milliseconds, Event start, Event end) = nullptr;

  /// Null in drivers before CUDA 12.3: all of them or none.
  Result (*cuGraphCreate)(Graph *, unsigned flags) = nullptr;
  Result (*cuGraphDestroy)(Graph) = nullptr;
  Result (*cuGraphAddKernelNode)(GraphNode *, Graph, const GraphNode *before, size_t numBefore, const KernelNode *) = nullptr;
  Result (*cuGraphAddDependencies)(Graph, const GraphNode *from, const GraphNode *to, const GraphEdge *, size_t count) = nullptr;
  Result (*cuGraphInstantiate)(GraphExec *, Graph, unsigned long long flags) = nullptr;
  Result (*cuGraphExecKernelNodeSetParams)(GraphExec, GraphNode, const KernelNode *) = nullptr;
  Result (*cuGraphExecDestroy)(GraphExec) = nullptr;
  Result (*cuGraphLaunch)(GraphExec, Stream) = nullptr;

  /// Null in drivers before CUDA 12.0.
  Result (*cuTensorMapEncodeTiled)(TensorMap *, int dataType, uint32_t rank, void *globalAddress,
                                   const uint64_t *globalDim, const uint64_t *globalStrides, const uint32_t *boxDim,
                                   const uint32_t *elementStrides, int interleave, int swizzle, int l2Promotion,
                                   int oobFill) = nullptr;

  /// Throws DriverError naming `call` unless `result` is CUDA_SUCCESS.
  void check(Result result, const char *call) const {
    if (result != kSuccess)
      fail(result, call);
  }
  /// "cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"
  std::string describe(Result result, const char *call) const;

  /// Throws Error if the library or a function is missing.
  static Driver load(const char *library = "libcuda.so.1");

private:
  [[noreturn]] void fail(Result result, const char *call) const;
};

/// The driver of this machine, loaded at the first call. Throws Error every time if there is none, with `purpose` at the
/// end: "model is compiled for cuda:sm_90a".
const Driver &systemDriver(const std::string &purpose);

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_DRIVER_H
