//===- Compile.h - a model to an executable ---------------------*- C++ -*-===//
//
// The phases of llmc compile, in order; the same list serves --stop-after, the pipelines of llmc-opt and docs.
// MLIR-free, so that the command line compiles fast.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_PIPELINES_COMPILE_H
#define LLMC_PIPELINES_COMPILE_H

#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Target/WeightsOptions.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

struct PhaseInfo {
  const char *name, *summary;
};

/// imported, fused, reference, decided, tile, planned: those that work on IR.
const std::vector<PhaseInfo> &irPhases();

/// What decides the IR up to the phase "planned".
struct ModelOptions {
  std::string target = "cpu";      // or "cuda"
  std::string compute = "default"; // "f32", "q8": only on a CPU
  std::string numerics = "exact";  // "phase": the products of prompts in an arithmetic of their own (lm-split-phases); only on a CPU
  std::string kvType;              // "bf16", "f32"; empty: by compute
  std::string quantize;            // "fp8": the layers' matrices to e4m3 with a scale per row; empty: as they are stored
  int64_t maxTokens = 512, maxSeqs = 16, maxLogits = 16;
  bool fuseQKV = true, fuseGateUp = true, fuseResidual = true, fuseQuantize = true;
  bool reference = true;           // the oracle, for verify; never part of a cuda package
  bool trapChecks = false;         // cuda: kernels check ids and block tables
  std::string linearTile;          // cuda: of linearTileNames(); empty: the best by the measured table
  std::string printAfter;          // a pass, or "all"; IR goes to stderr
  bool remarks = false;            // why something was not fused, on stderr
};

struct CompileOptions {
  std::string model, output; // output "-": standard output, for text
  ModelOptions ir;
  std::vector<std::string> isas;             // of cpuTargets(), or one of gpuTargets()
  WeightsOptions weights;
  std::optional<DType> randomStorage;        // random weights: of the matrices, where the model has no weight files
  bool ptxOnly = false;                      // cuda: no cubins, no gate
  std::string stopAfter;        // an IR phase: write its IR; empty: go on
  bool locations = false;       // print names of values (loc), so that llmc-opt can go on from there
  std::string emit = "package"; // "llvm"; cpu: "asm", "object"; cuda: "ptx", "cubin" (output is a folder)
  std::string stub;             // the runtime executable; empty: found beside llmc
  unsigned jobs = 2;
  std::string cacheFolder;      // empty: no cache
};

/// Throws Error. Progress goes to stderr.
void compileModel(const CompileOptions &options);

/// A variant of a launch over query tiles, as far as the step's inputs have room for it.
struct TileForm {
  uint32_t maxRows, rowBlock, colBlocks, spanRows;
  bool operator==(const TileForm &) const = default;
};

/// What `llmc plan` computes from the planned IR; no weights are read.
struct ModelPlan {
  uint64_t weightBytes = 0, arenaBytes = 0, kvBytesPerToken = 0;
  std::vector<TileForm> tileForms; // they fix the size of the step's inputs
  uint64_t decodeWeightBytes = 0; // read for one token
  uint64_t matrixFlops = 0;       // of one token, without the head
  uint64_t headFlops = 0;
  std::string arithmetic;         // "q8_g32, f32"
  size_t launches = 0, kernels = 0;
};
ModelPlan planModel(const ModelFacts &facts, const ModelOptions &options);

/// The worker process: compiles one kernel. Returns its exit code.
int runWorker(int argc, char **argv);

/// The version of llmc, "0.1.0".
const char *versionString();

} // namespace llmc

#endif // LLMC_PIPELINES_COMPILE_H
