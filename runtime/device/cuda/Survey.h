//===- Survey.h - what a CUDA module would take, without loading it *- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_SURVEY_H
#define LLMC_RUNTIME_DEVICE_CUDA_SURVEY_H

#include "runtime/device/Device.h"
#include "runtime/device/ModuleLoader.h"

#include <optional>

namespace llmc {

struct CudaSurvey {
  LoadedModule module;
  Ledger ledger;                // of makeCudaDevice with the same options
  uint64_t kvTokens = 0;        // that the KV pool holds
  std::optional<DeviceInfo> gpu; // usedBefore: with an empty context
  std::string whyNot;           // why there is no `gpu`
};

/// Needs no GPU; asks the one of options.device where there is one. Neither code nor weights are loaded.
CudaSurvey surveyCuda(const DevicePayload &payload, const DeviceOptions &options);

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CUDA_SURVEY_H
