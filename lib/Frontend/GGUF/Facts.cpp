//===- Facts.cpp - GGUF keys to ModelFacts --------------------------------===//
#include "../FactsChecks.h"
#include "GGUF.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llmc;
using namespace llmc::gguf;

namespace {

class FactsReader {
public:
  FactsReader(const InputFile &file, const OpenFile &open, Parts parts)
      : file(file), open(open), metadata(std::move(parts.metadata)), tensors(std::move(parts.tensors)) {
    facts.files = std::move(parts.files);
  }

  ModelFacts run() {
    facts.format = "gguf";
    readArchitecture();
    readGeometry();
    facts.tensors = std::move(tensors);
    readRope();
    facts.tiedHead = !facts.find("output.weight");
    facts.attentionBias = facts.architecture == "qwen2" || facts.find("blk.0.attn_q.bias");
    facts.attentionOutputBias = facts.find("blk.0.attn_output.bias") != nullptr;
    std::string all = facts.files.front();
    if (facts.files.size() > 1)
      all += " and the other " + std::to_string(facts.files.size() - 1) + " parts";
    frontend::checkFacts(facts, {facts.files.front(), all, [](const std::string &name) { return name; }});
    facts.tokenizer = readTokenizer(metadata);
    frontend::checkTokenizer(facts.tokenizer, facts.vocab, facts.files.front());
    if (const std::string *chatTemplate = metadata.string("tokenizer.chat_template"))
      facts.chatTemplate = *chatTemplate;
    return std::move(facts);
  }

private:
  std::string key(const char *suffix) const { return facts.architecture + "." + suffix; }

  void readArchitecture() {
    const std::string *architecture = metadata.string("general.architecture");
    if (!architecture)
      metadata.fail("general.architecture", "expected one of llama, qwen2, gemma2, got no such key");
    if (*architecture != "llama" && *architecture != "qwen2" && *architecture != "gemma2")
      metadata.fail("general.architecture",
                    "unsupported architecture: expected one of llama (also mistral), qwen2, gemma2, got " +
                        quote(*architecture));
    facts.architecture = *architecture;
    if (const std::string *name = metadata.string("general.name"))
      facts.name = *name;
    // Kept out of checkFacts since the keys are GGUF's own.
    if (auto experts = metadata.integer(key("expert_count")); experts && *experts > 0)
      metadata.fail(key("expert_count"),
                    "expected a dense model, got " + std::to_string(*experts) + " experts");
  }

  void readGeometry() {
    facts.hidden = metadata.extent(key("embedding_length"));
    facts.layers = metadata.extent(key("block_count"));
    facts.heads = metadata.extent(key("attention.head_count"));
    facts.kvHeads = metadata.optionalExtent(key("attention.head_count_kv")).value_or(facts.heads);
    if (facts.heads % facts.kvHeads)
      metadata.fail(key("attention.head_count_kv"), "expected kv heads that divide the " + std::to_string(facts.heads) +
                                                        " attention heads, got " + std::to_string(facts.kvHeads));
    facts.ffn = metadata.extent(key("feed_forward_length"));
    facts.maxContext = metadata.extent(key("context_length"));
    readHeadDim();
    auto epsilon = metadata.real(key("attention.layer_norm_rms_epsilon"));
    if (!epsilon)
      metadata.fail(key("attention.layer_norm_rms_epsilon"), "expected a number, got no such key");
    if (!(*epsilon > 0 && *epsilon < 1))
      metadata.fail(key("attention.layer_norm_rms_epsilon"),
                    "expected a number above 0 and below 1, got " + std::to_string(*epsilon));
    facts.normEps = *epsilon;
    readWindow();
    if (facts.architecture == "gemma2")
      readGemma2();
    readVocabulary();
  }

  /// As llama.cpp's models/gemma2.cpp: norm weights are stored with their 1; of the 27B, which its 46 layers tell, scores are scaled by
  /// the hidden size a head.
  void readGemma2() {
    facts.postNorms = facts.geluGate = true;
    facts.embeddingScale = std::sqrt(static_cast<double>(facts.hidden));
    if (facts.layers == 46)
      facts.attentionScale = 1 / std::sqrt(static_cast<double>(facts.hidden / facts.heads));
    facts.attentionSoftCap = positive("attn_logit_softcapping").value_or(50);
    facts.finalSoftCap = positive("final_logit_softcapping").value_or(30);
    // Every other layer, from the first on. A lying layer count stops at the tensors, not here.
    for (int64_t layer = 0; facts.slidingWindow && layer < std::min<int64_t>(facts.layers, static_cast<int64_t>(tensors.size())); ++layer)
      facts.windowLayers.push_back(layer % 2 == 0);
  }

