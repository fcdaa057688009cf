//===- Flags.h - options that several subcommands share ---------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_FLAGS_H
#define LLMC_RUNTIME_TOOL_FLAGS_H

#include "runtime/tool/LoadFlags.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

// Numbers are read strictly ("5x", "1.5", "-1" or "nan" where a count is wanted is a usage error that
// names the flag); CLI11's own conversions let some of these pass.
void addCount(CLI::App &app, const std::string &flag, uint64_t &value, const std::string &help, uint64_t least = 0,
              uint64_t most = UINT64_MAX);
/// "1,16,64"
void addCounts(CLI::App &app, const std::string &flag, std::vector<uint64_t> &values, const std::string &help, uint64_t least,
               uint64_t most);
void addInteger(CLI::App &app, const std::string &flag, int32_t &value, const std::string &help);
void addReal(CLI::App &app, const std::string &flag, float &value, const std::string &help, double least, double most);
/// One of `names`.
void addChoice(CLI::App &app, const std::string &flag, std::string &value, const std::vector<std::string> &names, const std::string &help);
/// Bytes: "300000000", "512MiB", "2GB".
void addSize(CLI::App &app, const std::string &flag, uint64_t &value, const std::string &help);

/// The part of addLoadFlags that says where package and weights are, and the threads that read them.
void addWeightsFlags(CLI::App &app, LoadFlags &flags);
void addLoadFlags(CLI::App &app, LoadFlags &flags);
/// --tool-format and --reasoning-format: how answers are read
void addFormatFlags(CLI::App &app, LoadFlags &flags);
/// --prefix-cache=off|on
void addPrefixCacheFlag(CLI::App &app, bool &on, const std::string &help);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_FLAGS_H
