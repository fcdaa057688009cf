//===- Llama.cpp - Llama 2/3, Mistral, SmolLM2, Qwen 2.5 ------------------===//
//
// Touvron et al. 2023 (Llama 2): pre-normalised blocks of grouped-query attention
// with rotary embedding and a SwiGLU feed-forward. Mistral adds a sliding window,
// Qwen 2 biases on q, k and v; the facts say which apply.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/Models/Families.h"

#include "llmc/Frontend/ModelBuilder.h"
#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/Error.h"

#include <cmath>

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
    Value x = b.embedding("token_embd", b.tokenIds(), embedding);
    rope = b.ropeTable("rope", b.positions(), b.table("rope.frequencies", f.rope.inverseFrequencies()));
    std::vector<Cache> caches;
    for (int64_t layer = 0; layer < f.layers; ++layer) {
      prefix = "blk." + std::to_string(layer) + ".";
      x = attentionBlock(x, b.cache(layer), caches);
      x = feedForwardBlock(x);
    }
    x = b.gatherRows("logits_rows", x, b.logitsRows());
    x = b.rmsNorm("output_norm", x, b.vector("output_norm", "output_norm.weight", f.hidden), f.normEps);
    Weight head = f.tiedHead ? embedding : b.matrix("output", f.vocab, f.hidden);
    b.finish(b.linear("output", x, head), caches); // [logits rows, vocab]
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
    q = b.rope(prefix + "attn_q_rope", q, rope, f.headDim);
    k = b.rope(prefix + "attn_k_rope", k, rope, f.headDim);
    caches.push_back(b.append(prefix + "kv", cache, k, v));
    Value attended =
        b.attention(prefix + "attn", q, caches.back(), f.headDim, 1.0 / std::sqrt(double(f.headDim)),
                    f.slidingWindow); // [tokens, heads * head_dim]
    Value output = projection("attn_output", attended, f.hidden, queryColumns, f.attentionOutputBias);
    return b.add(prefix + "attn_residual", x, output);
  }

  /// Norm, down(silu(gate) * up), residual.
  Value feedForwardBlock(Value x) {
    Value h = norm("ffn_norm", x);
    Value gate = projection("ffn_gate", h, f.ffn, f.hidden, false); // [tokens, ffn]
    Value up = projection("ffn_up", h, f.ffn, f.hidden, false);
    Value act = b.siluGate(prefix + "ffn_act", gate, up);
    Value down = projection("ffn_down", act, f.hidden, f.ffn, false);
    return b.add(prefix + "ffn_residual", x, down);
  }

  Value norm(const char *name, Value x) {
    Weight weight = b.vector(prefix + name, prefix + name + ".weight", f.hidden);
    return b.rmsNorm(prefix + name, x, weight, f.normEps);
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
  std::string prefix; // "blk.N."
  Value rope{};
};

} // namespace

void llmc::buildLlama(ModelBuilder &builder, const ModelFacts &facts) {
  // A file that stores neighbours together does so for whole heads; nobody has published a partial one.
  if (facts.rope.interleavedRows && facts.rope.rotaryDim != facts.headDim)
    throw Error("expected a rotary dimension equal to the head dimension " + std::to_string(facts.headDim) +
                " for interleaved rows, got " + std::to_string(facts.rope.rotaryDim));
  Llama(builder, facts).build();
}
