//===- Explanation.h - where the time of a step goes ------------*- C++ -*-===//
//
// A roofline (Williams et al. 2009) of one step, kernel by kernel: what each must compute and move, the time that a machine
// needs at least for it, and, with a profile, the time that it took. MLIR-free; needs no device.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_EXPLAIN_EXPLANATION_H
#define LLMC_EXPLAIN_EXPLANATION_H

#include "llmc/Explain/Hardware.h"
#include "runtime/device/LaunchCost.h"
#include "runtime/package/Profile.h"

#include <optional>
#include <string>
#include <vector>

namespace llmc {

/// The launches of one kernel for one op, of all layers that are alike.
struct KernelRow {
  std::string op, kernel;       // "attn_output"; the variant's name
  std::vector<int32_t> layers;  // ascending; empty: none
  uint64_t launches = 0;
  uint64_t units = 0, rowBlocks = 0; // of one launch
  uint32_t arithmetic = 0;      // enum llmc_cost_arithmetic
  LaunchWork work;              // of all launches
  double predicted = 0;         // seconds of all launches: the larger of the two below
  double memorySeconds = 0, computeSeconds = 0;
  std::optional<double> measured; // seconds of all launches

  bool memoryBound() const { return memorySeconds >= computeSeconds; }
  double intensity() const { return work.bytes() > 0 ? work.flops / work.bytes() : 0; } // FLOP/byte
  double seconds() const { return measured.value_or(predicted); }
};

/// Of one step of a package.
struct Explanation {
  std::string package, model, isa;
  Hardware hardware;
  StepShape shape;
  std::vector<KernelRow> rows; // most time first
  LaunchWork work;
  double predicted = 0;        // sum of the rows
  std::optional<double> measured; // sum of the rows
  double stepSeconds = 0;      // with a profile: of the whole step, its launches not timed
  std::string device;          // with a profile: what ran it

  double memoryShare() const; // of the predicted time
  /// All rows as one: launches, work and times.
  KernelRow total() const;
};

struct ExplainRequest {
  const llmc_module_v1 &module;
  std::string package, model; // for people
  Hardware hardware;
  StepShape shape;
  const Profile *profile = nullptr;     // of this package
  const Profile::Step *step = nullptr;  // of the profile, of this shape
  std::string profileFile = {};         // for messages
};

/// Throws Error where the step is beyond the module's limits, the module does not know its costs or the profile's launches are
/// not those of the module.
Explanation explain(const ExplainRequest &request);

/// "0-11, 13"
std::string layersText(const std::vector<int32_t> &layers);

std::string explainText(const Explanation &explanation);
/// docs/explain.md describes it.
std::string explainJson(const Explanation &explanation);
/// One file without anything from elsewhere.
std::string explainHtml(const Explanation &explanation);

} // namespace llmc

#endif // LLMC_EXPLAIN_EXPLANATION_H
