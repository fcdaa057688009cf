//===- ConfigTest.cpp - windows, norms and heads of config.json and GGUF --===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

using namespace llmc;
using namespace llmc::test;

namespace {

class Config : public ::testing::Test {
protected:
  TempDir dir;
  Tiny model;

  std::string with(const std::string &more) { return tinyFolder(dir, model, more); }
  std::string gguf(const std::function<void(GGUFWriter &)> &change) {
    GGUFWriter writer = tinyGGUF(model);
    change(writer);
    return dir.write("m.gguf", writer.build());
  }
  void beQwen2() {
    model.architecture = "qwen2";
    model.bias = true;
  }
};

const char *const badWindows[] = {"-1", "2147483649", "1e30", "4.5", "\"4\"", "[4]", "true"};

TEST_F(Config, MistralWindow) {
  model.architecture = "mistral";
  for (auto [value, expected] :
       {std::pair("0", 0), {"null", 0}, {"1", 1}, {"4", 4}, {"4.0", 4}, {"127", 127}, {"128", 0}, {"4096", 0}})
    EXPECT_EQ(loadModelFacts(with(std::string("\"sliding_window\": ") + value)).slidingWindow, expected) << value;
  EXPECT_EQ(loadModelFacts(with("")).slidingWindow, 0);
  for (const char *bad : badWindows)
    expectError(with(std::string("\"sliding_window\": ") + bad), {"config.json: sliding_window", "expected"});
}

TEST_F(Config, Qwen2Window) {
  beQwen2();
  const std::string use = R"("use_sliding_window": true, "sliding_window": 4, )";
  EXPECT_EQ(loadModelFacts(with(R"("sliding_window": 4)")).slidingWindow, 0);
  EXPECT_EQ(loadModelFacts(with(R"("use_sliding_window": true, "sliding_window": 4)")).slidingWindow, 0); // from layer 28 on
  EXPECT_EQ(loadModelFacts(with(use + R"("max_window_layers": 2)")).slidingWindow, 0);
  EXPECT_EQ(loadModelFacts(with(use + R"("max_window_layers": 0)")).slidingWindow, 4);
  EXPECT_EQ(loadModelFacts(with(use + R"("layer_types": ["sliding_attention", "sliding_attention"])")).slidingWindow, 4);
  EXPECT_EQ(loadModelFacts(with(use + R"("layer_types": ["full_attention", "full_attention"], "max_window_layers": 0)")).slidingWindow, 0);
  expectError(with(use + R"("max_window_layers": 1)"), {"config.json: use_sliding_window", "from layer 1 on"});
  expectError(with(use + R"("max_window_layers": -1)"), {"config.json: max_window_layers", "got -1"});
  expectError(with(use + R"("layer_types": ["full_attention", "sliding_attention"])"), {"layer_types[1]", "some layers only"});
  expectError(with(use + R"("layer_types": ["sliding_attention", "full_attention"])"), {"layer_types[1]", "some layers only"});
  expectError(with(use + R"("layer_types": ["sliding_attention"])"), {"layer_types", "each of the 2 layers"});
  expectError(with(use + R"("layer_types": ["linear_attention", "full_attention"])"), {"layer_types[0]", "\"linear_attention\""});
  expectError(with(use + R"("layer_types": [1, 2])"), {"layer_types[0]", "a string"});
  for (const char *bad : badWindows)
    expectError(with(std::string(R"("use_sliding_window": true, "sliding_window": )") + bad), {"config.json: sliding_window"});
}

TEST_F(Config, GGUFWindow) {
  auto window = [&](int64_t value) {
    return gguf([&](GGUFWriter &w) { w.raw("llama.attention.sliding_window", 11, bytesOf(value)); });
  };
  for (auto [value, expected] : {std::pair(0, 0), {1, 1}, {4, 4}, {127, 127}, {128, 0}, {1 << 20, 0}})
    EXPECT_EQ(loadModelFacts(window(value)).slidingWindow, expected) << value;
  for (int64_t bad : {int64_t(-1), (int64_t(1) << 31) + 1, INT64_MAX, INT64_MIN})
    expectError(window(bad), {"llama.attention.sliding_window", "got " + std::to_string(bad)});
  expectError(gguf([](GGUFWriter &w) { w.i32s("llama.attention.sliding_window", {4, 0}); }), {"sliding_window", "array of i32"});
}

TEST_F(Config, NormEpsilon) {
  for (const char *bad : {"0", "-1e-5", "1", "1e30", "\"1e-5\"", "null1"})
    expectError(with(std::string("\"rms_norm_eps\": ") + bad), {"config.json"});
  expectError(with("\"rms_norm_eps\": 0"), {"config.json: rms_norm_eps", "got 0"});
  expectError(with("\"rms_norm_eps\": -1e-5"), {"config.json: rms_norm_eps"});
  EXPECT_EQ(loadModelFacts(with("\"rms_norm_eps\": 1e-5")).normEps, 1e-5);
  for (float bad : {0.0f, -1e-5f, 1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    expectError(gguf([&](GGUFWriter &w) { w.f32("llama.attention.layer_norm_rms_epsilon", bad); }),
                {"llama.attention.layer_norm_rms_epsilon", "above 0 and below 1"});
}

TEST_F(Config, HeadsThatDoNotDivide) {
  expectError(gguf([](GGUFWriter &w) { w.u32("llama.attention.head_count_kv", 3); }),
              {"llama.attention.head_count_kv", "divide the 4 attention heads, got 3"});
  std::string config = tinyConfig();
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string text = config;
    with("");
    dir.write("config.json", text.replace(text.find(from), from.size(), to));
    return dir.path;
  };
  expectError(replaced("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"), {"config.json: num_key_value_heads", "got 3"});
  expectError(replaced("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 8"), {"config.json: num_key_value_heads", "got 8"});
  // Absent: this family's default, which the message says.
  beQwen2();
  config = tinyConfig(model);
  expectError(replaced("\"num_key_value_heads\": 2,\n", ""), {"num_attention_heads", "got 32, the default"});
}

TEST_F(Config, ValueLengthOfItsOwn) {
  model.headDim = 32;
  model.hidden = 64;
  auto lengths = [&](uint32_t key, uint32_t value) {
    return gguf([&](GGUFWriter &w) {
      w.u32("llama.attention.key_length", key);
      w.u32("llama.attention.value_length", value);
    });
  };
  EXPECT_EQ(loadModelFacts(lengths(32, 32)).headDim, 32);
  expectError(lengths(32, 16), {"llama.attention.value_length", "the key length 32, got 16"});
  expectError(lengths(0, 0), {"llama.attention.key_length", "got 0"});
  expectError(lengths(32, 0), {"llama.attention.value_length", "got 0"});
}

} // namespace
