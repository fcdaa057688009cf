//===- Packing.cpp - streams a weight into its layout ---------------------===//
#include "llmc/Target/Packing.h"

#include "lib/Target/Packing/Panels.h"
#include "lib/Target/Packing/RowReader.h"
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Support/Error.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

using namespace llmc;

namespace {
/// Hashes what passes through.
class HashingSink {
public:
  explicit HashingSink(const PackSink &sink) : sink(sink) { XXH3_64bits_reset(&state); }
  void write(std::span<const uint8_t> bytes) {
    XXH3_64bits_update(&state, bytes.data(), bytes.size());
    sink(bytes);
  }
  uint64_t hash() const { return XXH3_64bits_digest(&state); }

private:
  const PackSink &sink;
  XXH3_state_t state;
};

/// The layout that keeps a storage as it is.
llmc_layout panelLayout(DType storage) {
  switch (storage) {
  case DType::F32: return LLMC_LAYOUT_N16_F32;
  case DType::F16: return LLMC_LAYOUT_N16_F16;
  case DType::BF16: return LLMC_LAYOUT_N16_BF16;
  case DType::Q4_0: return LLMC_LAYOUT_N16_Q4_0;
  case DType::Q4_1: return LLMC_LAYOUT_N16_Q4_1;
  case DType::Q8_0: return LLMC_LAYOUT_N16_Q8_0;
  }
  return LLMC_LAYOUT_ROWS_F32;
}

void packVector(const PackSpec &spec, const RowReader &reader, HashingSink &sink) {
  std::vector<uint8_t> stored(reader.rows() * reader.rowBytes());
  reader.read(0, reader.rows(), stored.data());
  std::vector<float> row(padded(spec.cols), 0.0f);
  dequantizeRow(spec.storage, stored.data(), int64_t(spec.cols), row.data());
  sink.write({reinterpret_cast<const uint8_t *>(row.data()), row.size() * 4});
}

void packRows(const PackSpec &spec, const RowReader &reader, HashingSink &sink) {
  std::vector<uint8_t> stored(reader.rowBytes());
  std::vector<float> row(padded(spec.cols), 0.0f);
  for (uint64_t r = 0; r < spec.rows; ++r) {
    reader.read(r, 1, stored.data());
    dequantizeRow(spec.storage, stored.data(), int64_t(spec.cols), row.data());
    sink.write({reinterpret_cast<const uint8_t *>(row.data()), row.size() * 4});
  }
}

void packPanels(const PackSpec &spec, const RowReader &reader, HashingSink &sink) {
  std::vector<uint8_t> panel(panelBytes(spec.layout, spec.cols));
  std::vector<uint8_t> stored(kPanelRows * reader.rowBytes());
  for (uint64_t begin = 0; begin < storedRows(spec.layout, spec.rows); begin += kPanelRows) {
    uint64_t count = begin < spec.rows ? std::min(kPanelRows, spec.rows - begin) : 0;
    fillPanel(spec.layout, panel);
    if (count) {
      reader.read(begin, count, stored.data());
      packPanel(spec.layout, stored.data(), count, reader.rowBytes(), panel);
    }
    sink.write(panel);
  }
}

void packValue(const PackSpec &spec, HashingSink &sink) {
  if (spec.layout != LLMC_LAYOUT_ROWS_F32 || spec.value.size() != spec.rows * spec.cols)
    throw Error("weight " + spec.name + ": expected rows_f32 and " + std::to_string(spec.rows * spec.cols) +
                " values, got layout " + std::to_string(spec.layout) + " and " + std::to_string(spec.value.size()));
  std::vector<float> row(padded(spec.cols), 0.0f);
  for (uint64_t r = 0; r < spec.rows; ++r) {
    std::memcpy(row.data(), spec.value.data() + r * spec.cols, spec.cols * 4);
    sink.write({reinterpret_cast<const uint8_t *>(row.data()), row.size() * 4});
  }
}
} // namespace

uint64_t llmc::packWeight(const PackSpec &spec, const std::vector<InputFile> &files, const PackSink &sink) {
  HashingSink hashing(sink);
  if (spec.sources.empty()) {
    packValue(spec, hashing);
    return hashing.hash();
  }
  RowReader reader(spec, files);
  if (spec.vector && spec.layout != LLMC_LAYOUT_ROWS_F32)
    throw Error("weight " + spec.name + ": expected layout rows_f32 for a vector");
  if (spec.vector)
    packVector(spec, reader, hashing);
  else if (spec.layout == LLMC_LAYOUT_ROWS_F32)
    packRows(spec, reader, hashing);
  else if (spec.layout == panelLayout(spec.storage))
    packPanels(spec, reader, hashing);
  else
    throw Error("weight " + spec.name + ": storage " + toString(spec.storage) + " has no layout " +
                std::to_string(spec.layout));
  return hashing.hash();
}
