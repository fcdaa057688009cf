//===- LoadFlags.h - how a package is loaded --------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_LOADFLAGS_H
#define LLMC_RUNTIME_TOOL_LOADFLAGS_H

#include <cstdint>
#include <string>

namespace llmc {

/// Set by flags (Flags.h) or by a program (llmc.h).
struct LoadFlags {
  std::string package; // empty: this executable
  std::string weightsDir; // of shard files; empty: beside the package
  uint64_t threads = 0, kvBytes = 0, swapBytes = 0, context = 0;
  std::string isa;
  bool map = false;
  uint64_t device = 0; // of a package for a GPU, as the next three
  bool ptx = false, noGraphs = false, syncLaunches = false;
  std::string toolFormat = "auto", reasoningFormat = "auto"; // names of ToolFormat.h, "none", or "auto": as the template has it
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_LOADFLAGS_H
