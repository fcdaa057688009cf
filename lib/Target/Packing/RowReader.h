//===- RowReader.h - rows of a weight in packed order -----------*- C++ -*-===//
#ifndef LLMC_LIB_TARGET_PACKING_ROWREADER_H
#define LLMC_LIB_TARGET_PACKING_ROWREADER_H

#include "llmc/Target/Packing.h"

namespace llmc {

/// Hides concatenation, interleaving and deinterleaving: row r of the packed weight, in the bytes
/// of its file.
class RowReader {
public:
  /// Throws Error when the sources do not make up the weight.
  RowReader(const PackSpec &spec, const std::vector<InputFile> &files);

  uint64_t rows() const { return rowCount; } // of one column each for a 1-d weight
  uint64_t rowBytes() const { return bytesPerRow; }

  /// Copies rows [begin, begin + count) to `destination`, one after the other.
  void read(uint64_t begin, uint64_t count, uint8_t *destination) const;

private:
  struct Place {
    uint32_t file;
    uint64_t offset;
  };
  Place place(uint64_t row) const;

  const PackSpec &spec;
  const std::vector<InputFile> &files;
  uint64_t rowCount = 0, bytesPerRow = 0;
};

} // namespace llmc

#endif // LLMC_LIB_TARGET_PACKING_ROWREADER_H
