//===- QuantizationTest.cpp - folders of fp8 weights ----------------------===//
#include "TestModels.h"
#include "llmc/Frontend/Inspect.h"
#include "llmc/Support/Error.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::test;

namespace {

const std::string kWeights = R"({"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true, "dynamic": false,
    "group_size": null, "block_structure": null, "actorder": null, "observer": "minmax", "observer_kwargs": {}})";
const std::string kActivations = R"({"num_bits": 8, "type": "float", "strategy": "token", "symmetric": true, "dynamic": true})";

std::string compressedTensors(const std::string &weights, const std::string &activations, const std::string &more = "") {
  return R"("quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
    "kv_cache_scheme": null, "quantization_status": "compressed", "sparsity_config": {}, "transform_config": {}, )" + more +
         R"("config_groups": {"group_0": {"targets": ["Linear"], "output_activations": null, "weights": )" + weights +
         R"(, "input_activations": )" + activations + "}}}";
}
const std::string kFbgemm =
    R"("quantization_config": {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]})";
const std::string kFp8 = R"("quantization_config": {"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]})";

/// The layers' matrices as F8_E4M3, each with a tensor of scales behind it.
std::vector<StoredTensor> quantised(const Tiny &model, bool ofRows, const std::string &suffix = "_scale", const std::string &type = "F32") {
  std::vector<StoredTensor> out;
  for (StoredTensor tensor : tinyTensors(model)) {
    bool matrix = tensor.shape.size() == 2 && tensor.name.starts_with("model.layers.");
    if (matrix)
      tensor.dtype = "F8_E4M3";
    out.push_back(tensor);
    if (matrix)
      out.push_back({tensor.name + suffix, type, ofRows ? std::vector<int64_t>{tensor.shape[0], 1} : std::vector<int64_t>{}});
  }
  return out;
}

struct Fp8Folder {
  TempDir dir;
  Tiny model;
  std::string write(const std::string &config, const std::vector<StoredTensor> &tensors) {
    tinyFolder(dir, model, config);
    dir.write("model.safetensors", safetensors(tensors));
    return dir.path;
  }
};

TEST(Quantization, ScalesOfRowsAndOfTensors) {
  Fp8Folder folder;
  for (bool ofRows : {true, false})
    for (const std::string &config : {compressedTensors(kWeights, kActivations), compressedTensors(kWeights, "null"), kFbgemm, kFp8}) {
      ModelFacts facts = loadModelFacts(folder.write(config, quantised(folder.model, ofRows, "_scale", ofRows ? "BF16" : "F32")));
      const TensorFact *up = facts.find("blk.1.ffn_up.weight");
      ASSERT_NE(up, nullptr);
      EXPECT_EQ(up->type, DType::E4M3);
      EXPECT_EQ(up->bytes, uint64_t(24 * 40));
      EXPECT_EQ(up->scales.count, ofRows ? 24 : 1);
      EXPECT_EQ(up->scales.type, ofRows ? DType::BF16 : DType::F32);
      EXPECT_EQ(up->scales.offset, up->offset + up->bytes); // as this test writes them
      EXPECT_EQ(facts.find("token_embd.weight")->type, DType::F32);
      EXPECT_EQ(facts.find("token_embd.weight")->scales.count, 0);
      EXPECT_EQ(facts.find("blk.1.ffn_up.weight_scale"), nullptr);
      EXPECT_TRUE(facts.warnings.empty());
      EXPECT_NE(inspectText(facts).find("quantization: " + facts.quantization), std::string::npos);
      EXPECT_NE(inspectText(facts).find("E4M3"), std::string::npos);
    }
}

// transformers' per-tensor form of "fp8"; scales of activations are not needed.
TEST(Quantization, OtherNames) {
  Fp8Folder folder;
  auto tensors = quantised(folder.model, false, "_scale_inv", "F16");
  for (const char *name : {"input_scale", "activation_scale"})
    tensors.push_back({"model.layers.0.mlp.down_proj." + std::string(name), "F32", {1}});
  ModelFacts facts = loadModelFacts(folder.write(kFp8, tensors));
  EXPECT_EQ(facts.find("blk.0.ffn_down.weight")->scales.type, DType::F16);
  EXPECT_EQ(facts.find("blk.0.ffn_down.input_scale"), nullptr);
}

TEST(Quantization, HeadWithScales) {
  Fp8Folder folder;
  folder.model.tied = false;
  auto tensors = quantised(folder.model, true);
  auto head = std::find_if(tensors.begin(), tensors.end(), [](const auto &tensor) { return tensor.name == "lm_head.weight"; });
  head->dtype = "F8_E4M3";
  tensors.push_back({"lm_head.weight_scale", "F32", {Tiny::vocab}});
  EXPECT_EQ(loadModelFacts(folder.write(kFbgemm, tensors)).find("output.weight")->scales.count, Tiny::vocab);
}

// Without weight files: what a config.json of fp8 weights asks for.
TEST(Quantization, ConfigAlone) {
  Fp8Folder folder;
  folder.dir.write("config.json", tinyConfig(folder.model, kFbgemm));
  ModelFacts facts = loadModelFacts(folder.dir.path, {.weightsOptional = true});
  EXPECT_EQ(facts.find("blk.0.attn_q.weight")->type, DType::E4M3);
  EXPECT_EQ(facts.find("blk.0.attn_q.weight")->scales.count, 1);
  EXPECT_EQ(facts.find("blk.0.attn_norm.weight")->type, DType::BF16);
  EXPECT_EQ(facts.find("token_embd.weight")->type, DType::BF16);
}

