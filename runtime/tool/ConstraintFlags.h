//===- ConstraintFlags.h - flags that hold the answer -----------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_CONSTRAINTFLAGS_H
#define LLMC_RUNTIME_TOOL_CONSTRAINTFLAGS_H

#include "runtime/tool/Model.h"

#include <CLI/CLI.hpp>
#include <string>

namespace llmc {

struct ConstraintFlags {
  bool jsonObject = false;
  std::string jsonSchema, regex, grammar; // the first and the last are files
};

/// One of them at a time.
void addConstraintFlags(CLI::App &app, ConstraintFlags &flags);
/// Null without a flag. Throws Error that names the file, or the flag.
std::shared_ptr<Constraint> constraintOf(const ConstraintFlags &flags, Model &model);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_CONSTRAINTFLAGS_H
