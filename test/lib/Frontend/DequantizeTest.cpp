//===- DequantizeTest.cpp - blocks of files against gguf's own values -----===//
#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Support/Float.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>

using namespace llmc;

namespace {

struct Golden {
  DType type;
  std::string block, values; // hexadecimal; values: u32 of each f32
};
const Golden kGoldens[] = {
#include "BlockGoldens.inc" // made by make-block-goldens.py
};

template <class T> std::vector<T> fromHex(const std::string &text, size_t digits) {
  std::vector<T> numbers;
  for (size_t i = 0; i < text.size(); i += digits)
    numbers.push_back(static_cast<T>(std::stoul(text.substr(i, digits), nullptr, 16)));
  return numbers;
}

TEST(Dequantize, EveryBlockTypeAsGGUFHasIt) {
  std::set<DType> seen;
  for (const Golden &golden : kGoldens) {
    SCOPED_TRACE(toString(golden.type));
    seen.insert(golden.type);
    const auto block = fromHex<uint8_t>("00" + golden.block, 2); // any alignment
    const auto expected = fromHex<uint32_t>(golden.values, 8);
    ASSERT_EQ(block.size() - 1, storageBytes(golden.type, expected.size()));
    std::vector<float> values(expected.size());
    dequantizeRow(golden.type, block.data() + 1, int64_t(values.size()), values.data());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), expected[i]) << i << ": " << values[i];
  }
  for (DType type : kDTypes)
    EXPECT_EQ(seen.count(type), blockSize(type) == 1 ? 0u : 1u) << toString(type);
}

// Codes and integers reach both ends of their ranges, and no other bit leaks in.
TEST(CodedBlock, AllOnesAndZeros) {
  for (DType type : kDTypes)
    withBlockType(type, [&](auto constant) {
      SCOPED_TRACE(toString(type));
      const CodedForm form = codedForm(type);
      EXPECT_EQ(blockValues(form), blockSize(type));
      for (uint8_t byte : {0, 255}) {
        const std::vector<uint8_t> bytes(blockBytes(type), byte);
        CodedBlock block;
        readBlock<constant.value>(bytes.data(), block);
        for (unsigned i = 0; i < blockValues(form); ++i)
          ASSERT_EQ(block.codes[i], type == DType::Q8_0 ? byte ^ 128 : byte ? form.maxCode() : 0);
        for (unsigned i = 0; form.scaleBits && i < form.fields(); ++i)
          ASSERT_EQ(block.fields[i], byte ? (1u << form.scaleBits) - 1 : 0);
      }
    });
}

// Scales that no quantiser writes give no finite value, and nothing worse.
TEST(Dequantize, ScalesThatAreNotFinite) {
  for (DType type : kDTypes) {
    if (blockSize(type) == 1)
      continue;
    const std::vector<uint8_t> bytes(blockBytes(type), 255); // every f16 is a NaN
    std::vector<float> values(blockSize(type));
    dequantizeRow(type, bytes.data(), int64_t(values.size()), values.data());
    for (float value : values)
      ASSERT_TRUE(std::isnan(value)) << toString(type);
  }
}

TEST(Dequantize, BytesPerWeight) {
  const std::pair<DType, double> bits[] = {{DType::Q5_0, 5.5},    {DType::Q5_1, 6},    {DType::Q2_K, 2.625},
                                           {DType::Q3_K, 3.4375}, {DType::Q4_K, 4.5},  {DType::Q5_K, 5.5},
                                           {DType::Q6_K, 6.5625}, {DType::IQ4_NL, 4.5}, {DType::IQ4_XS, 4.25}};
  for (auto [type, expected] : bits)
    EXPECT_EQ(double(storageBytes(type, 1024)) * 8 / 1024, expected) << toString(type);
}

TEST(DType, StorageNames) {
  EXPECT_EQ(storageName(DType::IQ4_XS), "iq4_xs");
  for (DType type : kDTypes)
    EXPECT_EQ(storageOf(storageName(type)), type);
  for (const char *name : {"", "Q4_K", "q4_k ", "q8_k"})
    EXPECT_FALSE(storageOf(name)) << name;
}

} // namespace
