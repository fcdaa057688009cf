//===- Packing.h - weights from model files to packed panels ----*- C++ -*-===//
//
// The one owner of packed bytes (DESIGN D4): reads rows of the model's files, or makes random ones up,
// and writes them in the layouts of enum llmc_layout, panel by panel, so that memory use does not
// depend on the size of a weight. MLIR-free; the runtime links it for packages of random weights.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TARGET_PACKING_H
#define LLMC_TARGET_PACKING_H

#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/File.h"
#include "llmc/Target/Layout.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// Consecutive rows of a file, as #lm.span has them.
struct PackSource {
  uint32_t file = 0;        // index into the files given to packWeight
  uint64_t offset = 0;      // bytes
  uint64_t rows = 0;
  uint64_t deinterleave = 0; // head dim whose rows come as (0, h/2, 1, ...); 0: in order
  // For random weights: the tensor that the rows belong to and the first of them; elements of a 1-d tensor count as rows.
  std::string tensor = {};
  uint64_t row = 0;
  // Of E4M3 rows in a file: F32, F16 or BF16 values, one for each row or one for all.
  uint32_t scalesFile = 0;
  uint64_t scalesOffset = 0, scalesCount = 0;
  DType scalesType = DType::F32;
};

/// Instead of files: value (i, j) of a tensor is a function of (seed, tensor name, i, j), whatever the layout, the fusion and
/// the shard (docs/packing.md, "Random weights").
struct RandomWeights {
  uint64_t seed = 0;
};

struct PackSpec {
  std::string name;
  DType storage = DType::F32; // plain, and quantised row by row, where the layout is e4m3 and this is not
  llmc_layout layout = LLMC_LAYOUT_ROWS_F32;
  uint64_t rows = 0, cols = 0; // logical; a 1-d weight is [1, n]
  /// A 1-d weight: its sources count elements as rows of one column.
  bool vector = false;
  std::vector<PackSource> sources = {}; // rows are concatenated
  uint64_t interleave = 0;         // two sources alternate in blocks of this many rows; 0: off
  float addend = 0;                // of a vector's values, in f32
  std::vector<float> value = {};   // instead of sources: [rows, cols] row major

  uint64_t bytes() const { return packedBytes(layout, rows, cols); }
};

/// Takes the packed bytes in order.
using PackSink = std::function<void(std::span<const uint8_t>)>;

/// A weight in parts that can be packed in any order, by any number of threads: panels of 16 rows, or rows.
class WeightPacker {
public:
  /// Throws Error when the spec does not fit together or storage and layout do not go together. `files` must outlive it.
  WeightPacker(const PackSpec &spec, const std::vector<InputFile> &files);
  WeightPacker(const PackSpec &spec, RandomWeights random);
  WeightPacker(WeightPacker &&) noexcept;
  WeightPacker &operator=(WeightPacker &&) noexcept;
  ~WeightPacker();

  const PackSpec &spec() const;
  uint64_t units() const;     // units() * unitBytes() == spec().bytes()
  uint64_t unitBytes() const;
  /// Writes part `unit` to `to`, unitBytes() bytes. Throws Error when a file is too short.
  void pack(uint64_t unit, uint8_t *to) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Writes exactly spec.bytes() bytes to `sink` and returns their XXH3-64. Throws Error as WeightPacker does.
uint64_t packWeight(const PackSpec &spec, const std::vector<InputFile> &files, const PackSink &sink);
uint64_t packWeight(const WeightPacker &packer, const PackSink &sink);

} // namespace llmc

#endif // LLMC_TARGET_PACKING_H
