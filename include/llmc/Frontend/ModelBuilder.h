//===- ModelBuilder.h - what a model family is written against --*- C++ -*-===//
//
// The operations of the lm dialect without MLIR headers, so that a family is
// short and compiles in a second. Every method names what it computes; `name`
// becomes the op's location and the name of its value in dumps and `diff`.
//
// Activations are [tokens, columns] in f32. Weights are looked up in the facts by
// their canonical tensor names; a missing tensor or another shape throws Error
// that names it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_FRONTEND_MODELBUILDER_H
#define LLMC_FRONTEND_MODELBUILDER_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct ModelFacts;

class ModelBuilder {
public:
  /// Handles of what has been built; valid for the builder's lifetime.
  struct Value {
    uint32_t index;
  };
  struct Cache {
    uint32_t index;
  };
  struct Weight {
    uint32_t index;
  };
  enum class Activation { SiLU, GELUTanh };
  struct Attention {
    int64_t headDim;
    double scale;
    int64_t window = 0;            // 0: all earlier tokens
    double softCap = 0;            // 0: none
    const Weight *sinks = nullptr; // [query heads]
  };

  virtual ~ModelBuilder() = default;

  /// A weight matrix [rows, columns] from tensor `name`.weight. Where `headDim` is not 0 the file's rows are
  /// ordered, head by head, for rotation of neighbours, and are reordered when packed.
  virtual Weight matrix(const std::string &name, int64_t rows, int64_t columns, int64_t headDim = 0) = 0;
  /// A vector [size] from the tensor `tensor` (with its suffix). `headDim` as above.
  virtual Weight vector(const std::string &name, const std::string &tensor, int64_t size,
                        int64_t headDim = 0) = 0;
  /// The weight [size] of a normalisation, from tensor `name`.weight: with the 1 of ModelFacts::normAddsOne.
  virtual Weight normWeight(const std::string &name, int64_t size) = 0;
  /// A computed table [1, values.size()].
  virtual Weight table(const std::string &name, const std::vector<float> &values) = 0;

  /// The step's inputs: token ids, positions, rows that want logits; the cache of each layer.
  virtual Value tokenIds() = 0;
  virtual Value positions() = 0;
  virtual Value logitsRows() = 0;
  virtual Cache cache(int64_t layer) = 0;

  virtual Value embedding(const std::string &name, Value ids, Weight table, double scale = 1) = 0;
  virtual Value rmsNorm(const std::string &name, Value input, Weight weight, double eps) = 0;
  virtual Value linear(const std::string &name, Value input, Weight weight, const Weight *bias = nullptr) = 0;
  /// activation(gate) * up
  virtual Value gated(const std::string &name, Activation activation, Value gate, Value up) = 0;
  /// input * factor
  virtual Value scale(const std::string &name, Value input, double factor) = 0;
  /// cap * tanh(input / cap)
  virtual Value softCap(const std::string &name, Value input, double cap) = 0;
  virtual Value add(const std::string &name, Value lhs, Value rhs) = 0;
  virtual Value ropeTable(const std::string &name, Value positions, Weight frequencies) = 0;
  virtual Value rope(const std::string &name, Value input, Value table, int64_t headDim) = 0;
  /// The cache with the step's keys and values [tokens, kv heads * dim]; at most one append per cache.
  virtual Cache append(const std::string &name, Cache cache, Value keys, Value values) = 0;
  virtual Value attention(const std::string &name, Value query, Cache cache, const Attention &how) = 0;
  virtual Value gatherRows(const std::string &name, Value input, Value rows) = 0;

  /// Ends the step; the caches are one per layer, in order.
  virtual void finish(Value logits, const std::vector<Cache> &caches) = 0;
};

/// Builds the step of the facts' architecture; throws Error for an architecture that has no family.
void buildFamily(ModelBuilder &builder, const ModelFacts &facts);

} // namespace llmc

#endif // LLMC_FRONTEND_MODELBUILDER_H
