//===- Suite.h - the conformance suite of devices ---------------*- C++ -*-===//
//
// What every device must do with any package, seen through the interface Device, at last through an Engine. A check is a function that
// throws Error (or calls fail) when it does not hold.
//
// Two results of different row counts (a prompt whole and in pieces, a sequence alone and in a batch) must have
// equal bits on a CPU. On a GPU kernels for many rows add in another order than those for few, and every activation is
// rounded to bf16 (2^-9): logits may differ by kGpuTolerance of the row's largest magnitude, and the likeliest token
// only where the two logits are closer than that. The same step must have equal bits everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CTS_SUITE_H
#define LLMC_RUNTIME_CTS_SUITE_H

#include "runtime/cts/Player.h"

#include <functional>
#include <string>
#include <vector>

namespace llmc::cts {

constexpr double kGpuTolerance = 0.03;

/// Tokens of KV cache that the checks need.
constexpr uint64_t kPoolTokens = 4096, kQuickPoolTokens = 1024;
/// Host memory that preempted requests' blocks go to.
constexpr uint64_t kSwapBytes = 16 << 20;

struct Check {
  std::string name;
  std::function<void(Player &)> run;
};
using Checks = std::vector<Check>;

void addSteps(Checks &checks);      // what is executed and what is refused
void addOutputs(Checks &checks);    // ids, logits, hidden rows, samplers
void addInvariance(Checks &checks); // chunks, batches, repetition
void addBlocks(Checks &checks);     // the KV cache
void addRequests(Checks &checks);   // many at a time, in an engine

} // namespace llmc::cts

#endif // LLMC_RUNTIME_CTS_SUITE_H
