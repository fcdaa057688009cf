//===- ConfigTest.cpp - windows, norms and heads of config.json and GGUF --===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <cmath>

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
  ModelFacts from1 = loadModelFacts(with(use + R"("max_window_layers": 1)"));
  EXPECT_EQ(from1.windowLayers, (std::vector<bool>{false, true}));
  EXPECT_EQ(from1.windowOf(0), 0);
  EXPECT_EQ(from1.windowOf(1), 4);
  expectError(with(use + R"("max_window_layers": -1)"), {"config.json: max_window_layers", "got -1"});
  EXPECT_EQ(loadModelFacts(with(use + R"("layer_types": ["sliding_attention", "full_attention"])")).windowLayers,
            (std::vector<bool>{true, false}));
  expectError(with(use + R"("layer_types": ["sliding_attention"])"), {"layer_types", "each of the 2 layers"});
  expectError(with(use + R"("layer_types": ["linear_attention", "full_attention"])"), {"layer_types[0]", "\"linear_attention\""});
  expectError(with(use + R"("layer_types": [1, 2])"), {"layer_types[0]", "a string"});
  for (const char *bad : badWindows)
    expectError(with(std::string(R"("use_sliding_window": true, "sliding_window": )") + bad), {"config.json: sliding_window"});
}

/// The facts of a config.json without weights.
ModelFacts factsOf(const TempDir &dir, const std::string &config) {
  dir.write("config.json", config);
  LoadOptions options;
  options.weightsOptional = true;
  return loadModelFacts(dir.path, options);
}

TEST_F(Config, Gemma2) {
  auto config = [](const std::string &more) {
    return R"({"architectures": ["Gemma2ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
      "intermediate_size": 24, "vocab_size": 9)" + more + "}";
  };
  ModelFacts facts = factsOf(dir, config("")); // all else as Gemma2Config has it
  EXPECT_EQ(facts.kvHeads, 4);
  EXPECT_EQ(facts.headDim, 256);
  EXPECT_EQ(facts.maxContext, 8192);
  EXPECT_EQ(facts.slidingWindow, 4096);
  EXPECT_EQ(facts.windowLayers, (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(facts.normAddsOne && facts.postNorms && facts.geluGate && facts.tiedHead);
  EXPECT_EQ(facts.embeddingScale, 8.0);
  EXPECT_EQ(facts.attentionScale, 1.0 / 16);
  EXPECT_EQ(facts.attentionSoftCap, 50.0);
  EXPECT_EQ(facts.finalSoftCap, 30.0);
  EXPECT_EQ(facts.normEps, 1e-6);
  for (const char *name : {"blk.0.post_attention_norm.weight", "blk.2.post_ffw_norm.weight", "blk.1.ffn_norm.weight"})
    EXPECT_TRUE(facts.find(name)) << name;
  EXPECT_EQ(facts.find("blk.1.ffn_norm.weight")->sourceName, "model.layers.1.pre_feedforward_layernorm.weight");
  EXPECT_EQ(facts.find("blk.1.post_attention_norm.weight")->sourceName, "model.layers.1.post_attention_layernorm.weight");

  facts = factsOf(dir, config(R"(, "attn_logit_softcapping": null, "final_logit_softcapping": 7.5, "sliding_window": null,
    "query_pre_attn_scalar": 144, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh")"));
  EXPECT_EQ(facts.attentionSoftCap, 0.0);
  EXPECT_EQ(facts.finalSoftCap, 7.5);
  EXPECT_EQ(facts.slidingWindow, 0);
  EXPECT_TRUE(facts.windowLayers.empty());
  EXPECT_EQ(facts.attentionScale, 1.0 / 12);

  auto refused = [&](const std::string &more, const std::vector<std::string> &parts) {
    dir.write("config.json", config(more));
    LoadOptions options;
    options.weightsOptional = true;
    expectError(dir.path, parts, options);
  };
  for (const char *bad : {"0", "-1", "1e39", "1e-50", "\"50\"", "true"})
    for (const char *key : {"attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar"})
      refused(", \"" + std::string(key) + "\": " + bad, {std::string("config.json: ") + key, "expected"});
  refused(R"(, "hidden_activation": "gelu")", {"hidden_activation", "\"gelu_pytorch_tanh\""});
  refused(R"(, "use_bidirectional_attention": true)", {"use_bidirectional_attention", "false"});
  refused(R"(, "layer_types": ["full_attention"])", {"layer_types", "each of the 3 layers"});
}

TEST_F(Config, GraniteSWA) {
  auto config = [](const std::string &more) {
    return R"({"architectures": ["GraniteSWAForCausalLM"], "hidden_size": 64, "num_hidden_layers": 5, "num_attention_heads": 4,
      "intermediate_size": 24, "vocab_size": 9)" + more + "}";
  };
  ModelFacts facts = factsOf(dir, config(""));
  EXPECT_EQ(facts.headDim, 16);
  EXPECT_EQ(facts.slidingWindow, 128);
  EXPECT_EQ(facts.windowLayers, (std::vector<bool>{false, true, true, true, false}));
  EXPECT_TRUE(facts.attentionSinks && facts.tiedHead);
  EXPECT_EQ(facts.attentionScale, 1.0);
  EXPECT_TRUE(facts.layerThetas.empty());
  EXPECT_EQ(facts.find("blk.4.attn_sinks.weight")->sourceName, "model.layers.4.self_attn.sinks");
  facts = factsOf(dir, config(R"(, "embedding_multiplier": 12, "residual_multiplier": 0.22, "attention_multiplier": 0.0156,
    "logits_scaling": 8, "layer_rope_theta": [0, 1e4, 1e4, 5e5, 0])"));
  EXPECT_EQ(facts.embeddingScale, 12.0);
  EXPECT_EQ(facts.residualScale, 0.22);
  EXPECT_EQ(facts.attentionScale, 0.0156);
  EXPECT_EQ(facts.logitsScale, 0.125);
  EXPECT_EQ(facts.layerThetas, (std::vector<double>{0, 1e4, 1e4, 5e5, 0}));
  auto refused = [&](const std::string &more, const std::vector<std::string> &parts) {
    dir.write("config.json", config(more));
    LoadOptions options;
    options.weightsOptional = true;
    expectError(dir.path, parts, options);
  };
  refused(R"(, "layer_rope_theta": [1])", {"layer_rope_theta", "each of the 5 layers"});
  refused(R"(, "layer_rope_theta": [1, 2, 3, 4, -1])", {"layer_rope_theta[4]", "got -1"});
  refused(R"(, "logits_scaling": 0)", {"logits_scaling", "positive"});
  refused(R"(, "mlp_bias": true)", {"mlp_bias", "false"});
  refused(R"(, "hidden_act": "gelu")", {"hidden_act", "silu"});
}

