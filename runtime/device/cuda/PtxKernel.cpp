//===- PtxKernel.cpp ------------------------------------------------------===//
#include "runtime/device/cuda/PtxKernel.h"

#include <string>

namespace llmc::cuda {

PtxKernel::PtxKernel(const Gpu &gpu, const char *ptx, const char *name) : gpu_(gpu) {
  const Driver &driver = gpu.driver();
  const std::string of = std::string(name) + ": ";
  driver.check(driver.cuModuleLoadDataEx(&module_, ptx, 0, nullptr, nullptr), (of + "cuModuleLoadDataEx").c_str());
  driver.check(driver.cuModuleGetFunction(&function_, module_, name), (of + "cuModuleGetFunction").c_str());
}

void PtxKernel::launch(unsigned ctas, unsigned threads, void **parameters) const {
  const LaunchConfig config{ctas, 1, 1, threads, 1, 1, 0, gpu_.stream(), nullptr, 0};
  gpu_.driver().check(gpu_.driver().cuLaunchKernelEx(&config, function_, parameters, nullptr), "cuLaunchKernelEx");
}

} // namespace llmc::cuda
