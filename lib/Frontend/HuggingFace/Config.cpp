//===- Config.cpp - config.json -------------------------------------------===//
#include "../FactsChecks.h"
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::huggingface;

namespace {

/// What a transformers config class assumes for keys that are absent.
struct Family {
  const char *className, *architecture, *modelType;
  int64_t kvHeads; // 0: as many as heads
  int64_t maxContext;
};
const Family families[] = {
    {"LlamaForCausalLM", "llama", "llama", 0, 2048},
    {"MistralForCausalLM", "mistral", "mistral", 8, 131072},
    {"Qwen2ForCausalLM", "qwen2", "qwen2", 32, 32768},
};

const Family &readFamily(const JsonView &config) {
  auto architectures = config.find("architectures");
  std::string name;
  std::optional<JsonView> named;
  if (architectures && !architectures->array().empty()) {
    named = architectures->at(0);
  } else {
    named = config.find("model_type");
  }
  if (!named)
    throw config.error("expected the key \"architectures\" or \"model_type\", got neither");
  for (const Family &family : families)
    if (named->string() == family.className || named->string() == family.modelType)
      return family;
  throw named->error("unsupported architecture: expected one of " + supportedArchitectures() +
                     " (LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM), got " +
                     quote(named->string()));
}

int64_t extent(const JsonView &view) {
  int64_t value = view.integer();
  if (value < 1 || value > frontend::maxExtent)
    throw view.expected("a number from 1 to " + std::to_string(frontend::maxExtent));
  return value;
}

int64_t extentOr(const JsonView &config, std::string_view key, int64_t fallback) {
  auto view = config.find(key);
  return view ? extent(*view) : fallback;
}

bool flag(const JsonView &config, std::string_view key, bool fallback) {
  auto view = config.find(key);
  return view ? view->boolean() : fallback;
}

void refuseUnsupported(const JsonView &config) {
  if (auto activation = config.find("hidden_act");
      activation && activation->string() != "silu" && activation->string() != "swish")
    throw activation->expected("\"silu\"");
  if (auto bias = config.find("mlp_bias"); bias && bias->boolean())
    throw bias->expected("false");
}

void readAttention(const JsonView &config, const Family &family, ModelFacts &facts) {
  facts.heads = extent(config.get("num_attention_heads"));
  // "null" means one kv head a head in every family, absence the class's default.
  bool given = std::any_of(config.object().begin(), config.object().end(),
                           [](const JsonMember &member) { return member.key == "num_key_value_heads"; });
  int64_t fallback = given || family.kvHeads == 0 ? facts.heads : family.kvHeads;
  facts.kvHeads = extentOr(config, "num_key_value_heads", fallback);
  if (facts.heads % facts.kvHeads)
    throw config.get(given ? "num_key_value_heads" : "num_attention_heads")
        .error("expected kv heads that divide the " + std::to_string(facts.heads) + " attention heads, got " +
               std::to_string(facts.kvHeads) + (given ? "" : ", the default of this architecture"));
  auto headDim = config.find("head_dim");
  if (!headDim && facts.hidden % facts.heads)
    throw config.get("hidden_size")
        .expected("a multiple of the " + std::to_string(facts.heads) +
                  " attention heads, since there is no head_dim");
  facts.headDim = headDim ? extent(*headDim) : facts.hidden / facts.heads;
  if (facts.architecture == "qwen2") {
    facts.attentionBias = true; // Qwen2Attention: q, k, v have one, o has none
  } else if (facts.architecture == "llama") {
    facts.attentionBias = facts.attentionOutputBias = flag(config, "attention_bias", false);
  }
}

/// Qwen2Config: layers from max_window_layers on have the window, or those that layer_types names.
bool everyLayerHasWindow(const JsonView &config, const ModelFacts &facts) {
  JsonView use = config.get("use_sliding_window");
  auto types = config.find("layer_types");
  if (!types) {
    int64_t first = 28;
    if (auto view = config.find("max_window_layers")) {
      first = view->integer();
      if (first < 0 || first > frontend::maxExtent)
        throw view->expected("a number from 0 to " + std::to_string(frontend::maxExtent));
    }
    if (first > 0 && first < facts.layers)
      throw use.error("expected a window in all layers or in none (others are not supported), got one from layer " +
                      std::to_string(first) + " on");
    return first == 0;
  }
  if (static_cast<int64_t>(types->array().size()) != facts.layers)
    throw types->expected("one type for each of the " + std::to_string(facts.layers) + " layers");
  int64_t windows = 0;
  for (size_t i = 0; i < types->array().size(); ++i) {
    JsonView type = types->at(i);
    if (type.string() != "sliding_attention" && type.string() != "full_attention")
      throw type.expected("\"full_attention\" or \"sliding_attention\"");
    windows += type.string() == "sliding_attention";
    if (windows != 0 && windows != static_cast<int64_t>(i) + 1)
      throw type.expected("the type of the layers before (a window in some layers only is not supported)");
  }
  return windows > 0;
}

void readWindow(const JsonView &config, ModelFacts &facts) {
  auto window = config.find("sliding_window");
  int64_t size = window ? window->integer() : 0;
  if (size < 0 || size > frontend::maxExtent)
    throw window->expected("a number from 0 (no window) to " + std::to_string(frontend::maxExtent));
  if (facts.architecture == "mistral")
    facts.slidingWindow = size;
  else if (facts.architecture == "qwen2" && flag(config, "use_sliding_window", false))
    facts.slidingWindow = everyLayerHasWindow(config, facts) ? size : 0;
  if (facts.slidingWindow >= facts.maxContext)
    facts.slidingWindow = 0;
}

} // namespace

std::vector<int32_t> huggingface::readIds(const JsonView &config, std::string_view key) {
  std::vector<int32_t> ids;
  auto view = config.find(key);
  if (!view)
    return ids;
  auto add = [&](const JsonView &item) {
    int64_t id = item.integer();
    if (id < -1 || id > INT32_MAX)
      throw item.expected("a token id");
    if (id >= 0) // -1: none
      ids.push_back(static_cast<int32_t>(id));
  };
  if (!view->isArray())
    add(*view);
  else
    for (size_t i = 0; i < view->array().size(); ++i)
      add(view->at(i));
  return ids;
}

void huggingface::readConfig(const JsonView &config, ModelFacts &facts) {
  const Family &family = readFamily(config);
  facts.format = "huggingface";
  facts.architecture = family.architecture;
  if (auto name = config.find("_name_or_path"); name && name->isString())
    facts.name = name->string();
  refuseUnsupported(config);
  readQuantization(config, facts);
  facts.hidden = extent(config.get("hidden_size"));
  facts.layers = extent(config.get("num_hidden_layers"));
  facts.ffn = extent(config.get("intermediate_size"));
  facts.vocab = extent(config.get("vocab_size"));
  facts.maxContext = extentOr(config, "max_position_embeddings", family.maxContext);
  auto epsilon = config.find("rms_norm_eps");
  facts.normEps = epsilon ? epsilon->number() : 1e-6;
  if (!(facts.normEps > 0 && facts.normEps < 1))
    throw epsilon->expected("a number above 0 and below 1");
  facts.tiedHead = flag(config, "tie_word_embeddings", false);
  readAttention(config, family, facts);
  readWindow(config, facts);
  readRope(config, facts);
}
