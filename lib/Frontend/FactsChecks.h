//===- FactsChecks.h - checks that every front end runs ---------*- C++ -*-===//
#ifndef LLMC_LIB_FRONTEND_FACTSCHECKS_H
#define LLMC_LIB_FRONTEND_FACTSCHECKS_H

#include "llmc/Frontend/ModelFacts.h"

#include <functional>

namespace llmc::frontend {

/// What messages call the parts of a model.
struct Source {
  std::string config;  // the file that gave the geometry
  std::string weights; // the file (or index, or folder) that lists the tensors
  /// Canonical tensor name -> the name that the model's own format would use.
  std::function<std::string(const std::string &)> nameInFile;
};

/// No extent of a model exceeds this, so that products of two fit in 64 bits.
constexpr int64_t maxExtent = int64_t(1) << 31;

/// Fails unless 1 <= value <= maxExtent; `where` is "FILE: KEY".
int64_t checkedExtent(int64_t value, const std::string &where);

/// Gets a canonical name and a shape.
using TensorVisitor = std::function<void(const std::string &, const std::vector<int64_t> &)>;

/// The tensors that the architecture needs, with the shapes that the geometry gives.
void forEachTensor(const ModelFacts &facts, const TensorVisitor &visit);

/// Extents and rope that fit together; `config` is the file that gave them.
void checkGeometry(const ModelFacts &facts, const std::string &config);

/// Geometry that fits together, every tensor that the architecture needs present
/// with the shape that the geometry gives, no unknown tensor inside a layer
/// (those change results); other extra tensors become warnings and are dropped.
void checkFacts(ModelFacts &facts, const Source &source);

/// Ids in range and unique spellings where the tokenizer needs them; `file` is for messages.
void checkTokenizer(const TokenizerData &tokenizer, int64_t vocab, const std::string &file);

/// Refuses spans that overlap (a lying header could alias two weights).
void checkOverlaps(const std::vector<TensorFact> &tensors, const std::vector<std::string> &files);

/// Factor, theta and frequency bounds; `where` is "FILE: rope".
void checkRope(const RopeFacts &rope, const std::string &where);

} // namespace llmc::frontend

#endif // LLMC_LIB_FRONTEND_FACTSCHECKS_H
