//===- Commands.h - the subcommands of llmc ---------------------*- C++ -*-===//
#ifndef LLMC_TOOLS_LLMC_COMMANDS_H
#define LLMC_TOOLS_LLMC_COMMANDS_H

#include "Flags.h"
#include "llmc/Pipelines/Compile.h"
#include "llmc/Target/TargetInfo.h"

namespace llmc {

// Each takes the arguments after its name; throws UsageError or Error.
void compileCommand(int argc, char **argv);
void explainCommand(int argc, char **argv);
void inspectCommand(int argc, char **argv);
void planCommand(int argc, char **argv);

/// The flags that decide the IR, shared by compile and plan: --target, numerics, limits, fusions.
class ModelFlags {
public:
  ModelOptions options;

  void addTarget(Flags &flags, const std::string &help);
  void add(Flags &flags);
  /// After Flags::parse: the target's defaults; refuses what the target has not. Null: a CPU. Throws UsageError.
  const GPUTarget *finish();

private:
  std::string target = "cpu";
};

/// --random-storage.
void addRandomStorage(Flags &flags, std::string &name);
std::optional<DType> randomStorage(const std::string &name);

} // namespace llmc

#endif // LLMC_TOOLS_LLMC_COMMANDS_H
