//===- RopeTest.cpp - frequency tables and where configs keep them --------===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

RopeFacts llama3(int64_t dimensions, double factor) {
  RopeFacts rope;
  rope.theta = 500000;
  rope.rotaryDim = dimensions;
  rope.scaling = RopeFacts::Scaling::Llama3;
  rope.factor = factor;
  rope.lowFreqFactor = 1;
  rope.highFreqFactor = 4;
  rope.originalContext = 8192;
  return rope;
}

void expectNear(float actual, double expected) { EXPECT_NEAR(actual / expected, 1.0, 1e-6); }

TEST(Rope, Default) {
  RopeFacts rope;
  rope.rotaryDim = 64;
  std::vector<float> table = rope.inverseFrequencies();
  ASSERT_EQ(table.size(), 32u);
  EXPECT_EQ(table[0], 1.0f);
  for (int i = 0; i < 32; ++i)
    expectNear(table[i], std::pow(10000.0, -2.0 * i / 64));
}

TEST(Rope, Llama3Dimension64) {
  RopeFacts plain;
  plain.theta = 500000;
  plain.rotaryDim = 64;
  std::vector<float> before = plain.inverseFrequencies(), after = llama3(64, 32).inverseFrequencies();
  for (int i = 0; i <= 14; ++i)
    EXPECT_EQ(after[i], before[i]) << i;
  expectNear(after[15], 1.290547928e-3);
  expectNear(after[16], 4.29556797e-4);
  expectNear(after[17], 9.7082878e-5);
  expectNear(before[15] / after[15], 1.651329);
  expectNear(before[16] / after[16], 3.292262);
  expectNear(before[17] / after[17], 9.666729);
  for (int i = 18; i < 32; ++i)
    EXPECT_EQ(after[i], before[i] / 32) << i;
  expectNear(after[31], 9.41830673e-8);
}

TEST(Rope, Llama3Dimension128) {
  RopeFacts plain;
  plain.theta = 500000;
  plain.rotaryDim = 128;
  std::vector<float> before = plain.inverseFrequencies(), after = llama3(128, 8).inverseFrequencies();
  for (int i = 0; i < 64; ++i) {
    if (i <= 28)
      EXPECT_EQ(after[i], before[i]) << i;
    else if (i >= 35)
      EXPECT_EQ(after[i], before[i] / 8) << i;
    else
      EXPECT_TRUE(after[i] < before[i] && after[i] > before[i] / 8) << i;
  }
}

TEST(Rope, LinearFourMakesPositionEightTwo) {
  RopeFacts plain, linear;
  plain.rotaryDim = linear.rotaryDim = 64;
  linear.scaling = RopeFacts::Scaling::Linear;
  linear.factor = 4;
  std::vector<float> before = plain.inverseFrequencies(), after = linear.inverseFrequencies();
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(8 * after[i], 2 * before[i]);
}

// A folder of head dimension 64 whose config has `more`.
std::vector<float> tableOf(const std::string &more) {
  TempDir dir;
  Tiny model;
  model.headDim = 64;
  return loadModelFacts(tinyFolder(dir, model, more)).rope.inverseFrequencies();
}

const char scalingBody[] = R"("factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 8192)";

TEST(Rope, ConfigSpellings) {
  std::vector<float> expected = llama3(64, 32).inverseFrequencies();
  std::string body = scalingBody;
  EXPECT_EQ(tableOf(R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", )" + body + "}"),
            expected);
  EXPECT_EQ(tableOf(R"("rope_theta": 500000.0, "rope_scaling": {"type": "llama3", )" + body + "}"), expected);
  EXPECT_EQ(tableOf(R"("rope_parameters": {"rope_theta": 500000, "rope_type": "llama3", )" + body + "}"),
            expected);
}

