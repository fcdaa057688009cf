//===- PackageDevice.cpp --------------------------------------------------===//
#include "runtime/tool/PackageDevice.h"

namespace llmc {

bool isForGpu(const PackageReader &package) {
  for (const llmc_package_section &section : package.sections())
    if (std::string_view(section.name).starts_with("module.sm_"))
      return true;
  return false;
}

DevicePayload modulesOf(const PackageReader &package, const Manifest &manifest) {
  DevicePayload payload;
  for (const llmc_package_section &section : package.sections())
    if (std::string_view(section.name).starts_with("module."))
      payload.modules.push_back({section.name + 7, package.section(section.name)});
  payload.path = package.path();
  payload.trapChecks = manifest.trapChecks;
  return payload;
}

std::unique_ptr<Device> makeDevice(const PackageReader &package, const Manifest &manifest, const WeightSource &weights,
                                   const DeviceOptions &options) {
  DevicePayload payload = modulesOf(package, manifest);
  payload.weights = &weights;
  return isForGpu(package) ? makeCudaDevice(payload, options) : makeCpuDevice(payload, options);
}

} // namespace llmc