TEST(Quantization, RefusedConfigs) {
  Fp8Folder folder;
  auto refuse = [&](const std::string &config, const std::vector<std::string> &parts) {
    folder.write(config, quantised(folder.model, true));
    expectError(folder.dir.path, parts);
  };
  auto replaced = [](std::string text, const std::string &from, const std::string &to) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    return text.replace(text.find(from), from.size(), to);
  };
  std::string group = "quantization_config.config_groups.group_0.";
  auto weights = [&](const std::string &from, const std::string &to, const std::string &message) {
    refuse(compressedTensors(replaced(kWeights, from, to), kActivations), {group + "weights." + message});
  };
  weights("\"float\"", "\"int\"", "type: expected float, got \"int\"");
  weights("\"num_bits\": 8", "\"num_bits\": 4", "num_bits: expected 8, got 4");
  weights("\"channel\"", "\"block\"", "strategy: expected tensor or channel, got \"block\"");
  weights("\"symmetric\": true", "\"symmetric\": false", "symmetric: expected true, got false");
  weights("\"group_size\": null", "\"group_size\": 128", "group_size: expected null, got 128");
  weights("\"block_structure\": null", "\"block_structure\": [128, 128]", "block_structure: expected null");
  weights("\"dynamic\": false", "\"dynamic\": true", "dynamic: expected false, got true");
  refuse(compressedTensors(kWeights, replaced(kActivations, "\"token\"", "\"group\"")),
         {group + "input_activations.strategy: expected tensor or token, got \"group\""});
  refuse(replaced(compressedTensors(kWeights, kActivations), "\"float-quantized\"", "\"int-quantized\""),
         {"quantization_config.format: expected float-quantized, got \"int-quantized\""});
  refuse(replaced(compressedTensors(kWeights, kActivations), "\"kv_cache_scheme\": null", "\"kv_cache_scheme\": {\"num_bits\": 8}"),
         {"quantization_config.kv_cache_scheme: expected null"});
  refuse(replaced(compressedTensors(kWeights, kActivations), "\"transform_config\": {}", "\"transform_config\": {\"R1\": 1}"),
         {"quantization_config.transform_config: expected null"});
  refuse(R"("quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {}})",
         {"config_groups: expected at least one group"});
  refuse(R"("quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]})",
         {"quantization_config.weight_block_size: expected null"});
  refuse(R"("quantization_config": {"quant_method": "fp8", "fmt": "e5m2"})", {"quantization_config.fmt: expected e4m3, got \"e5m2\""});
  refuse(R"("quantization_config": {"quant_method": "awq"})",
         {"quant_method: expected compressed-tensors (float-quantized), fbgemm_fp8 or fp8, got \"awq\""});
  refuse(R"("quantization_config": {})", {"quantization_config: expected the key \"quant_method\""});
  refuse(R"("quantization_config": 8)", {"quantization_config"});
}

TEST(Quantization, RefusedTensors) {
  Fp8Folder folder;
  auto refuse = [&](std::vector<StoredTensor> tensors, const std::vector<std::string> &parts, const std::string &config = kFbgemm) {
    folder.write(config, tensors);
    expectError(folder.dir.path, parts);
  };
  const auto good = quantised(folder.model, true);
  auto with = [&](const std::string &name, const StoredTensor &other) {
    auto tensors = good;
    auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto &tensor) { return tensor.name == name; });
    EXPECT_NE(found, tensors.end()) << name;
    *found = other;
    return tensors;
  };
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  refuse(good, {"model.layers.0", "expected type F32, F16 or BF16 without a quantization_config in config.json, got F8_E4M3"}, "");
  refuse(with(q + "_scale", {q + "_scale", "F32", {39}}), {q + "_scale", "expected one scale or one for each row", "got shape [39] beside [40, 40]"});
  refuse(with(q + "_scale", {q + "_scale", "F32", {40, 2}}), {q + "_scale", "got shape [40, 2]"});
  refuse(with(q + "_scale", {q + "_scale", "F32", {0}}), {q + "_scale", "got shape [0]"});
  refuse(with(q + "_scale", {q + "_scale", "F8_E4M3", {}}), {q + "_scale"});
  refuse(with(q + "_scale", {"unused", "F32", {1}}), {q, "expected its scales as tensor \"" + q + "_scale\", got none"});
  refuse(with(q + "_scale", {q + "_scale", "F64", {1}}), {q + "_scale", "got F64"});
  auto twice = good;
  twice.push_back({q + "_scale_inv", "F32", {1}});
  refuse(twice, {q + "_scale_inv", "expected scales once"});
  // Scales of what is not quantised change results as well.
  refuse(with(q, {q, "BF16", {40, 40}}), {q + "_scale", "one that llmc does not know"});
  const std::string norm = "model.layers.1.input_layernorm.weight", table = "model.embed_tokens.weight";
  for (const auto &[name, shape] : {std::pair(norm, std::vector<int64_t>{40}), {table, {Tiny::vocab, 40}}}) {
    auto tensors = with(name, {name, "F8_E4M3", shape});
    tensors.push_back({name + "_scale", "F32", {1}});
    refuse(tensors, {name, "expected F32, F16 or BF16, got F8_E4M3"});
  }
}

} // namespace
