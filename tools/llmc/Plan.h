//===- Plan.h - what llmc plan prints ---------------------------*- C++ -*-===//
#ifndef LLMC_TOOLS_LLMC_PLAN_H
#define LLMC_TOOLS_LLMC_PLAN_H

#include "llmc/Pipelines/Compile.h"
#include "llmc/Target/TargetInfo.h"

namespace llmc {

struct PlanRequest {
  const ModelFacts &facts;
  const ModelPlan &plan;
  const ModelOptions &options;
  int64_t context; // tokens; 0: what the model was trained for
  uint64_t memory; // budget in bytes; 0: none
};

/// One line of the ledger.
void printRow(const char *name, uint64_t bytes, const char *note = "");

/// Throws Error when the budget does not suffice.
void planGPU(const PlanRequest &request, const GPUTarget &target);

} // namespace llmc

#endif // LLMC_TOOLS_LLMC_PLAN_H
