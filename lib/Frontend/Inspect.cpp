//===- Inspect.cpp --------------------------------------------------------===//
#include "llmc/Frontend/Inspect.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <cstdarg>
#include <nlohmann/json.hpp>

using namespace llmc;

uint64_t llmc::kvBytesPerToken(const ModelFacts &facts, unsigned elementBytes) {
  return 2 * static_cast<uint64_t>(facts.layers) * static_cast<uint64_t>(facts.kvHeads) *
         static_cast<uint64_t>(facts.headDim) * elementBytes;
}

namespace {

struct TypeTotal {
  uint64_t tensors = 0, parameters = 0, bytes = 0;
};

uint64_t parameters(const TensorFact &tensor) {
  uint64_t count = 1;
  for (int64_t extent : tensor.shape)
    count *= static_cast<uint64_t>(extent);
  return count;
}

std::map<DType, TypeTotal> totalsByType(const ModelFacts &facts) {
  std::map<DType, TypeTotal> totals;
  for (const TensorFact &tensor : facts.tensors) {
    TypeTotal &total = totals[tensor.type];
    ++total.tensors;
    total.parameters += parameters(tensor);
    total.bytes += tensor.bytes;
  }
  return totals;
}

const char *scalingName(const RopeFacts &rope) {
  switch (rope.scaling) {
  case RopeFacts::Scaling::None:
    return rope.freqFactors.empty() ? "none" : "factors of the file";
  case RopeFacts::Scaling::Linear:
    return "linear";
  case RopeFacts::Scaling::Llama3:
    return "llama3";
  }
  return "?";
}

class TextWriter {
public:
  [[gnu::format(printf, 2, 3)]] void line(const char *format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    int length = std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    text.append(buffer, std::min<size_t>(static_cast<size_t>(std::max(length, 0)), sizeof buffer - 1));
    text += '\n';
  }
  std::string text;
};

using Long = long long;

void writeTensors(const ModelFacts &facts, TextWriter &out) {
  size_t width = 0;
  for (const TensorFact &tensor : facts.tensors)
    width = std::max(width, tensor.name.size());
  out.line("tensors:");
  for (const TensorFact &tensor : facts.tensors)
    out.line("  %-*s  %-4s  %-16s  %12llu bytes", static_cast<int>(width), tensor.name.c_str(),
             toString(tensor.type), shapeString(tensor.shape).c_str(),
             static_cast<unsigned long long>(tensor.bytes));
  TypeTotal all;
  out.line("totals:");
  auto row = [&](const char *name, const TypeTotal &total) {
    out.line("  %-5s  %5llu tensors  %14llu parameters  %14llu bytes (%.1f MiB)", name,
             static_cast<unsigned long long>(total.tensors),
             static_cast<unsigned long long>(total.parameters), static_cast<unsigned long long>(total.bytes),
             static_cast<double>(total.bytes) / 1048576.0);
  };
  for (const auto &[type, total] : totalsByType(facts)) {
    row(toString(type), total);
    all.tensors += total.tensors;
    all.parameters += total.parameters;
    all.bytes += total.bytes;
  }
  row("all", all);
}

std::string tokenName(const TokenizerData &tokenizer, int32_t id) {
  if (id < 0 || static_cast<size_t>(id) >= tokenizer.tokens.size())
    return "none";
  return std::to_string(id) + " " + quote(tokenizer.tokens[static_cast<size_t>(id)]);
}

void writeTokenizer(const ModelFacts &facts, TextWriter &out) {
  const TokenizerData &tokenizer = facts.tokenizer;
  size_t special = static_cast<size_t>(std::count_if(tokenizer.added.begin(), tokenizer.added.end(),
                                                     [](const AddedToken &token) { return token.special; }));
  out.line("tokenizer:    byte-level BPE, %zu tokens, %zu merges, %zu added (%zu special)",
           tokenizer.tokens.size(), tokenizer.merges.size(), tokenizer.added.size(), special);
  std::vector<std::string> ends;
  for (int32_t id : tokenizer.eosIds)
    ends.push_back(tokenName(tokenizer, id));
  out.line("  bos:        %s%s", tokenName(tokenizer, tokenizer.bosId).c_str(),
           tokenizer.addBos ? ", added" : "");
  out.line("  eos:        %s", ends.empty() ? "none" : join(ends).c_str());
  for (const std::string &pattern : tokenizer.splitPatterns)
    out.line("  split:      %s", quote(pattern, 400).c_str());
  out.line("template:     %s",
           facts.chatTemplate.empty()
               ? "no"
               : ("yes, " + std::to_string(facts.chatTemplate.size()) + " bytes").c_str());
}

} // namespace

/// " in 13 of 26 layers", or nothing where all have it.
static std::string windowLayers(const ModelFacts &facts) {
  if (facts.windowLayers.empty())
    return "";
  auto count = std::count(facts.windowLayers.begin(), facts.windowLayers.end(), true);
  return " in " + std::to_string(count) + " of " + std::to_string(facts.layers) + " layers";
}

