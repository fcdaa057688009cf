//===- ModuleLoader.h - from section bytes to a checked module --*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_MODULELOADER_H
#define LLMC_RUNTIME_DEVICE_MODULELOADER_H

#include "llmc/abi.h"

#include <string>
#include <string_view>

namespace llmc {

/// A loaded shared object; unloaded by the destructor.
class LoadedModule {
public:
  LoadedModule() = default;
  /// Through memfd + dlopen, else a private temporary file. Throws Error naming `name`.
  LoadedModule(std::string_view sharedObject, const std::string &name);
  ~LoadedModule();
  LoadedModule(LoadedModule &&other) noexcept { *this = static_cast<LoadedModule &&>(other); }
  LoadedModule &operator=(LoadedModule &&other) noexcept;

  const llmc_module_v1 &operator*() const { return *module_; }
  const llmc_module_v1 *get() const { return module_; }

private:
  void *handle_ = nullptr;
  int fd_ = -1;
  const llmc_module_v1 *module_ = nullptr;
};

/// Checks every offset, count and enumerator of a module against its own sizes, so that the executor need
/// not. Throws Error naming the launch and argument.
void checkModule(const llmc_module_v1 &module, const std::string &name);

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_MODULELOADER_H