TEST(Rope, GGUFFactors) {
  Tiny model;
  model.headDim = 64;
  GGUFWriter writer = tinyGGUF(model);
  writer.f32("llama.rope.freq_base", 500000);
  RopeFacts plain;
  plain.theta = 500000;
  plain.rotaryDim = 64;
  std::vector<float> before = plain.inverseFrequencies(), expected = llama3(64, 32).inverseFrequencies();
  std::string data;
  for (int i = 0; i < 32; ++i)
    data += bytesOf<float>(before[i] / expected[i]);
  writer.tensors.push_back({"rope_freqs.weight", {32}, 0, data});
  TempDir dir;
  ModelFacts facts = loadModelFacts(dir.write("m.gguf", writer.build()));
  EXPECT_EQ(facts.find("rope_freqs.weight"), nullptr);
  EXPECT_TRUE(facts.warnings.empty());
  std::vector<float> table = facts.rope.inverseFrequencies();
  for (int i = 0; i < 32; ++i)
    expectNear(table[i], expected[i]);

  GGUFWriter wrong = writer;
  wrong.tensors.back() = {"rope_freqs.weight", {16}, 0, std::string(64, '\0')};
  expectError(dir.write("m.gguf", wrong.build()), {"rope_freqs.weight", "[32]", "[16]"});
  wrong.tensors.back() = {"rope_freqs.weight", {32}, 0, std::string(128, '\0')};
  expectError(dir.write("m.gguf", wrong.build()), {"frequency factor"});
  wrong.tensors.back() = {"rope_freqs.weight", {32}, 1, std::string(64, '\0')};
  expectError(dir.write("m.gguf", wrong.build()), {"rope_freqs.weight", "F16"});
}

