//===- Survey.cpp ---------------------------------------------------------===//
#include "runtime/device/cuda/Survey.h"
#include "llmc/Support/Error.h"
#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/cuda/MemoryPlan.h"

namespace llmc {

CudaSurvey surveyCuda(const DevicePayload &payload, const DeviceOptions &options) {
  CudaSurvey survey;
  const DevicePayload::Module &section = payload.modules.at(0);
  survey.module = LoadedModule(section.bytes, payload.path + ": module." + section.isa);
  cuda::FreeMemory memory;
  try {
    const cuda::Gpu gpu(cuda::systemDriver(cuda::purposeOf(payload.path, section.isa)), options.device, section.isa, payload.path);
    const auto [free, total] = gpu.memory();
    memory = {free, total, gpu.name()};
    survey.gpu = DeviceInfo{gpu.name(), section.isa + ", driver " + gpu.driverVersion(), total, total - free, 0};
  } catch (const Error &error) {
    survey.whyNot = error.what();
  }
  DeviceOptions unchecked = options;
  unchecked.checkMemory = false;
  const cuda::MemoryPlan plan = cuda::planMemory(*survey.module, unchecked, memory);
  survey.ledger = plan.ledger();
  survey.kvTokens = uint64_t(plan.numBlocks) * LLMC_KV_BLOCK;
  return survey;
}

} // namespace llmc
