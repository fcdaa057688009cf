//===- Commands.h - the subcommands of llmc ---------------------*- C++ -*-===//
#ifndef LLMC_TOOLS_LLMC_COMMANDS_H
#define LLMC_TOOLS_LLMC_COMMANDS_H

#include "Flags.h"
#include "llmc/Pipelines/Compile.h"

namespace llmc {

// Each takes the arguments after its name; throws UsageError or Error.
void compileCommand(int argc, char **argv);
void inspectCommand(int argc, char **argv);
void planCommand(int argc, char **argv);

/// The flags that decide the IR, shared by compile and plan.
void addModelFlags(Flags &flags, ModelOptions &options);

} // namespace llmc

#endif // LLMC_TOOLS_LLMC_COMMANDS_H
