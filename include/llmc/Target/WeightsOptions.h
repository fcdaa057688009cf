//===- WeightsOptions.h - where the weights of a package go -----*- C++ -*-===//
#ifndef LLMC_TARGET_WEIGHTSOPTIONS_H
#define LLMC_TARGET_WEIGHTSOPTIONS_H

#include <cstdint>
#include <string>

namespace llmc {

/// `--weights=embedded|separate|random:SEED` and `--max-shard-size=N`.
struct WeightsOptions {
  enum class Mode {
    Embedded, // a section of the package
    Separate, // files NAME.weights-00001-of-0000K beside the package, each of at most maxShardBytes
    Random    // no bytes at all: the runtime generates them from the recipe in the manifest (docs/packing.md)
  };
  Mode mode = Mode::Embedded;
  uint64_t maxShardBytes = 0; // Separate: 0 is one file
  uint64_t seed = 0;          // Random
};

/// The mode (and seed) that `text` names. Throws Error naming the flag: "--weights: expected embedded, separate or
/// random:SEED, got '...'".
WeightsOptions parseWeightsOptions(const std::string &text);

} // namespace llmc

#endif // LLMC_TARGET_WEIGHTSOPTIONS_H
