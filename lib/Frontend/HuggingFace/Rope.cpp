//===- Rope.cpp - rotary keys of config.json, old and new -----------------===//
//
// Old: rope_theta on top, rope_scaling null or {rope_type | type, factor, ...}.
// New (transformers 5): rope_parameters {rope_theta, rope_type, factor, ...}, or
// one such block per layer type. theta: the block's, else the top's, else 10000.
//
//===----------------------------------------------------------------------===//
#include "../FactsChecks.h"
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

#include <cmath>

using namespace llmc;
using namespace llmc::huggingface;

namespace {

double positive(const JsonView &view) {
  double value = view.number();
  if (!(value > 0) || !std::isfinite(value))
    throw view.expected("a positive number");
  return value;
}

std::optional<JsonView> typeOf(const JsonView &block) {
  auto type = block.find("rope_type");
  return type ? type : block.find("type");
}

RopeFacts readBlock(const JsonView &block, double topTheta, const ModelFacts &facts, double topFraction) {
  RopeFacts rope;
  auto theta = block.find("rope_theta");
  rope.theta = theta ? positive(*theta) : topTheta;
  auto fraction = block.find("partial_rotary_factor");
  double share = fraction ? positive(*fraction) : topFraction;
  if (share > 1)
    throw(fraction ? *fraction : block).expected("a share of at most 1");
  rope.rotaryDim = static_cast<int64_t>(static_cast<double>(facts.headDim) * share);
  if (rope.rotaryDim < 2 || rope.rotaryDim % 2)
    throw block.error("expected an even number of rotated dimensions, got " + std::to_string(rope.rotaryDim) +
                      " (head_dim " + std::to_string(facts.headDim) + " times " + std::to_string(share) +
                      ")");
  auto type = typeOf(block);
  if (!type) {
    if (auto factor = block.find("factor"))
      throw block.error("expected the key \"rope_type\" beside \"factor\", got none");
    return rope;
  }
  const std::string &name = type->string();
  if (name == "default")
    return rope;
  if (name != "linear" && name != "llama3")
    throw type->expected("one of default, linear, llama3");
  rope.factor = positive(block.get("factor"));
  rope.scaling = RopeFacts::Scaling::Linear;
  if (name == "llama3") {
    rope.scaling = RopeFacts::Scaling::Llama3;
    rope.lowFreqFactor = positive(block.get("low_freq_factor"));
    JsonView high = block.get("high_freq_factor");
    rope.highFreqFactor = positive(high);
    JsonView original = block.get("original_max_position_embeddings");
    rope.originalContext = original.integer();
    if (rope.originalContext < 1 || rope.originalContext > frontend::maxExtent)
      throw original.expected("a number from 1 to " + std::to_string(frontend::maxExtent));
    if (!(rope.highFreqFactor > rope.lowFreqFactor))
      throw high.expected("more than low_freq_factor");
  }
  return rope;
}

bool same(const RopeFacts &a, const RopeFacts &b) {
  return a.scaling == b.scaling && a.theta == b.theta && a.factor == b.factor &&
         a.lowFreqFactor == b.lowFreqFactor && a.highFreqFactor == b.highFreqFactor &&
         a.originalContext == b.originalContext && a.rotaryDim == b.rotaryDim;
}

/// True for {"full_attention": {...}, "sliding_attention": {...}}.
bool isPerLayerType(const JsonView &block) {
  if (block.object().empty())
    return false;
  for (const JsonMember &member : block.object())
    if (!member.node.object())
      return false;
  return true;
}

} // namespace

void huggingface::readRope(const JsonView &config, ModelFacts &facts) {
  auto topTheta = config.find("rope_theta");
  double theta = topTheta ? positive(*topTheta) : 10000.0;
  auto topFraction = config.find("partial_rotary_factor");
  double fraction = topFraction ? positive(*topFraction) : 1.0;
  if (fraction > 1)
    throw topFraction->expected("a share of at most 1");

  std::vector<std::pair<JsonView, RopeFacts>> found;
  for (const char *key : {"rope_parameters", "rope_scaling"}) {
    auto block = config.find(key);
    if (!block)
      continue;
    if (!isPerLayerType(*block)) {
      found.emplace_back(*block, readBlock(*block, theta, facts, fraction));
      continue;
    }
    for (const JsonMember &member : block->object()) {
      JsonView inner = block->at(member);
      found.emplace_back(inner, readBlock(inner, theta, facts, fraction));
    }
  }
  // One table serves all layers here, so several blocks must say the same.
  for (size_t i = 1; i < found.size(); ++i)
    if (!same(found[0].second, found[i].second))
      throw found[i].first.error("expected the same rope as in " + found[0].first.path() +
                                 " (rope that differs between layers is not supported), got another");
  if (!found.empty()) {
    facts.rope = found[0].second;
    return;
  }
  facts.rope = RopeFacts();
  facts.rope.theta = theta;
  facts.rope.rotaryDim = static_cast<int64_t>(static_cast<double>(facts.headDim) * fraction);
}
