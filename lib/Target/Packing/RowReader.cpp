//===- RowReader.cpp - which stored row a packed row is -------------------===//
#include "lib/Target/Packing/RowReader.h"

#include "llmc/Frontend/Dequantize.h"
#include "llmc/Support/Error.h"

#include <algorithm>

using namespace llmc;

RowReader::RowReader(const PackSpec &spec, const std::vector<InputFile> &files) : spec(spec), files(&files) {
  check();
  for (const PackSource &source : spec.sources)
    if (uint32_t file = std::max(source.file, source.scalesFile); file >= files.size())
      throw Error("weight " + spec.name + ": expected a file below " + std::to_string(files.size()) + ", got " + std::to_string(file));
}

RowReader::RowReader(const PackSpec &spec, RandomWeights random) : spec(spec) {
  check();
  if (spec.storage == DType::E4M3)
    throw Error("weight " + spec.name + ": expected plain values of random weights, got " + toString(spec.storage));
  for (const PackSource &source : spec.sources)
    tensors.emplace_back(random.seed, source.tensor.empty() ? spec.name : source.tensor, spec.storage, spec.cols, spec.vector);
}

void RowReader::check() {
  auto fail = [&](const std::string &message) { throw Error("weight " + spec.name + ": " + message); };
  uint64_t cols = spec.vector ? 1 : spec.cols;
  rowCount = spec.vector ? spec.cols : spec.rows;
  if (spec.vector && (spec.rows != 1 || blockSize(spec.storage) != 1))
    fail("expected one row of plain values for a vector, got " + std::to_string(spec.rows) + " rows of " +
         toString(spec.storage));
  if (cols % blockSize(spec.storage) != 0)
    fail("expected a multiple of " + std::to_string(blockSize(spec.storage)) + " columns, got " + std::to_string(cols));
  bytesPerRow = storageBytes(spec.storage, cols);

  uint64_t sum = 0;
  for (const PackSource &source : spec.sources) {
    if (source.deinterleave % 2 != 0 || (source.deinterleave && source.rows % source.deinterleave != 0))
      fail("expected rows in heads of an even dimension, got " + std::to_string(source.rows) + " rows of heads of " +
           std::to_string(source.deinterleave));
    const bool scaled = source.scalesCount == 1 || source.scalesCount == source.rows;
    if (spec.storage == DType::E4M3 && (!scaled || blockSize(source.scalesType) != 1 || source.scalesType == DType::E4M3))
      fail("expected one scale or " + std::to_string(source.rows) + ", in F32, F16 or BF16, got " + std::to_string(source.scalesCount) +
           " in " + toString(source.scalesType));
    sum = source.rows > rowCount ? rowCount + 1 : sum + source.rows; // no overflow
    if (sum > rowCount)
      fail("expected sources with " + std::to_string(rowCount) + " rows, got more");
  }
  if (sum != rowCount)
    fail("expected sources with " + std::to_string(rowCount) + " rows, got " + std::to_string(sum));
  if (spec.interleave && (spec.sources.size() != 2 || spec.sources[0].rows != spec.sources[1].rows ||
                          spec.sources[0].rows % spec.interleave != 0))
    fail("expected two sources of equal rows, a multiple of " + std::to_string(spec.interleave) + ", to interleave");
}

RowReader::Place RowReader::place(uint64_t row) const {
  uint64_t source = 0;
  if (spec.interleave) {
    uint64_t block = row / spec.interleave;
    source = block % 2;
    row = block / 2 * spec.interleave + row % spec.interleave;
  } else {
    while (row >= spec.sources[source].rows)
      row -= spec.sources[source++].rows;
  }
  if (uint64_t head = spec.sources[source].deinterleave) { // packed halves from stored neighbours
    uint64_t i = row % head, half = head / 2;
    row = row - i + (i < half ? 2 * i : 2 * (i - half) + 1);
  }
  return {source, row};
}

void RowReader::read(uint64_t begin, uint64_t count, uint8_t *destination) const {
  if (files)
    return readFiles(begin, count, destination);
  for (uint64_t i = 0; i < count; ++i, destination += bytesPerRow) {
    Place at = place(begin + i);
    uint64_t row = spec.sources[at.source].row + at.row;
    if (spec.vector)
      tensors[at.source].element(row, destination);
    else
      tensors[at.source].row(row, destination);
  }
}

void RowReader::scales(uint64_t begin, uint64_t count, float *destination) const {
  for (uint64_t i = 0; i < count; ++i) {
    const Place at = place(begin + i);
    const PackSource &source = spec.sources[at.source];
    const uint64_t bytes = storageBytes(source.scalesType, 1);
    uint8_t stored[4];
    (*files)[source.scalesFile].read(source.scalesOffset + (source.scalesCount == 1 ? 0 : at.row) * bytes, stored, bytes);
    dequantizeRow(source.scalesType, stored, 1, destination + i);
  }
}

void RowReader::readFiles(uint64_t begin, uint64_t count, uint8_t *destination) const {
  for (uint64_t done = 0; done < count;) {
    Place first = place(begin + done);
    uint64_t run = 1; // rows that follow each other in the file, read at once
    for (; done + run < count; ++run)
      if (Place next = place(begin + done + run); next.source != first.source || next.row != first.row + run)
        break;
    const PackSource &source = spec.sources[first.source];
    (*files)[source.file].read(source.offset + first.row * bytesPerRow, destination + done * bytesPerRow, run * bytesPerRow);
    done += run;
  }
}