TEST_F(Config, GGUFGemma2) {
  model.architecture = "gemma2";
  auto load = [&](const std::function<void(GGUFWriter &)> &change) {
    return loadModelFacts(gguf([&](GGUFWriter &w) {
      for (int64_t layer = 0; layer < model.layers; ++layer)
        for (const char *name : {".post_attention_norm.weight", ".post_ffw_norm.weight"}) {
          GGUFWriter::Tensor norm = w.tensor("blk.0.ffn_norm.weight");
          norm.name = "blk." + std::to_string(layer) + name;
          w.tensors.push_back(norm);
        }
      change(w);
    }));
  };
  ModelFacts facts = load([](GGUFWriter &w) { w.u32("gemma2.attention.sliding_window", 24); });
  EXPECT_EQ(facts.windowLayers, (std::vector<bool>{true, false}));
  EXPECT_EQ(facts.slidingWindow, 24);
  EXPECT_FALSE(facts.normAddsOne); // the file has the sum
  EXPECT_TRUE(facts.postNorms && facts.geluGate);
  EXPECT_FALSE(facts.rope.interleavedRows);
  EXPECT_EQ(facts.attentionSoftCap, 50.0);
  EXPECT_EQ(facts.finalSoftCap, 30.0);
  EXPECT_EQ(facts.attentionScale, 0.0); // by the head's size
  EXPECT_EQ(facts.embeddingScale, std::sqrt(40.0));
  facts = load([](GGUFWriter &w) { w.f32("gemma2.attn_logit_softcapping", 20), w.f32("gemma2.final_logit_softcapping", 10); });
  EXPECT_EQ(facts.slidingWindow, 0); // 4096, more than the context
  EXPECT_TRUE(facts.windowLayers.empty());
  EXPECT_EQ(facts.attentionSoftCap, 20.0);
  EXPECT_EQ(facts.finalSoftCap, 10.0);
  expectError(gguf([](GGUFWriter &w) { w.f32("gemma2.attn_logit_softcapping", 0); }), {"gemma2.attn_logit_softcapping", "positive"});
  expectError(gguf([](GGUFWriter &) {}), {"blk.0.post_attention_norm.weight", "got none"});
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
