//===- TraceFile.h - requests and when they come ----------------*- C++ -*-===//
//
// A line of JSON for each request, for `simulate` and `replay` (docs/scheduling.md), and what became of all, as JSON.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_TRACEFILE_H
#define LLMC_RUNTIME_TOOL_TRACEFILE_H

#include "runtime/engine/Simulation.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llmc {

/// In order of arrival. Throws Error naming file, line and key.
std::vector<SimulatedRequest> readTrace(const std::string &path);

/// Times in seconds.
nlohmann::ordered_json toJson(const SimulationResult &result);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_TRACEFILE_H