TEST(Rope, GGUFScaling) {
  TempDir dir;
  Tiny model;
  auto load = [&](auto change) {
    GGUFWriter writer = tinyGGUF(model);
    change(writer);
    return dir.write("m.gguf", writer.build());
  };
  RopeFacts rope = loadModelFacts(load([](auto &w) {
                     w.string("llama.rope.scaling.type", "linear");
                     w.f32("llama.rope.scaling.factor", 4);
                   })).rope;
  EXPECT_EQ(rope.scaling, RopeFacts::Scaling::Linear);
  EXPECT_EQ(rope.factor, 4);
  rope = loadModelFacts(load([](auto &w) { w.f32("llama.rope.scale_linear", 2); })).rope;
  EXPECT_EQ(rope.scaling, RopeFacts::Scaling::Linear);
  rope = loadModelFacts(load([](auto &w) {
           w.string("llama.rope.scaling.type", "none");
           w.f32("llama.rope.scaling.factor", 4);
         })).rope;
  EXPECT_EQ(rope.scaling, RopeFacts::Scaling::None);
  expectError(load([](auto &w) { w.string("llama.rope.scaling.type", "yarn"); }),
              {"rope.scaling.type", "\"yarn\""});
  for (float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (std::string key : {"llama.rope.scaling.factor", "llama.rope.scale_linear", "llama.rope.freq_base"})
      expectError(load([&](auto &w) { w.f32(key, bad); }), {"key \"" + key + "\" at byte", "positive finite"});
  expectError(load([](auto &w) { w.raw("llama.rope.freq_base", 12, bytesOf(1e300)); }), {"llama.rope.freq_base"}); // not in f32
}

TEST(Rope, Theta) {
  RopeFacts rope;
  rope.rotaryDim = 64;
  EXPECT_EQ(tableOf(""), rope.inverseFrequencies());
  EXPECT_EQ(tableOf(R"("rope_scaling": null)"), rope.inverseFrequencies());
  rope.theta = 1000000;
  std::vector<float> million = rope.inverseFrequencies();
  EXPECT_EQ(tableOf(R"("rope_theta": 1000000.0)"), million);
  EXPECT_EQ(tableOf(R"("rope_theta": 1000000)"), million);
  EXPECT_EQ(tableOf(R"("rope_theta": 1000000.0, "rope_scaling": null)"), million);
  EXPECT_EQ(tableOf(R"("rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"})"), million);
  EXPECT_EQ(tableOf(R"("rope_parameters": {"rope_theta": 1000000.0})"), million);
  EXPECT_EQ(tableOf(R"("rope_theta": 1000000.0, "rope_parameters": {"rope_type": "default"})"), million);
  EXPECT_EQ(
      tableOf(R"("rope_parameters": {"full_attention": {"rope_theta": 1000000.0, "rope_type": "default"}})"),
      million);
}

TEST(Rope, Linear) {
  RopeFacts rope;
  rope.rotaryDim = 64;
  rope.scaling = RopeFacts::Scaling::Linear;
  rope.factor = 4;
  EXPECT_EQ(tableOf(R"("rope_scaling": {"type": "linear", "factor": 4.0})"), rope.inverseFrequencies());
  EXPECT_EQ(tableOf(R"("rope_parameters": {"rope_type": "linear", "factor": 4})"), rope.inverseFrequencies());
}

TEST(Rope, Refused) {
  auto refuse = [](const std::string &more, const std::vector<std::string> &parts) {
    TempDir dir;
    Tiny model;
    model.headDim = 64;
    expectError(tinyFolder(dir, model, more), parts);
  };
  refuse(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0})",
         {"config.json: rope_scaling.rope_type", "\"yarn\""});
  refuse(R"("rope_scaling": {"type": "nonsense", "factor": 4.0})", {"rope_scaling.type", "\"nonsense\""});
  refuse(R"("rope_scaling": {"type": "linear", "factor": 0})", {"rope_scaling.factor", "positive", "got 0"});
  refuse(R"("rope_scaling": {"type": "linear", "factor": -2.0})", {"rope_scaling.factor", "got -2"});
  refuse(R"("rope_scaling": {"type": "linear"})", {"rope_scaling", "\"factor\""});
  refuse(R"("rope_scaling": {"factor": 4.0})", {"rope_scaling", "rope_type"});
  refuse(R"("rope_scaling": {"type": "linear", "factor": "4"})", {"rope_scaling.factor", "number"});
  refuse(R"("rope_scaling": 4.0)", {"rope_scaling", "an object"});
  refuse(R"("rope_theta": 0)", {"rope_theta", "positive"});
  refuse(R"("rope_theta": 1e300)", {"theta"});
  refuse(R"("rope_parameters": {"rope_type": "llama3", "factor": 8.0})",
         {"rope_parameters", "low_freq_factor"});
  refuse(
      R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4, "high_freq_factor": 4,
             "original_max_position_embeddings": 8192})",
      {"high_freq_factor"});
  // Gemma 3's two tables: one model of this family cannot have both.
  refuse(R"("rope_parameters": {"sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
             "full_attention": {"rope_theta": 1000000.0, "rope_type": "linear", "factor": 8.0}})",
         {"rope_parameters.full_attention", "rope_parameters.sliding_attention"});
  refuse(R"("rope_parameters": {"rope_theta": 5.0}, "rope_scaling": {"rope_theta": 6.0})",
         {"rope_scaling", "rope_parameters"});
}

TEST(Rope, PartialRotary) {
  TempDir dir;
  Tiny model;
  model.headDim = 32;
  EXPECT_EQ(loadModelFacts(tinyFolder(dir, model, R"("partial_rotary_factor": 0.5)")).rope.rotaryDim, 16);
  EXPECT_EQ(loadModelFacts(tinyFolder(dir, model, R"("rope_parameters": {"partial_rotary_factor": 0.5})"))
                .rope.rotaryDim,
            16);
  expectError(tinyFolder(dir, model, R"("partial_rotary_factor": 2.0)"), {"partial_rotary_factor"});
  expectError(tinyFolder(dir, model, R"("partial_rotary_factor": 0.1)"), {"rotated dimensions"});
}

} // namespace
