//===- RowReader.h - rows of a weight in packed order -----------*- C++ -*-===//
#ifndef LLMC_LIB_TARGET_PACKING_ROWREADER_H
#define LLMC_LIB_TARGET_PACKING_ROWREADER_H

#include "lib/Target/Packing/RandomTensor.h"
#include "llmc/Target/Packing.h"

namespace llmc {

/// Hides concatenation, interleaving and deinterleaving: row r of the packed weight, in the bytes
/// of its file or in those of a random tensor.
class RowReader {
public:
  /// Throws Error when the sources do not make up the weight. Keeps references to the arguments.
  RowReader(const PackSpec &spec, const std::vector<InputFile> &files);
  RowReader(const PackSpec &spec, RandomWeights random);

  uint64_t rows() const { return rowCount; } // of one column each for a 1-d weight
  uint64_t rowBytes() const { return bytesPerRow; }

  /// Copies rows [begin, begin + count) to `destination`, one after the other.
  void read(uint64_t begin, uint64_t count, uint8_t *destination) const;

  /// The scales of the same rows, where the storage is E4M3.
  void scales(uint64_t begin, uint64_t count, float *destination) const;

private:
  struct Place {
    uint64_t source, row; // of the source's span
  };
  void check();
  Place place(uint64_t row) const;
  void readFiles(uint64_t begin, uint64_t count, uint8_t *destination) const;

  const PackSpec &spec;
  const std::vector<InputFile> *files = nullptr; // null: random
  std::vector<RandomTensor> tensors;             // of each source
  uint64_t rowCount = 0, bytesPerRow = 0;
};

} // namespace llmc

#endif // LLMC_LIB_TARGET_PACKING_ROWREADER_H