std::string llmc::inspectText(const ModelFacts &facts) {
  TextWriter out;
  const RopeFacts &rope = facts.rope;
  out.line("model:        %s", quote(facts.name).c_str());
  out.line("format:       %s, %zu file%s", facts.format.c_str(), facts.files.size(),
           facts.files.size() == 1 ? "" : "s");
  out.line("architecture: %s", facts.architecture.c_str());
  out.line("layers:       %lld", static_cast<Long>(facts.layers));
  out.line("hidden:       %lld", static_cast<Long>(facts.hidden));
  out.line("heads:        %lld query, %lld kv, dimension %lld", static_cast<Long>(facts.heads),
           static_cast<Long>(facts.kvHeads), static_cast<Long>(facts.headDim));
  out.line("feed-forward: %lld", static_cast<Long>(facts.ffn));
  out.line("vocabulary:   %lld%s", static_cast<Long>(facts.vocab), facts.tiedHead ? " (tied head)" : "");
  out.line("context:      %lld", static_cast<Long>(facts.maxContext));
  if (facts.slidingWindow)
    out.line("window:       %lld%s", static_cast<Long>(facts.slidingWindow), windowLayers(facts).c_str());
  if (facts.attentionSoftCap > 0 || facts.finalSoftCap > 0)
    out.line("soft caps:    %g of scores, %g of logits (0: none)", facts.attentionSoftCap, facts.finalSoftCap);
  if (facts.attentionSinks)
    out.line("sinks:        one logit a head");
  out.line("norm epsilon: %g", facts.normEps);
  out.line("bias:         %s", facts.attentionOutputBias ? "q, k, v, o"
                               : facts.attentionBias     ? "q, k, v"
                                                         : "none");
  if (!facts.quantization.empty())
    out.line("quantization: %s, e4m3 with a scale per tensor or row", facts.quantization.c_str());
  out.line("rope:         theta %g, %lld dimensions, scaling %s", rope.theta,
           static_cast<Long>(rope.rotaryDim), scalingName(rope));
  out.line("kv cache:     %llu bytes a token in 16 bit, %llu in f32",
           static_cast<unsigned long long>(kvBytesPerToken(facts, 2)),
           static_cast<unsigned long long>(kvBytesPerToken(facts, 4)));
  writeTokenizer(facts, out);
  writeTensors(facts, out);
  for (const std::string &warning : facts.warnings)
    out.text += "warning: " + warning + "\n";
  return out.text;
}

std::string llmc::inspectJson(const ModelFacts &facts) {
  using Json = nlohmann::ordered_json;
  const RopeFacts &rope = facts.rope;
  const TokenizerData &tokenizer = facts.tokenizer;
  Json tensors = Json::array(), totals = Json::object();
  for (const TensorFact &tensor : facts.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"source_name", tensor.sourceName},
                       {"type", toString(tensor.type)},
                       {"shape", tensor.shape},
                       {"file", facts.files[tensor.file]},
                       {"offset", tensor.offset},
                       {"bytes", tensor.bytes}});
  for (const auto &[type, total] : totalsByType(facts))
    totals[toString(type)] = {
        {"tensors", total.tensors}, {"parameters", total.parameters}, {"bytes", total.bytes}};
  Json json = {
      {"format", facts.format},
      {"architecture", facts.architecture},
      {"name", facts.name},
      {"layers", facts.layers},
      {"hidden", facts.hidden},
      {"heads", facts.heads},
      {"kv_heads", facts.kvHeads},
      {"head_dim", facts.headDim},
      {"ffn", facts.ffn},
      {"vocab", facts.vocab},
      {"max_context", facts.maxContext},
      {"sliding_window", facts.slidingWindow},
      {"window_layers", facts.windowLayers},
      {"attention_soft_cap", facts.attentionSoftCap},
      {"final_soft_cap", facts.finalSoftCap},
      {"attention_sinks", facts.attentionSinks},
      {"norm_eps", facts.normEps},
      {"tied_head", facts.tiedHead},
      {"attention_bias", facts.attentionBias},
      {"attention_output_bias", facts.attentionOutputBias},
      {"quantization", facts.quantization},
      {"rope",
       {{"theta", rope.theta},
        {"dimensions", rope.rotaryDim},
        {"scaling", scalingName(rope)},
        {"factor", rope.factor}}},
      {"kv_bytes_per_token", {{"bf16", kvBytesPerToken(facts, 2)}, {"f32", kvBytesPerToken(facts, 4)}}},
      {"tokenizer",
       {{"model", "byte-level BPE"},
        {"tokens", tokenizer.tokens.size()},
        {"merges", tokenizer.merges.size()},
        {"added", tokenizer.added.size()},
        {"split_patterns", tokenizer.splitPatterns},
        {"bos", tokenizer.bosId},
        {"add_bos", tokenizer.addBos},
        {"eos", tokenizer.eosIds}}},
      {"chat_template", !facts.chatTemplate.empty()},
      {"totals", totals},
      {"tensors", tensors},
      {"warnings", facts.warnings},
  };
  // File names may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
