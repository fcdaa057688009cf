//===- Weights.h - random weights and lm text for tests ---------*- C++ -*-===//
#ifndef LLMC_TEST_NUMERICS_WEIGHTS_H
#define LLMC_TEST_NUMERICS_WEIGHTS_H

#include "Blocks.h"
#include "Buffers.h"

#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Support/Float.h"
#include "llmc/Target/Packing.h"

#include <array>

namespace llmc::test {

/// An lm module under construction: every op gets its operands as arguments of @step.
struct ModuleText {
  std::string weights, arguments, body;
  int count = 0;

  std::string argument(const std::string &type) {
    std::string name = "%arg" + std::to_string(count++);
    arguments += (arguments.empty() ? "" : ", ") + name + ": " + type;
    return name;
  }
  /// `text` of an op, with or without results, named `name`.
  void op(const std::string &results, const std::string &text, const std::string &name) {
    body += "  " + (results.empty() ? "" : results + " = ") + text + " loc(\"" + name + "\")\n";
  }
  std::string str() const {
    return "module {\n" + weights + "func.func @step(" + arguments + ") {\n" + body + "  return\n}\n}\n";
  }
};

inline std::string tensorType(int64_t cols, const std::string &element = "f32") {
  return "tensor<?x" + std::to_string(cols) + "x" + element + ">";
}
/// Codes (i8 or i16) and scales.
inline std::string codedTypes(int64_t cols, const std::string &element) {
  return tensorType(cols, element) + ", tensor<?x" + std::to_string((cols + 31) / 32) + "x2xf32>";
}
/// Results in a format.
inline std::string resultTypes(int64_t cols, const std::string &format) {
  return format[0] == 'q' ? "(" + codedTypes(cols, format == "q8" ? "i8" : "i16") + ")" : tensorType(cols, format);
}

/// Where a block has its f16 values; -1: none.
inline std::array<int, 2> halvesOf(DType type) {
  switch (type) {
  case DType::Q4_1: case DType::Q5_1: case DType::Q4_K: case DType::Q5_K: return {0, 2};
  case DType::Q2_K: return {80, 82};
  case DType::Q3_K: return {108, -1};
  case DType::Q6_K: return {208, -1};
  default: return {0, -1};
  }
}

/// Stored rows of random values. One block in four has extremes: scale zero, subnormal or negative, bytes at both ends.
inline std::string randomStorage(DType type, int64_t rows, int64_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(rows * storageBytes(type, cols), 0);
  std::normal_distribution<float> values(0, 1);
  auto put16 = [&](size_t at, uint16_t bits) { std::memcpy(&bytes[at], &bits, 2); };
  size_t step = blockBytes(type);
  for (size_t at = 0; at < bytes.size(); at += step) {
    float value = values(random);
    unsigned extreme = random() % 24;
    if (type == DType::F32) {
      value = extreme == 0 ? 0.0f : extreme == 1 ? 0x1p-140f : value;
      std::memcpy(&bytes[at], &value, 4);
      continue;
    }
    if (type == DType::E4M3) { // both zeros, the least and the largest values of either sign
      constexpr unsigned char kEnds[] = {0, 0x80, 1, 0x87, 8, 0x7e, 0xfe};
      unsigned char code = extreme < std::size(kEnds) ? kEnds[extreme] : static_cast<unsigned char>(random());
      bytes[at] = static_cast<char>(isNaNE4M3(code) ? 0 : code);
      continue;
    }
    if (type == DType::BF16) {
      put16(at, extreme == 0 ? 0 : extreme == 1 ? 0x0012 : f32ToBf16(value));
      continue;
    }
    auto f16 = [&](float x) -> uint16_t {
      switch (extreme) {
      case 0: return 0;
      case 1: return uint16_t(random() & 0x83ff); // subnormal
      case 2: return 0x8000;
      default: return f32ToF16(x);
      }
    };
    for (size_t i = 0; i < step; ++i)
      bytes[at + i] = extreme == 3 ? 0 : extreme == 4 ? char(0xff) : extreme == 5 ? char(0x80) : extreme == 6 ? 0x7f : char(random());
    auto [scale, minimum] = halvesOf(type);
    put16(at + scale, f16(value / 8));
    if (minimum >= 0)
      put16(at + minimum, f16(values(random)));
  }
  return bytes;
}

/// A matrix (or, with rows = 0, a vector) as the file has it, packed, and as lm text.
struct Weight {
  std::string name;
  DType storage;
  int64_t rows, cols;
  int64_t interleave = 0; // two sources of rows / 2
  std::string bytes;
  std::vector<float> values; // [rows, cols] in the file's order; of e4m3 without their scales
  std::vector<float> scales; // of e4m3: one for each row, or one
  Array<uint8_t> packed;

