//===- PackageDevice.h - the device that a package is for -------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_PACKAGEDEVICE_H
#define LLMC_RUNTIME_TOOL_PACKAGEDEVICE_H

#include "runtime/device/Device.h"
#include "runtime/package/PackageReader.h"

namespace llmc {

/// True if the package was compiled for a GPU. A package has modules for CPUs or one for a GPU: their weights have
/// different layouts.
bool isForGpu(const PackageReader &package);

/// The modules of a package; without weights.
DevicePayload modulesOf(const PackageReader &package, const Manifest &manifest);

/// Loads them. `weights` outlives the device.
std::unique_ptr<Device> makeDevice(const PackageReader &package, const Manifest &manifest, const WeightSource &weights,
                                   const DeviceOptions &options);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_PACKAGEDEVICE_H
