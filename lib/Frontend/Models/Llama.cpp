//===- Llama.cpp - Llama 2/3, Mistral, SmolLM2, Qwen 2.5, Gemma 2, Granite -===//
//
// Touvron et al. 2023 (Llama 2): pre-normalised blocks of grouped-query attention
// with rotary embedding and a SwiGLU feed-forward. Mistral adds a sliding window,
// Qwen 2 biases on q, k and v; Gemma 2 (Gemma Team 2024, sec. 2) windows in every
// other layer, caps on scores and logits, normalisations behind attention and
// feed-forward too, and GELU; Granite with windows (granite_swa) attention sinks,
// multipliers, and layers without rotation. The facts say which apply.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/Models/Families.h"

#include "llmc/Frontend/ModelBuilder.h"
#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/Error.h"

#include <cmath>
#include <map>

using namespace llmc;

namespace {

using Value = ModelBuilder::Value;
using Cache = ModelBuilder::Cache;
using Weight = ModelBuilder::Weight;

class Llama {
public:
  Llama(ModelBuilder &builder, const ModelFacts &facts) : b(builder), f(facts) {}

  void build() {
    // All activations: [tokens, ...]; x is the residual stream, [tokens, hidden].
    Weight embedding = b.matrix("token_embd", f.vocab, f.hidden);
    Value x = b.embedding("token_embd", b.tokenIds(), embedding, f.embeddingScale);
    makeRopeTables();
    std::vector<Cache> caches;
    for (layer = 0; layer < f.layers; ++layer) {
      prefix = "blk." + std::to_string(layer) + ".";
      x = attentionBlock(x, b.cache(layer), caches);
      x = feedForwardBlock(x);
    }
    x = b.gatherRows("logits_rows", x, b.logitsRows());
    x = b.rmsNorm("output_norm", x, b.normWeight("output_norm", f.hidden), f.normEps);
    Weight head = f.tiedHead ? embedding : b.matrix("output", f.vocab, f.hidden);
    Value logits = b.linear("output", x, head); // [logits rows, vocab]
    if (f.logitsScale != 1)
      logits = b.scale("output_scale", logits, f.logitsScale);
    if (f.finalSoftCap > 0)
      logits = b.softCap("output_cap", logits, f.finalSoftCap);
    b.finish(logits, caches);
  }

private:
  /// Norm, attention, output projection, residual.
  Value attentionBlock(Value x, Cache cache, std::vector<Cache> &caches) {
    int64_t queryColumns = f.heads * f.headDim, kvColumns = f.kvHeads * f.headDim;
    int64_t interleaved = f.rope.interleavedRows ? f.headDim : 0;
    Value h = norm("attn_norm", x);
    Value q = projection("attn_q", h, queryColumns, f.hidden, f.attentionBias, interleaved);
    Value k = projection("attn_k", h, kvColumns, f.hidden, f.attentionBias, interleaved);
    Value v = projection("attn_v", h, kvColumns, f.hidden, f.attentionBias);
    if (const Value *table = ropeTable()) {
      q = b.rope(prefix + "attn_q_rope", q, *table, f.headDim);
      k = b.rope(prefix + "attn_k_rope", k, *table, f.headDim);
    }
    caches.push_back(b.append(prefix + "kv", cache, k, v));
    ModelBuilder::Attention how{f.headDim, f.attentionScale > 0 ? f.attentionScale : 1.0 / std::sqrt(double(f.headDim))};
    how.window = f.windowOf(layer);
    how.softCap = f.attentionSoftCap;
    Weight sinks{};
    if (f.attentionSinks) {
      sinks = b.vector(prefix + "attn_sinks", prefix + "attn_sinks.weight", f.heads);
      how.sinks = &sinks;
    }
    Value attended = b.attention(prefix + "attn", q, caches.back(), how); // [tokens, heads * head_dim]
    Value output = projection("attn_output", attended, f.hidden, queryColumns, f.attentionOutputBias);
    return addTo(x, output, "attn_residual", "post_attention_norm");
  }

  /// Norm, down(act(gate) * up), residual.
  Value feedForwardBlock(Value x) {
    Value h = norm("ffn_norm", x);
    Value gate = projection("ffn_gate", h, f.ffn, f.hidden, false); // [tokens, ffn]
    Value up = projection("ffn_up", h, f.ffn, f.hidden, false);
    Value act = b.gated(prefix + "ffn_act", f.geluGate ? ModelBuilder::Activation::GELUTanh : ModelBuilder::Activation::SiLU, gate, up);
    Value down = projection("ffn_down", act, f.hidden, f.ffn, false);
    return addTo(x, down, "ffn_residual", "post_ffw_norm");
  }

  /// The residual stream with what a block computed.
  Value addTo(Value x, Value block, const char *name, const char *postNorm) {
    if (f.postNorms)
      block = norm(postNorm, block);
    if (f.residualScale != 1)
      block = b.scale(prefix + name + "_scale", block, f.residualScale);
    return b.add(prefix + name, x, block);
  }

  /// One for each theta that layers have.
  void makeRopeTables() {
    if (f.layerThetas.empty()) {
      tables[f.rope.theta] = b.ropeTable("rope", b.positions(), b.table("rope.frequencies", f.rope.inverseFrequencies()));
      return;
    }
    for (double theta : f.layerThetas) {
      if (theta == 0 || tables.count(theta))
        continue;
      RopeFacts rope = f.rope;
      rope.theta = theta;
      std::string number = tables.empty() ? "" : std::to_string(tables.size());
      tables[theta] = b.ropeTable("rope" + number, b.positions(), b.table("rope" + number + ".frequencies", rope.inverseFrequencies()));
    }
  }

  /// null: the layer has no rotation.
  const Value *ropeTable() const {
    auto found = tables.find(f.layerThetas.empty() ? f.rope.theta : f.layerThetas[static_cast<size_t>(layer)]);
    return found == tables.end() ? nullptr : &found->second;
  }

  Value norm(const char *name, Value x) {
    return b.rmsNorm(prefix + name, x, b.normWeight(prefix + name, f.hidden), f.normEps);
  }

  Value projection(const char *name, Value input, int64_t rows, int64_t columns, bool hasBias,
                   int64_t interleaved = 0) {
    std::string full = prefix + name;
    Weight weight = b.matrix(full, rows, columns, interleaved);
    if (!hasBias)
      return b.linear(full, input, weight);
    Weight bias = b.vector(full + ".bias", full + ".bias", rows, interleaved);
    return b.linear(full, input, weight, &bias);
  }

  ModelBuilder &b;
  const ModelFacts &f;
  int64_t layer = 0;
  std::string prefix; // "blk.N."
  std::map<double, Value> tables; // of cosines and sines, by theta
};

} // namespace

void llmc::buildLlama(ModelBuilder &builder, const ModelFacts &facts) {
  // A file that stores neighbours together does so for whole heads; nobody has published a partial one.
  if (facts.rope.interleavedRows && facts.rope.rotaryDim != facts.headDim)
    throw Error("expected a rotary dimension equal to the head dimension " + std::to_string(facts.headDim) +
                " for interleaved rows, got " + std::to_string(facts.rope.rotaryDim));
  Llama(builder, facts).build();
}
