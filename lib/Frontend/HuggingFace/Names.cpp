//===- Names.cpp - Hugging Face tensor names <-> canonical ones -----------===//
#include "HuggingFace.h"

#include <string_view>

using namespace llmc;
using namespace llmc::huggingface;

static const std::pair<const char *, const char *> globalNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"lm_head.bias", "output.bias"},
};
static const std::pair<const char *, const char *> layerNames[] = {
    {"input_layernorm.", "attn_norm."},    {"self_attn.q_proj.", "attn_q."},
    {"self_attn.k_proj.", "attn_k."},      {"self_attn.v_proj.", "attn_v."},
    {"self_attn.o_proj.", "attn_output."}, {"mlp.gate_proj.", "ffn_gate."},
    {"mlp.up_proj.", "ffn_up."},           {"mlp.down_proj.", "ffn_down."},
};
static const std::pair<const char *, const char *> plainNormNames[] = {{"post_attention_layernorm.", "ffn_norm."}};
static const std::pair<const char *, const char *> postNormNames[] = {{"post_attention_layernorm.", "post_attention_norm."},
                                                                      {"pre_feedforward_layernorm.", "ffn_norm."},
                                                                      {"post_feedforward_layernorm.", "post_ffw_norm."}};
static constexpr std::string_view sinksFile = "self_attn.sinks", sinksName = "attn_sinks.weight"; // without a suffix
static const std::string layerPrefix = "model.layers.", blockPrefix = "blk.";

/// Calls visit(file, canonical) for the beginnings of names inside a layer.
template <typename Visit> static void forEachLayerName(bool postNorms, Visit visit) {
  for (auto [file, canonical] : layerNames)
    visit(std::string(file), std::string(canonical));
  for (auto [file, canonical] : plainNormNames)
    if (!postNorms)
      visit(std::string(file), std::string(canonical));
  for (auto [file, canonical] : postNormNames)
    if (postNorms)
      visit(std::string(file), std::string(canonical));
}

/// "N.rest" -> (N., rest), nothing if N is no plain number.
static std::optional<std::pair<std::string, std::string>> splitLayer(const std::string &text) {
  size_t dot = text.find('.');
  if (dot == std::string::npos || dot == 0 || dot > 6)
    return std::nullopt;
  if (text.find_first_not_of("0123456789") != dot || (text[0] == '0' && dot > 1))
    return std::nullopt;
  return std::pair(text.substr(0, dot + 1), text.substr(dot + 1));
}

std::string huggingface::canonicalName(const std::string &name, bool postNorms) {
  for (auto [file, canonical] : globalNames)
    if (name == file)
      return canonical;
  if (!name.starts_with(layerPrefix))
    return name;
  auto split = splitLayer(name.substr(layerPrefix.size()));
  if (!split)
    return name;
  std::string rest = split->second == sinksFile ? std::string(sinksName) : split->second;
  forEachLayerName(postNorms, [&](const std::string &file, const std::string &canonical) {
    if (split->second.starts_with(file))
      rest = canonical + split->second.substr(file.size());
  });
  return blockPrefix + split->first + rest;
}

std::string huggingface::fileName(const std::string &canonical, bool postNorms) {
  for (auto [file, name] : globalNames)
    if (canonical == name)
      return file;
  if (!canonical.starts_with(blockPrefix))
    return canonical;
  auto split = splitLayer(canonical.substr(blockPrefix.size()));
  if (!split)
    return canonical;
  std::string rest = split->second == sinksName ? std::string(sinksFile) : split->second;
  forEachLayerName(postNorms, [&](const std::string &file, const std::string &name) {
    if (split->second.starts_with(name))
      rest = file + split->second.substr(name.size());
  });
  return layerPrefix + split->first + rest;
}