  Weight(const std::string &name, DType storage, int64_t rows, int64_t cols, unsigned seed, int64_t interleave = 0)
      : name(name), storage(storage), rows(rows), cols(cols), interleave(interleave),
        bytes(randomStorage(storage, std::max<int64_t>(rows, 1), cols, seed)), values(std::max<int64_t>(rows, 1) * cols),
        scales(randomScales(seed)), packed(pack()) {
    dequantizeRow(storage, bytes.data(), values.size(), values.data());
  }

  float value(int64_t row, int64_t k) const { return values[row * cols + k]; }
  /// What multiplies the sums of a row; 1 of other storages, whose products have no such factor.
  float scale(int64_t row) const { return scales.empty() ? 1 : scales[scales.size() == 1 ? 0 : row]; }
  BlockValue block(int64_t row, int64_t k) const {
    const auto *blocks = reinterpret_cast<const uint8_t *>(bytes.data()) + row * storageBytes(storage, cols);
    return blockValue(storage, blocks + k / blockSize(storage) * blockBytes(storage), int(k % blockSize(storage)));
  }

  llmc_layout layout() const {
    return rows == 0 ? LLMC_LAYOUT_ROWS_F32 : panelLayout(storage);
  }

  std::string declaration() const {
    int64_t parts = interleave ? 2 : 1, count = (rows ? rows : cols) / parts;
    std::string text = "lm.weight @" + name + " [" + (rows ? std::to_string(rows) + ", " : "") + std::to_string(cols) + "] " +
                       storageName(storage) + " {" + (interleave ? "interleave = " + std::to_string(interleave) + ", " : "") +
                       "sources = [";
    for (int64_t i = 0; i < parts; ++i) {
      text += std::string(i ? ", " : "") + "#lm.span<file = 0, offset = 0, bytes = " + std::to_string(bytes.size() / parts) +
              ", rows = " + std::to_string(count);
      if (!scales.empty())
        text += ", scales = <file = 1, offset = 0, count = " + std::to_string(scales.size() == 1 ? 1 : count) + ", storage = f32>";
      text += ">";
    }
    std::string form = rows ? "n16_" + storageName(storage) : "rows_f32";
    return text + "], layout = #lm.layout<" + form + ">, offset = 0 : i64}\n";
  }

private:
  /// Of even seeds one for each row, one of them 0 and one negative; else one for all.
  std::vector<float> randomScales(unsigned seed) const {
    if (storage != DType::E4M3)
      return {};
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> values(0.001f, 0.1f);
    std::vector<float> result(seed % 2 ? 1 : rows);
    for (float &scale : result)
      scale = values(random);
    if (result.size() > 3)
      result[1] = 0, result[2] = -result[2];
    return result;
  }

  std::vector<uint8_t> pack() const {
    PackSpec spec{.name = name, .storage = storage, .layout = layout(), .rows = uint64_t(std::max<int64_t>(rows, 1)),
                  .cols = uint64_t(cols), .vector = rows == 0};
    uint64_t count = rows ? rows : cols, parts = interleave ? 2 : 1;
    for (uint64_t i = 0; i < parts; ++i) {
      spec.sources.push_back({.file = 0, .offset = i * bytes.size() / parts, .rows = count / parts});
      if (scales.empty())
        continue;
      PackSource &source = spec.sources.back();
      source.scalesFile = 1;
      source.scalesCount = scales.size() == 1 ? 1 : source.rows;
      source.scalesOffset = scales.size() == 1 ? 0 : 4 * i * source.rows;
    }
    spec.interleave = interleave;
    std::vector<InputFile> files;
    files.push_back(InputFile::fromMemory("model", bytes));
    files.push_back(InputFile::fromMemory("scales", {reinterpret_cast<const char *>(scales.data()), 4 * scales.size()}));
    std::vector<uint8_t> result;
    packWeight(spec, files, [&](auto part) { result.insert(result.end(), part.begin(), part.end()); });
    return result;
  }
};

} // namespace llmc::test

#endif // LLMC_TEST_NUMERICS_WEIGHTS_H
