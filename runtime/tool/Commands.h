//===- Commands.h - the subcommands of the executable -----------*- C++ -*-===//
//
// One file each. A function adds its subcommand and flags; the returned closure
// runs it and gives the exit code.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_COMMANDS_H
#define LLMC_RUNTIME_TOOL_COMMANDS_H

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace llmc {

struct Command {
  CLI::App *app;
  std::function<int()> run;
};

/// `name`: of the executable, for messages and examples.
Command addRun(CLI::App &app, const std::string &name);
Command addChat(CLI::App &app, const std::string &name);
Command addBatch(CLI::App &app, const std::string &name);
Command addReplay(CLI::App &app, const std::string &name);
Command addServe(CLI::App &app, const std::string &name);
Command addSimulate(CLI::App &app, const std::string &name);
Command addInfo(CLI::App &app, const std::string &name);
Command addBench(CLI::App &app, const std::string &name);
Command addVerify(CLI::App &app, const std::string &name);
Command addLogits(CLI::App &app, const std::string &name);
Command addPerplexity(CLI::App &app, const std::string &name);
Command addTokenize(CLI::App &app, const std::string &name);
Command addDetokenize(CLI::App &app, const std::string &name);
Command addWeights(CLI::App &app, const std::string &name);
Command addLicenses(CLI::App &app, const std::string &name);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_COMMANDS_H
