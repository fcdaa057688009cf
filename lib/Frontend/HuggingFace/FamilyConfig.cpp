//===- FamilyConfig.cpp - keys of config.json of single families ----------===//
//
// Windows and which layers have them, and what Gemma 2 and Granite with windows (granite_swa) have beside Llama. What is absent
// is what the family's config class in transformers assumes; null means none.
//
//===----------------------------------------------------------------------===//
#include "../FactsChecks.h"
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace llmc;
using namespace llmc::huggingface;

namespace {

bool isAbsent(const JsonView &config, std::string_view key) {
  return std::none_of(config.object().begin(), config.object().end(), [&](const JsonMember &member) { return member.key == key; });
}

/// A positive number of f32; absent: `otherwise`, null: `none`.
double positiveOr(const JsonView &config, std::string_view key, double otherwise, double none) {
  auto view = config.find(key);
  if (!view)
    return isAbsent(config, key) ? otherwise : none;
  auto value = static_cast<float>(view->number());
  if (!(value > 0) || !std::isfinite(value))
    throw view->expected("a positive finite number");
  return view->number();
}

/// 0: none. Negative numbers and those beyond any context are refused.
int64_t windowSize(const JsonView &config, int64_t otherwise) {
  auto window = config.find("sliding_window");
  int64_t size = window ? window->integer() : isAbsent(config, "sliding_window") ? otherwise : 0;
  if (size < 0 || size > frontend::maxExtent)
    throw window->expected("a number from 0 (no window) to " + std::to_string(frontend::maxExtent));
  return size;
}

/// Which layers have the window of `size`: those that layer_types names, else those that `otherwise` says.
void readWindowLayers(const JsonView &config, ModelFacts &facts, int64_t size, const std::function<bool(int64_t)> &otherwise) {
  auto types = config.find("layer_types");
  if (types && static_cast<int64_t>(types->array().size()) != facts.layers)
    throw types->expected("one type for each of the " + std::to_string(facts.layers) + " layers");
  // A lying layer count must not size anything: no model has as many (the tensors are counted later).
  int64_t with = 0, layers = types ? facts.layers : std::min<int64_t>(facts.layers, int64_t(1) << 20);
  std::vector<bool> has;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (types) {
      JsonView type = types->at(static_cast<size_t>(layer));
      if (type.string() != "sliding_attention" && type.string() != "full_attention")
        throw type.expected("\"full_attention\" or \"sliding_attention\"");
      has.push_back(type.string() == "sliding_attention");
    } else {
      has.push_back(otherwise(layer));
    }
    with += has.back();
  }
  facts.slidingWindow = with && size < facts.maxContext ? size : 0;
  if (facts.slidingWindow && with < layers)
    facts.windowLayers = has;
}

/// Qwen2Config: layers from max_window_layers on, 28 unless it says so.
void readQwen2Window(const JsonView &config, ModelFacts &facts) {
  int64_t size = windowSize(config, 0), first = 28;
  if (auto use = config.find("use_sliding_window"); !use || !use->boolean())
    return;
  if (auto view = config.find("max_window_layers")) {
    first = view->integer();
    if (first < 0 || first > frontend::maxExtent)
      throw view->expected("a number from 0 to " + std::to_string(frontend::maxExtent));
  }
  readWindowLayers(config, facts, size, [first](int64_t layer) { return layer >= first; });
}

/// Gemma2Config and modeling_gemma2.py.
void readGemma2(const JsonView &config, ModelFacts &facts) {
  if (auto both = config.find("use_bidirectional_attention"); both && both->boolean())
    throw both->expected("false");
  readWindowLayers(config, facts, windowSize(config, 4096), [](int64_t layer) { return layer % 2 == 0; });
  facts.normAddsOne = facts.postNorms = facts.geluGate = true;
  facts.embeddingScale = std::sqrt(static_cast<double>(facts.hidden));
  facts.attentionScale = 1 / std::sqrt(positiveOr(config, "query_pre_attn_scalar", 256, 256));
  facts.attentionSoftCap = positiveOr(config, "attn_logit_softcapping", 50, 0);
  facts.finalSoftCap = positiveOr(config, "final_logit_softcapping", 30, 0);
}

/// GraniteSWAConfig and modeling_granite_swa.py.
void readGraniteSWA(const JsonView &config, ModelFacts &facts) {
  readWindowLayers(config, facts, windowSize(config, 128), [](int64_t layer) { return layer % 4 != 0; });
  facts.attentionSinks = true;
  facts.embeddingScale = positiveOr(config, "embedding_multiplier", 1, 1);
  facts.residualScale = positiveOr(config, "residual_multiplier", 1, 1);
  facts.attentionScale = positiveOr(config, "attention_multiplier", 1, 1);
  facts.logitsScale = 1 / positiveOr(config, "logits_scaling", 1, 1);
  auto thetas = config.find("layer_rope_theta");
  if (!thetas)
    return;
  if (static_cast<int64_t>(thetas->array().size()) != facts.layers)
    throw thetas->expected("one theta for each of the " + std::to_string(facts.layers) + " layers");
  for (size_t layer = 0; layer < thetas->array().size(); ++layer) {
    JsonView view = thetas->at(layer);
    double theta = view.number();
    if (!(theta >= 0) || !std::isfinite(static_cast<float>(theta)) || (theta > 0 && !(static_cast<float>(theta) > 0)))
      throw view.expected("a positive finite number, or 0 for no rotation");
    facts.layerThetas.push_back(theta);
  }
}

} // namespace

void huggingface::readFamilyFacts(const JsonView &config, ModelFacts &facts) {
  if (facts.architecture == "mistral")
    readWindowLayers(config, facts, windowSize(config, 0), [](int64_t) { return true; });
  else if (facts.architecture == "qwen2")
    readQwen2Window(config, facts);
  else if (facts.architecture == "gemma2")
    readGemma2(config, facts);
  else if (facts.architecture == "granite_swa")
    readGraniteSWA(config, facts);
}
