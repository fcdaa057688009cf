//===- FakeCuda.h - a CUDA driver without a GPU -----------------*- C++ -*-===//
//
// FakeCuda.cpp becomes a libcuda.so.1 of its own: device memory is host memory, work waits in the stream until it or
// an event is synchronised (so that a buffer reused too early is seen), kernels are those of FakeCudaModule.cpp. Executables find it by
// LD_LIBRARY_PATH and its faults by the environment variable LLMC_FAKE_CUDA, e.g. "major=8 minor=0 name=A100
// lose=append:719"; tests in the same process by llmcFakeCuda().
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_RUNTIME_DEVICE_FAKECUDA_H
#define LLMC_TEST_RUNTIME_DEVICE_FAKECUDA_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fake {

struct FakeCuda {
  // What the machine is.
  int devices = 1, major = 9, minor = 0, multiprocessors = 132;
  std::string name = "NVIDIA Fake";
  size_t memory = size_t(1) << 30;
  // Faults.
  std::string failingCall;   // returns failingResult
  int failingResult = 0;
  std::string losingKernel;  // executing it fails, and every later call
  int losingResult = 719;    // CUDA_ERROR_LAUNCH_FAILED
  int ctas = 2;              // that a multiprocessor runs at a time
  std::string jitLog;        // PTX does not compile, with this message
  // What happened.
  size_t allocated = 0, pinned = 0;   // bytes now
  unsigned allocations = 0;           // calls, pinned ones included
  unsigned cubins = 0, ptx = 0;       // modules loaded
  unsigned uploads = 0, downloads = 0; // copies
  std::vector<std::string> launches;  // "embed grid 3 block 32 shared 0", with " early" where the one before may still run
  unsigned graphs = 0, sources = 0;   // executable ones alive, and what they were made from
  unsigned graphLaunches = 0, nodeUpdates = 0; // calls
  unsigned earlyEdges = 0;            // programmatic ones
  std::vector<std::string> mistakes;  // of the caller
  int lost = 0;                       // the error that stays
};

} // namespace fake

extern "C" fake::FakeCuda *llmcFakeCuda();

#endif // LLMC_TEST_RUNTIME_DEVICE_FAKECUDA_H
