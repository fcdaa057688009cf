//===- RowReader.cpp - which stored row a packed row is -------------------===//
#include "lib/Target/Packing/RowReader.h"

#include "llmc/Support/Error.h"

using namespace llmc;

RowReader::RowReader(const PackSpec &spec, const std::vector<InputFile> &files) : spec(spec), files(files) {
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
    if (source.file >= files.size())
      fail("expected a file below " + std::to_string(files.size()) + ", got " + std::to_string(source.file));
    if (source.deinterleave % 2 != 0 || (source.deinterleave && source.rows % source.deinterleave != 0))
      fail("expected rows in heads of an even dimension, got " + std::to_string(source.rows) + " rows of heads of " +
           std::to_string(source.deinterleave));
    sum += source.rows;
  }
  if (sum != rowCount)
    fail("expected sources with " + std::to_string(rowCount) + " rows, got " + std::to_string(sum));
  if (spec.interleave && (spec.sources.size() != 2 || spec.sources[0].rows != spec.sources[1].rows ||
                          spec.sources[0].rows % spec.interleave != 0))
    fail("expected two sources of equal rows, a multiple of " + std::to_string(spec.interleave) + ", to interleave");
}

RowReader::Place RowReader::place(uint64_t row) const {
  const PackSource *source = &spec.sources.front();
  if (spec.interleave) {
    uint64_t block = row / spec.interleave;
    source = &spec.sources[block % 2];
    row = block / 2 * spec.interleave + row % spec.interleave;
  } else {
    while (row >= source->rows)
      row -= source++->rows;
  }
  if (uint64_t head = source->deinterleave) { // packed halves from stored neighbours
    uint64_t i = row % head, half = head / 2;
    row = row - i + (i < half ? 2 * i : 2 * (i - half) + 1);
  }
  return {source->file, source->offset + row * bytesPerRow};
}

void RowReader::read(uint64_t begin, uint64_t count, uint8_t *destination) const {
  for (uint64_t done = 0; done < count;) {
    Place first = place(begin + done);
    uint64_t run = 1; // rows that follow each other in the file, read at once
    while (done + run < count) {
      Place next = place(begin + done + run);
      if (next.file != first.file || next.offset != first.offset + run * bytesPerRow)
        break;
      ++run;
    }
    files[first.file].read(first.offset, destination + done * bytesPerRow, run * bytesPerRow);
    done += run;
  }
}
