//===- ManifestWeights.h - the weights' part of the JSON --------*- C++ -*-===//
#ifndef LLMC_RUNTIME_PACKAGE_MANIFESTWEIGHTS_H
#define LLMC_RUNTIME_PACKAGE_MANIFESTWEIGHTS_H

#include "runtime/package/JsonObject.h"
#include "runtime/package/Manifest.h"

namespace llmc {

/// Keys "weights" and, unless the package holds them, "weights_origin".
void writeWeights(Json &json, const Manifest &manifest);
void readWeights(const JsonObject &json, Manifest &manifest);

/// A list of shards, as the manifest and the index of materialised weights have it. Reading refuses names with
/// folders and sizes that do not add up to `bytes`.
Json writeShards(const std::vector<Manifest::Shard> &shards);
std::vector<Manifest::Shard> readShards(const JsonObject &json, const char *key, uint64_t bytes);

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_MANIFESTWEIGHTS_H