  void readWindow() {
    facts.slidingWindow = metadata.integer(key("attention.sliding_window")).value_or(facts.architecture == "gemma2" ? 4096 : 0);
    if (facts.slidingWindow < 0 || facts.slidingWindow > frontend::maxExtent)
      metadata.fail(key("attention.sliding_window"), "expected a number from 0 (no window) to " +
                                                         std::to_string(frontend::maxExtent) + ", got " +
                                                         std::to_string(facts.slidingWindow));
    if (facts.slidingWindow >= facts.maxContext)
      facts.slidingWindow = 0;
  }

  void readHeadDim() {
    auto keyLength = metadata.optionalExtent(key("attention.key_length"));
    auto valueLength = metadata.optionalExtent(key("attention.value_length"));
    if (!keyLength && facts.hidden % facts.heads)
      metadata.fail(key("embedding_length"), "expected a multiple of the " + std::to_string(facts.heads) +
                                                 " heads, since there is no key_length, got " +
                                                 std::to_string(facts.hidden));
    facts.headDim = keyLength.value_or(facts.hidden / facts.heads);
    if (valueLength.value_or(facts.headDim) != facts.headDim)
      metadata.fail(key("attention.value_length"), "expected the key length " +
                                                       std::to_string(facts.headDim) + ", got " +
                                                       std::to_string(*valueLength));
  }

  void readVocabulary() {
    auto vocab = metadata.optionalExtent(key("vocab_size"));
    auto embedding = std::find_if(tensors.begin(), tensors.end(), [](const TensorFact &tensor) {
      return tensor.name == "token_embd.weight";
    });
    if (!vocab && embedding != tensors.end())
      vocab = embedding->shape.front();
    if (!vocab)
      throw Error(facts.files.front() + ": expected the tensor \"token_embd.weight\", got none");
    facts.vocab = *vocab;
  }

  /// A number that stays positive and finite in f32, which the table uses.
  std::optional<double> positive(const char *suffix) const {
    auto value = metadata.real(key(suffix));
    if (value && (!std::isfinite(static_cast<float>(*value)) || !(static_cast<float>(*value) > 0)))
      metadata.fail(key(suffix), "expected a positive finite number, got " + std::to_string(*value));
    return value;
  }

  void readRope() {
    RopeFacts &rope = facts.rope;
    rope.interleavedRows = facts.architecture == "llama";
    rope.rotaryDim = metadata.optionalExtent(key("rope.dimension_count")).value_or(facts.headDim);
    if (metadata.find(key("rope.dimension_count")) && (rope.rotaryDim % 2 || rope.rotaryDim > facts.headDim))
      metadata.fail(key("rope.dimension_count"), "expected an even number of rotated dimensions up to the head dimension " +
                                                     std::to_string(facts.headDim) + ", got " + std::to_string(rope.rotaryDim));
    rope.theta = positive("rope.freq_base").value_or(10000.0);
    const std::string *type = metadata.string(key("rope.scaling.type"));
    auto factor = positive("rope.scaling.factor");
    if (!factor)
      factor = positive("rope.scale_linear");
    if (type && *type != "none" && *type != "linear")
      metadata.fail(key("rope.scaling.type"), "expected none or linear, got " + quote(*type));
    // A factor without a type means linear, as in llama.cpp; linear without a factor scales nothing.
    if (factor && !(type && *type == "none")) {
      rope.scaling = RopeFacts::Scaling::Linear;
      rope.factor = *factor;
      if (*factor == 1.0)
        rope.scaling = RopeFacts::Scaling::None;
    }
    if (facts.find("rope_factors_long.weight"))
      throw Error(facts.files.front() +
                  ": tensor \"rope_factors_long.weight\": expected rope without longrope scaling, got it");
    readFreqFactors();
  }

  /// Llama 3's scaling comes as one divisor a pair.
  void readFreqFactors() {
    auto found = std::find_if(facts.tensors.begin(), facts.tensors.end(),
                              [](const TensorFact &tensor) { return tensor.name == "rope_freqs.weight"; });
    if (found == facts.tensors.end())
      return;
    std::string where = facts.files[found->file] + ": tensor \"rope_freqs.weight\"";
    if (found->type != DType::F32)
      throw Error(where + ": expected type F32, got " + llmc::toString(found->type));
    if (found->shape != std::vector<int64_t>{facts.rope.rotaryDim / 2})
      throw Error(where + ": expected shape " + shapeString(std::vector<int64_t>{facts.rope.rotaryDim / 2}) +
                  ", got " + shapeString(found->shape));
    facts.rope.freqFactors.resize(found->bytes / sizeof(float));
    auto read = [&](const InputFile &part) { part.read(found->offset, facts.rope.freqFactors.data(), found->bytes); };
    if (facts.files.size() == 1)
      read(file);
    else
      read(open(facts.files[found->file]));
    facts.tensors.erase(found); // it is now part of the table
  }

  const InputFile &file; // the given part
  const OpenFile &open;
  Metadata metadata;
  std::vector<TensorFact> tensors;
  ModelFacts facts;
};

} // namespace

ModelFacts gguf::loadFile(const InputFile &file, const OpenFile &open) {
  return FactsReader(file, open, readParts(file, open)).run();
}
