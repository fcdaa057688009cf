//===- Packing.cpp - a weight into its layout, part by part ---------------===//
#include "llmc/Target/Packing.h"

#include "lib/Target/Packing/Panels.h"
#include "lib/Target/Packing/QuantizeE4M3.h"
#include "lib/Target/Packing/RowReader.h"
#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

using namespace llmc;

struct WeightPacker::State {
  State(const PackSpec &given, const std::vector<InputFile> *files, RandomWeights random) : spec(given) {
    check();
    if (spec.sources.empty())
      return;
    if (files)
      reader.emplace(spec, *files);
    else
      reader.emplace(spec, random);
  }

  void check() const;
  void packValue(uint64_t row, uint8_t *to) const;
  void packRow(uint64_t row, uint8_t *to) const;
  void packPanel(uint64_t panel, uint8_t *to) const;
  void readE4M3(uint64_t begin, uint64_t count, uint8_t *codes, float *scales) const;

  PackSpec spec;
  std::optional<RowReader> reader; // absent: spec.value
};

namespace {
/// Stored bytes on their way; kept between parts, one a thread.
uint8_t *scratch(uint64_t bytes) {
  thread_local std::vector<uint8_t> buffer;
  if (buffer.size() < bytes)
    buffer.resize(bytes);
  return buffer.data();
}
uint8_t *scratchCodes(uint64_t bytes) {
  thread_local std::vector<uint8_t> buffer;
  if (buffer.size() < bytes)
    buffer.resize(bytes);
  return buffer.data();
}
float *scratchRow(uint64_t count) {
  thread_local std::vector<float> row;
  if (row.size() < count)
    row.resize(count);
  return row.data();
}

void toBf16(DType storage, const uint8_t *stored, uint64_t count, uint8_t *to) {
  if (storage == DType::BF16) {
    std::memcpy(to, stored, 2 * count);
    return;
  }
  float *row = scratchRow(count);
  dequantizeRow(storage, stored, int64_t(count), row);
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t half = f32ToBf16(row[i]);
    std::memcpy(to + 2 * i, &half, 2);
  }
}
} // namespace

void WeightPacker::State::check() const {
  auto fail = [&](const std::string &message) { throw Error("weight " + spec.name + ": " + message); };
  if (spec.sources.empty()) {
    if (spec.layout != LLMC_LAYOUT_ROWS_F32 || spec.value.size() != spec.rows * spec.cols)
      fail("expected rows_f32 and " + std::to_string(spec.rows * spec.cols) + " values, got layout " +
           std::to_string(spec.layout) + " and " + std::to_string(spec.value.size()));
    return;
  }
  if (spec.vector && spec.layout != LLMC_LAYOUT_ROWS_F32)
    fail("expected layout rows_f32 for a vector");
  const bool plain = blockSize(spec.storage) == 1;
  const bool fits = spec.storage == DType::E4M3 ? isE4M3(spec.layout)
                    : isE4M3(spec.layout)       ? plain && !spec.vector
                                                : spec.layout == LLMC_LAYOUT_ROWS_F32 || spec.layout == panelLayout(spec.storage) ||
                                                      (spec.layout == LLMC_LAYOUT_ROWS_BF16 && plain);
  if (!fits)
    fail(std::string("storage ") + toString(spec.storage) + " has no layout " + std::to_string(spec.layout));
}

void WeightPacker::State::packValue(uint64_t row, uint8_t *to) const {
  std::memset(to, 0, panelBytes(spec.layout, spec.cols));
  std::memcpy(to, spec.value.data() + row * spec.cols, spec.cols * 4);
}

void WeightPacker::State::packRow(uint64_t row, uint8_t *to) const {
  const uint64_t bytes = recordBytes(spec.layout) * spec.cols;
  std::memset(to + bytes, 0, panelBytes(spec.layout, spec.cols) - bytes);
  if (row >= spec.rows) { // padding
    std::memset(to, 0, bytes);
    return;
  }
  const uint64_t count = spec.vector ? reader->rows() : 1;
  uint8_t *stored = scratch(count * reader->rowBytes());
  reader->read(spec.vector ? 0 : row, count, stored);
  if (spec.layout == LLMC_LAYOUT_ROWS_BF16)
    return toBf16(spec.storage, stored, spec.cols, to);
  float *values = scratchRow(spec.cols); // `to` may lie anywhere
  dequantizeRow(spec.storage, stored, int64_t(spec.cols), values);
  if (spec.addend != 0)
    for (uint64_t i = 0; i < spec.cols; ++i)
      values[i] += spec.addend;
  std::memcpy(to, values, bytes);
}

