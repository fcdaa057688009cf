//===- WritePackage.h - stub, modules, weights to one file ------*- C++ -*-===//
#ifndef LLMC_TARGET_WRITEPACKAGE_H
#define LLMC_TARGET_WRITEPACKAGE_H

#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Target/WeightsOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include <functional>

namespace llmc {

/// Everything that a package says beside the planned module.
struct PackageParts {
  std::string stub;                                         // path of the runtime executable
  std::vector<std::pair<std::string, std::string>> modules; // ISA, shared object
  std::string version, compute, numerics = "exact", kvElement;
  WeightsOptions weights;
  bool trapChecks = false; // kernels for a GPU check ids and block tables
};

/// Writes the executable to `path`, weights included unless parts.weights says otherwise; replaces existing files at the
/// end only, leaves nothing on errors. `progress` gets the bytes of weights written. Returns the size of the file. Throws
/// Error.
///
/// Random weights open none of facts.files. The values of a tensor depend on its canonical name, which is found by the
/// start of a source's span: facts without files must therefore still give every tensor a span (file, offset) of its own.
uint64_t writePackage(const std::string &path, mlir::ModuleOp planned, const ModelFacts &facts, const PackageParts &parts,
                      const std::function<void(uint64_t)> &progress);

} // namespace llmc

#endif // LLMC_TARGET_WRITEPACKAGE_H
