//===- Driver.cpp ---------------------------------------------------------===//
#include "runtime/device/cuda/Driver.h"

#include <dlfcn.h>

namespace llmc::cuda {

namespace {

struct Library {
  const char *name;
  void *handle;

  template <typename F> bool find(F *&function, const char *symbol) const {
    function = reinterpret_cast<F *>(dlsym(handle, symbol));
    return function != nullptr;
  }
  template <typename F> void get(F *&function, const char *symbol) const {
    if (!find(function, symbol))
      throw Error(std::string(name) + ": the CUDA driver is too old: it has no function " + symbol);
  }
};

} // namespace

Driver Driver::load(const char *name) {
  // Never closed: the driver keeps threads and exit handlers of its own.
  const Library library{name, dlopen(name, RTLD_NOW | RTLD_LOCAL)};
  if (!library.handle) {
    const char *why = dlerror();
    throw Error(std::string("no CUDA driver (") + name + ") on this machine: " + (why ? why : "unknown reason"));
  }
  Driver d;
  library.get(d.cuInit, "cuInit");
  library.get(d.cuDriverGetVersion, "cuDriverGetVersion");
  library.get(d.cuGetErrorName, "cuGetErrorName");
  library.get(d.cuGetErrorString, "cuGetErrorString");
  library.get(d.cuDeviceGetCount, "cuDeviceGetCount");
  library.get(d.cuDeviceGet, "cuDeviceGet");
  library.get(d.cuDeviceGetName, "cuDeviceGetName");
  library.get(d.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  library.get(d.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  library.get(d.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  library.get(d.cuCtxSetCurrent, "cuCtxSetCurrent");
  library.get(d.cuMemGetInfo, "cuMemGetInfo_v2");
  library.get(d.cuMemAlloc, "cuMemAlloc_v2");
  library.get(d.cuMemFree, "cuMemFree_v2");
  library.get(d.cuMemHostAlloc, "cuMemHostAlloc");
  library.get(d.cuMemFreeHost, "cuMemFreeHost");
  library.get(d.cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  library.get(d.cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  library.get(d.cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  library.get(d.cuMemsetD8Async, "cuMemsetD8Async");
  library.get(d.cuModuleLoadDataEx, "cuModuleLoadDataEx");
  library.get(d.cuModuleUnload, "cuModuleUnload");
  library.get(d.cuModuleGetFunction, "cuModuleGetFunction");
  library.get(d.cuFuncSetAttribute, "cuFuncSetAttribute");
  library.get(d.cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  library.get(d.cuLaunchKernelEx, "cuLaunchKernelEx");
  library.get(d.cuStreamCreate, "cuStreamCreate");
  library.get(d.cuStreamDestroy, "cuStreamDestroy_v2");
  library.get(d.cuStreamSynchronize, "cuStreamSynchronize");
  library.get(d.cuEventCreate, "cuEventCreate");
  library.get(d.cuEventDestroy, "cuEventDestroy_v2");
  library.get(d.cuEventRecord, "cuEventRecord");
  library.get(d.cuEventSynchronize, "cuEventSynchronize");
  library.get(d.cuEventElapsedTime, "cuEventElapsedTime");
  library.find(d.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  if (library.find(d.cuGraphAddDependencies, "cuGraphAddDependencies_v2")) { // the newest of them
    library.get(d.cuGraphCreate, "cuGraphCreate");
    library.get(d.cuGraphDestroy, "cuGraphDestroy");
    library.get(d.cuGraphAddKernelNode, "cuGraphAddKernelNode_v2");
    library.get(d.cuGraphInstantiate, "cuGraphInstantiateWithFlags");
    library.get(d.cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2");
    library.get(d.cuGraphExecDestroy, "cuGraphExecDestroy");
    library.get(d.cuGraphLaunch, "cuGraphLaunch");
  }
  return d;
}

std::string Driver::describe(Result result, const char *call) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != kSuccess || !name)
    return std::string(call) + ": CUDA error " + std::to_string(result);
  if (cuGetErrorString(result, &text) != kSuccess || !text)
    text = "no description";
  return std::string(call) + ": " + name + " (" + text + ")";
}

void Driver::fail(Result result, const char *call) const { throw DriverError(describe(result, call), result); }

const Driver &systemDriver(const std::string &purpose) {
  try {
    static const Driver driver = Driver::load(); // tried again after an exception
    return driver;
  } catch (const Error &error) {
    throw Error(std::string(error.what()) + "; " + purpose);
  }
}

} // namespace llmc::cuda
