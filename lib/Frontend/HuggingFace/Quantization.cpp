//===- Quantization.cpp - folders of fp8 weights --------------------------===//
//
// e4m3 matrices with a scale for all or one for each row, as compressed-tensors ("float-quantized"), FBGEMM ("fbgemm_fp8") and
// vLLM, AutoFP8 and transformers ("fp8" without blocks) write them. A weight is code * scale whatever the writer; which
// matrices are quantised the tensors' types say.
//
// What the configuration says of activations (static or dynamic, per tensor or per token, a bound of the scale) is how its
// writer's kernels make them 8-bit. llmc's are more exact: bf16, or e4m3 with a dynamic scale per token (docs/accuracy.md); so all
// of these are taken, and static scales are not needed. Anything else that would change results is refused by its key.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

using namespace llmc;
using namespace llmc::huggingface;

namespace {

void expectText(const JsonView &object, std::string_view key, const std::vector<std::string> &allowed, bool required) {
  auto view = object.find(key);
  if (!view && !required)
    return;
  JsonView there = view ? *view : object.get(key);
  if (std::find(allowed.begin(), allowed.end(), there.string()) == allowed.end())
    throw there.expected(join(allowed, " or "));
}

/// Absent, null, or an object or a list with nothing in it.
void expectNothing(const JsonView &object, std::string_view key) {
  auto view = object.find(key);
  if (!view || (view->isObject() && view->object().empty()) || (view->isArray() && view->array().empty()))
    return;
  throw view->expected("null");
}

void expectFlag(const JsonView &object, std::string_view key, bool wanted) {
  if (auto view = object.find(key); view && view->boolean() != wanted)
    throw view->expected(wanted ? "true" : "false");
}

/// Of weights or activations: 8-bit floats.
void expectFloats(const JsonView &arguments) {
  expectText(arguments, "type", {"float"}, true);
  if (JsonView bits = arguments.get("num_bits"); bits.integer() != 8)
    throw bits.expected("8");
  expectFlag(arguments, "symmetric", true);
  for (const char *key : {"group_size", "block_structure"})
    expectNothing(arguments, key);
}

void readCompressedTensors(const JsonView &config) {
  expectText(config, "format", {"float-quantized"}, true);
  for (const char *key : {"kv_cache_scheme", "transform_config"})
    expectNothing(config, key);
  if (auto sparsity = config.find("sparsity_config"); sparsity && !sparsity->object().empty())
    expectText(*sparsity, "format", {"dense"}, true);
  JsonView groups = config.get("config_groups");
  if (groups.object().empty())
    throw groups.expected("at least one group");
  for (const JsonMember &member : groups.object()) {
    JsonView group = groups.at(member), weights = group.get("weights");
    expectText(group, "format", {"float-quantized"}, false);
    expectFloats(weights);
    expectFlag(weights, "dynamic", false);
    expectText(weights, "strategy", {"tensor", "channel"}, true);
    expectNothing(group, "output_activations");
    auto activations = group.find("input_activations"); // absent: computed as they are
    if (!activations)
      continue;
    expectFloats(*activations);
    expectText(*activations, "strategy", {"tensor", "token"}, true);
  }
}

void readFp8(const JsonView &config) {
  expectNothing(config, "weight_block_size"); // scales of blocks
  expectText(config, "fmt", {"e4m3"}, false);
  expectText(config, "activation_scheme", {"static", "dynamic"}, false);
  expectNothing(config, "kv_cache_scheme");
}

/// "q_proj.weight_scale" -> the weight whose scales these are; empty: none.
std::string scaledWeight(const std::string &name) {
  for (const char *suffix : {".weight_scale", ".weight_scale_inv"}) // the inverse of what quantised: the same factor
    if (name.ends_with(suffix))
      return name.substr(0, name.size() - std::string(suffix).size()) + ".weight";
  return {};
}

/// Scales of activations, which are not needed.
std::string activationOf(const std::string &name) {
  for (const char *suffix : {".input_scale", ".activation_scale"})
    if (name.ends_with(suffix))
      return name.substr(0, name.size() - std::string(suffix).size()) + ".weight";
  return {};
}

std::string where(const ModelFacts &facts, const TensorFact &tensor) {
  return facts.files[tensor.file] + ": tensor " + quote(tensor.sourceName);
}

void attach(const ModelFacts &facts, const TensorFact &scales, TensorFact &weight) {
  int64_t count = 1;
  for (int64_t extent : scales.shape)
    count *= extent; // of at most 2^60 values: readSafetensors
  bool ofRows = weight.shape.size() == 2 && !scales.shape.empty() && scales.shape.front() == weight.shape.front();
  if (scales.type == DType::E4M3)
    throw Error(where(facts, scales) + ": expected type F32, F16 or BF16, got F8_E4M3");
  if (count != 1 && !(ofRows && count == weight.shape.front()))
    throw Error(where(facts, scales) + ": expected one scale or one for each row of " + quote(weight.sourceName) + ", got shape " +
                shapeString(scales.shape) + " beside " + shapeString(weight.shape));
  if (weight.scales.count)
    throw Error(where(facts, scales) + ": expected scales once, got others of " + quote(weight.sourceName));
  weight.scales = {scales.file, scales.offset, count, scales.type};
}

} // namespace

void huggingface::readQuantization(const JsonView &config, ModelFacts &facts) {
  auto quantization = config.find("quantization_config");
  if (!quantization)
    return;
  JsonView method = quantization->get("quant_method");
  if (method.string() == "compressed-tensors")
    readCompressedTensors(*quantization);
  else if (method.string() == "fp8")
    readFp8(*quantization);
  else if (method.string() != "fbgemm_fp8")
    throw method.expected("compressed-tensors (float-quantized), fbgemm_fp8 or fp8");
  facts.quantization = method.string();
}

void huggingface::attachScales(ModelFacts &facts) {
  std::unordered_map<std::string, TensorFact *> matrices; // e4m3
  for (TensorFact &tensor : facts.tensors) {
    if (tensor.type != DType::E4M3)
      continue;
    if (facts.quantization.empty())
      throw Error(where(facts, tensor) + ": expected type F32, F16 or BF16 without a quantization_config in config.json, got F8_E4M3");
    matrices.emplace(tensor.sourceName, &tensor);
  }
  std::unordered_set<const TensorFact *> taken;
  for (const TensorFact &tensor : facts.tensors) {
    std::string weight = scaledWeight(tensor.sourceName), activation = activationOf(tensor.sourceName);
    auto found = matrices.find(weight.empty() ? activation : weight);
    if (found == matrices.end())
      continue; // not of a matrix in e4m3: the checks behind say what it is
    if (!weight.empty())
      attach(facts, tensor, *found->second);
    taken.insert(&tensor);
  }
  for (const auto &[name, matrix] : matrices)
    if (!matrix->scales.count)
      throw Error(where(facts, *matrix) + ": expected its scales as tensor " +
                  quote(matrix->sourceName + "_scale") + ", got none");
  std::vector<TensorFact> kept;
  for (TensorFact &tensor : facts.tensors)
    if (!taken.count(&tensor))
      kept.push_back(std::move(tensor));
  facts.tensors = std::move(kept);
}