void WeightPacker::State::packPanel(uint64_t panel, uint8_t *to) const {
  const uint64_t begin = panel * kPanelRows, count = begin < spec.rows ? std::min(kPanelRows, spec.rows - begin) : 0;
  const std::span<uint8_t> bytes(to, panelBytes(spec.layout, spec.cols));
  fillPanel(spec.layout, bytes);
  if (!count)
    return;
  if (isE4M3(spec.layout)) {
    uint8_t *codes = scratchCodes(count * spec.cols);
    float scales[kPanelRows];
    readE4M3(begin, count, codes, scales);
    if (spec.layout == LLMC_LAYOUT_N16_E4M3)
      llmc::packPanel(DType::E4M3, codes, count, spec.cols, bytes);
    for (uint64_t row = 0; spec.layout == LLMC_LAYOUT_ROWS_E4M3 && row < count; ++row)
      std::memcpy(to + row * padded(spec.cols), codes + row * spec.cols, spec.cols);
    std::memcpy(to + bytes.size() - tailBytes(spec.layout), scales, 4 * count);
    return;
  }
  uint8_t *stored = scratch(count * reader->rowBytes());
  reader->read(begin, count, stored);
  llmc::packPanel(spec.storage, stored, count, reader->rowBytes(), bytes);
}

/// Rows as codes, one after the other, and their scales: as they are stored, or made of values.
void WeightPacker::State::readE4M3(uint64_t begin, uint64_t count, uint8_t *codes, float *scales) const {
  auto fail = [&](uint64_t row, const std::string &message) {
    throw Error("weight " + spec.name + ": row " + std::to_string(begin + row) + ": " + message);
  };
  const bool stored = spec.storage == DType::E4M3;
  if (stored) {
    reader->read(begin, count, codes);
    reader->scales(begin, count, scales);
  } else {
    uint8_t *bytes = scratch(count * reader->rowBytes());
    float *values = scratchRow(spec.cols);
    reader->read(begin, count, bytes);
    for (uint64_t i = 0; i < count; ++i) {
      dequantizeRow(spec.storage, bytes + i * reader->rowBytes(), int64_t(spec.cols), values);
      scales[i] = quantizeE4M3(values, spec.cols, codes + i * spec.cols);
    }
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (!std::isfinite(scales[i]))
      fail(i, stored ? "expected a finite scale, got " + std::to_string(scales[i]) : "expected finite values to quantise, got others");
    // Kernels widen codes without looking for it.
    const uint8_t *row = codes + i * spec.cols, *nan = std::find_if(row, row + spec.cols, isNaNE4M3);
    if (nan != row + spec.cols)
      fail(i, "expected e4m3 values, got a NaN in column " + std::to_string(nan - row));
  }
}

WeightPacker::WeightPacker(const PackSpec &spec, const std::vector<InputFile> &files)
    : state(std::make_unique<State>(spec, &files, RandomWeights())) {}
WeightPacker::WeightPacker(const PackSpec &spec, RandomWeights random)
    : state(std::make_unique<State>(spec, nullptr, random)) {}
WeightPacker::WeightPacker(WeightPacker &&) noexcept = default;
WeightPacker &WeightPacker::operator=(WeightPacker &&) noexcept = default;
WeightPacker::~WeightPacker() = default;

const PackSpec &WeightPacker::spec() const { return state->spec; }

uint64_t WeightPacker::units() const {
  const PackSpec &spec = state->spec;
  return storedRows(spec.layout, spec.rows) / (isRows(spec.layout) ? 1 : kPanelRows);
}

uint64_t WeightPacker::unitBytes() const { return panelBytes(state->spec.layout, state->spec.cols); }

void WeightPacker::pack(uint64_t unit, uint8_t *to) const {
  if (!state->reader)
    return state->packValue(unit, to);
  if (isRows(state->spec.layout))
    return state->packRow(unit, to);
  state->packPanel(unit, to);
}

uint64_t llmc::packWeight(const WeightPacker &packer, const PackSink &sink) {
  std::vector<uint8_t> part(packer.unitBytes());
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  for (uint64_t unit = 0; unit < packer.units(); ++unit) {
    packer.pack(unit, part.data());
    XXH3_64bits_update(&hash, part.data(), part.size());
    sink(part);
  }
  return XXH3_64bits_digest(&hash);
}

uint64_t llmc::packWeight(const PackSpec &spec, const std::vector<InputFile> &files, const PackSink &sink) {
  return packWeight(WeightPacker(spec, files), sink);
}
