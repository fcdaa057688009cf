//===- SplitGGUFTest.cpp - models in several GGUF files -------------------===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <filesystem>

using namespace llmc;
using namespace llmc::test;
namespace fs = std::filesystem;

namespace {

std::string u16(uint16_t value) { return bytesOf(value); }

class SplitGGUF : public ::testing::Test {
protected:
  TempDir dir;
  std::vector<GGUFWriter> parts;
  size_t tensors = 0;

  /// Three parts as gguf-split --no-tensor-first-split writes them: the first has the keys alone.
  void SetUp() override {
    GGUFWriter whole = tinyGGUF();
    tensors = whole.tensors.size();
    parts.assign(3, GGUFWriter());
    parts[0].pairs = whole.pairs;
    for (size_t i = 0; i < tensors; ++i)
      parts[i < 8 ? 1 : 2].tensors.push_back(whole.tensors[i]);
    for (uint16_t i = 0; i < 3; ++i) {
      parts[i].raw("split.no", 2, u16(i));
      parts[i].raw("split.count", 2, u16(3));
      parts[i].raw("split.tensors.count", 5, bytesOf(static_cast<int32_t>(tensors)));
    }
  }

  static std::string nameOf(size_t part) { return "m-0000" + std::to_string(part + 1) + "-of-00003.gguf"; }
  std::string path(size_t part) const { return dir.file(nameOf(part)); }
  void write() {
    for (size_t i = 0; i < parts.size(); ++i)
      dir.write(nameOf(i), parts[i].build());
  }
  void refuse(const std::vector<std::string> &messageParts, size_t given = 0) {
    write();
    expectError(path(given), messageParts);
  }
};

TEST_F(SplitGGUF, AnyPartGivesTheModel) {
  write();
  for (size_t given = 0; given < 3; ++given) {
    ModelFacts facts = loadModelFacts(path(given));
    EXPECT_EQ(facts.files, (std::vector<std::string>{path(0), path(1), path(2)}));
    EXPECT_EQ(facts.name, "tiny");
    ASSERT_EQ(facts.tensors.size(), tensors);
    EXPECT_EQ(facts.tensors.front().file, 1u);
    EXPECT_EQ(facts.tensors.back().file, 2u);
    EXPECT_EQ(facts.tokenizer.tokens.size(), 9u);
  }
}

TEST_F(SplitGGUF, SpansAreThoseOfTheirFile) {
  // Each byte says which tensor it belongs to.
  for (GGUFWriter &part : parts)
    for (size_t i = 0; i < part.tensors.size(); ++i)
      part.tensors[i].data.assign(part.tensors[i].data.size(), static_cast<char>('a' + i));
  parts[2].u32("general.alignment", 64);
  parts[2].alignment = 64;
  write();
  ModelFacts facts = loadModelFacts(path(0));
  size_t index[3] = {};
  for (const TensorFact &tensor : facts.tensors) {
    std::string bytes = parts[tensor.file].build().substr(tensor.offset, tensor.bytes);
    EXPECT_EQ(bytes, std::string(tensor.bytes, static_cast<char>('a' + index[tensor.file]++))) << tensor.name;
  }
}

TEST_F(SplitGGUF, TensorsInTheFirstPart) {
  parts[0].tensors.swap(parts[1].tensors);
  write();
  EXPECT_EQ(loadModelFacts(path(0)).tensors.front().file, 0u);
}

TEST_F(SplitGGUF, RopeFactorsOfALaterPart) {
  std::string factors;
  for (int i = 0; i < 5; ++i)
    factors += bytesOf<float>(static_cast<float>(i + 1));
  parts[2].tensors.push_back({"rope_freqs.weight", {5}, 0, factors});
  for (GGUFWriter &part : parts)
    part.raw("split.tensors.count", 5, bytesOf(static_cast<int32_t>(tensors + 1)));
  write();
  EXPECT_EQ(loadModelFacts(path(0)).rope.freqFactors, (std::vector<float>{1, 2, 3, 4, 5}));
}

TEST_F(SplitGGUF, LinksAsInTheHubsCache) {
  write();
  for (size_t i = 0; i < 3; ++i) {
    fs::create_directories(dir.file("blobs"));
    fs::create_directories(dir.file("snapshot"));
    fs::rename(path(i), dir.file("blobs/" + std::to_string(i)));
    fs::create_symlink("../blobs/" + std::to_string(i), dir.file("snapshot/" + nameOf(i)));
  }
  EXPECT_EQ(loadModelFacts(dir.file("snapshot/" + nameOf(0))).tensors.size(), tensors);
}

TEST_F(SplitGGUF, AbsentPartsAreNamed) {
  write();
  fs::remove(path(1));
  expectError(path(0), {nameOf(1), "cannot open", "part 2 of 3", nameOf(0)});
  expectError(path(2), {nameOf(1), "part 2 of 3", nameOf(2)});
  write();
  fs::remove(path(0));
  expectError(path(2), {nameOf(0), "part 1 of 3"});
  fs::create_directory(path(0));
  expectError(path(2), {nameOf(0), "got a folder"});
}

TEST_F(SplitGGUF, CutAndDamagedPartsAreNamed) {
  write();
  std::string good = parts[2].build();
  dir.write(nameOf(2), good.substr(0, good.size() - 1));
  expectError(path(0), {nameOf(2), "tensor \"output_norm.weight\"", "end of the file", "part 3 of 3"});
  dir.write(nameOf(2), "");
  expectError(path(0), {nameOf(2), "magic"});
}

TEST_F(SplitGGUF, OtherFileNames) {
  write();
  for (const char *name : {"other.gguf", "m-00002-of-00003.gguf.part", "m-00003-of-00003.gguf", "m-00002-of-00004.gguf",
                           "m-2-of-3.gguf"}) {
    dir.write(name, parts[1].build());
    expectError(dir.file(name), {"split.no", "\"-00002-of-00003.gguf\""});
  }
}

TEST_F(SplitGGUF, NumbersThatDoNotFit) {
  parts[1].raw("split.no", 2, u16(2));
  refuse({nameOf(1), "split.no", "expected 1 in part 2 of 3, got 2"});
  parts[1].raw("split.no", 2, u16(1));
  parts[1].raw("split.count", 2, u16(4));
  refuse({nameOf(1), "split.count", "expected 3", "got 4"});
  parts[1].remove("split.count");
  refuse({nameOf(1), "split.count", "got 1"});
  SetUp();
  parts[0].raw("split.no", 2, u16(3));
  refuse({nameOf(0), "split.no", "from 0 to 2, got 3"});
  parts[0].string("split.no", "0");
  refuse({nameOf(0), "split.no", "expected an integer"});
  for (uint32_t bad : {0u, 100000u, 0xffffffffu}) {
    SetUp();
    parts[0].u32("split.count", bad);
    refuse({nameOf(0), "split.count", "from 1 to 99999"});
  }
}

TEST_F(SplitGGUF, CountOfTensors) {
  parts[2].tensors.pop_back();
  refuse({"split.tensors.count", "expected 20 tensors in the 3 parts, got 19"});
  SetUp();
  parts[2].raw("split.tensors.count", 5, bytesOf<int32_t>(7));
  refuse({nameOf(2), "split.tensors.count", nameOf(0)});
  SetUp();
  for (GGUFWriter &part : parts)
    part.remove("split.tensors.count");
  write();
  EXPECT_EQ(loadModelFacts(path(0)).tensors.size(), tensors);
}

TEST_F(SplitGGUF, TensorsInTwoParts) {
  parts[2].tensors.push_back(parts[1].tensors[0]);
  refuse({nameOf(2), "\"token_embd.weight\"", "once", nameOf(1)});
}

TEST_F(SplitGGUF, KeysOfLaterParts) {
  parts[1].string("general.architecture", "llama"); // says the same
  write();
  EXPECT_EQ(loadModelFacts(path(0)).architecture, "llama");
  parts[1].u32("llama.context_length", 64);
  refuse({nameOf(1), "llama.context_length", nameOf(0)});
  parts[1].remove("llama.context_length");
  parts[1].u32("llama.new_key", 64);
  refuse({nameOf(1), "llama.new_key", "first part"}, 1);
  // The first part's keys do not stand in for the model's when they are in a later one.
  SetUp();
  std::swap(parts[0].pairs, parts[1].pairs);
  parts[0].raw("split.no", 2, u16(0));
  parts[1].raw("split.no", 2, u16(1));
  refuse({"first part"});
}

TEST_F(SplitGGUF, OnePart) {
  GGUFWriter whole = tinyGGUF();
  whole.raw("split.count", 2, u16(1));
  whole.raw("split.no", 2, u16(0));
  EXPECT_EQ(loadModelFacts(dir.write("any-name.gguf", whole.build())).files.size(), 1u);
}

TEST_F(SplitGGUF, MissingTensorsNameAllParts) {
  parts[2].tensors.pop_back();
  for (GGUFWriter &part : parts)
    part.raw("split.tensors.count", 5, bytesOf(static_cast<int32_t>(tensors - 1)));
  refuse({nameOf(0) + " and the other 2 parts", "\"output_norm.weight\"", "got none"});
}

} // namespace
