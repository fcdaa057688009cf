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
  const char *className, *architecture; // the model_type is the architecture
  int64_t kvHeads; // 0: as many as heads
  int64_t maxContext;
  int64_t headDim = 0; // 0: hidden_size / heads
  double normEps = 1e-6;
  bool tiedHead = false;
  const char *activationKey = "hidden_act", *activation = "silu";
};
const Family families[] = {
    {"LlamaForCausalLM", "llama", 0, 2048},
    {"MistralForCausalLM", "mistral", 8, 131072},
    {"Qwen2ForCausalLM", "qwen2", 32, 32768},
    {"Gemma2ForCausalLM", "gemma2", 4, 8192, 256, 1e-6, true, "hidden_activation", "gelu_pytorch_tanh"},
    {"GraniteSWAForCausalLM", "granite_swa", 4, 8192, 0, 1e-5, true},
};

std::string classNames() {
  std::string names;
  for (const Family &family : families)
    names += (names.empty() ? "" : ", ") + std::string(family.className);
  return names;
}

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
    if (named->string() == family.className || named->string() == family.architecture)
      return family;
  throw named->error("unsupported architecture: expected one of " + supportedArchitectures() +
                     " (" + classNames() + "), got " +
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

void refuseUnsupported(const JsonView &config, const Family &family) {
  if (auto activation = config.find(family.activationKey)) {
    std::string name = activation->string() == "swish" ? "silu" : activation->string();
    if (name != family.activation)
      throw activation->expected(quote(family.activation));
  }
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
  if (!headDim && !family.headDim && facts.hidden % facts.heads)
    throw config.get("hidden_size")
        .expected("a multiple of the " + std::to_string(facts.heads) +
                  " attention heads, since there is no head_dim");
  facts.headDim = headDim ? extent(*headDim) : family.headDim ? family.headDim : facts.hidden / facts.heads;
  if (facts.architecture == "qwen2") {
    facts.attentionBias = true; // Qwen2Attention: q, k, v have one, o has none
  } else if (facts.architecture != "mistral") {
    facts.attentionBias = facts.attentionOutputBias = flag(config, "attention_bias", false);
  }
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
  refuseUnsupported(config, family);
  readQuantization(config, facts);
  facts.hidden = extent(config.get("hidden_size"));
  facts.layers = extent(config.get("num_hidden_layers"));
  facts.ffn = extent(config.get("intermediate_size"));
  facts.vocab = extent(config.get("vocab_size"));
  facts.maxContext = extentOr(config, "max_position_embeddings", family.maxContext);
  auto epsilon = config.find("rms_norm_eps");
  facts.normEps = epsilon ? epsilon->number() : family.normEps;
  if (!(facts.normEps > 0 && facts.normEps < 1))
    throw epsilon->expected("a number above 0 and below 1");
  facts.tiedHead = flag(config, "tie_word_embeddings", family.tiedHead);
  readAttention(config, family, facts);
  readFamilyFacts(config, facts);
  readRope(config, facts);
}
