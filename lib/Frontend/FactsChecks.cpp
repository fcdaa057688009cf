//===- FactsChecks.cpp ----------------------------------------------------===//
#include "FactsChecks.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

using namespace llmc;
using namespace llmc::frontend;

int64_t frontend::checkedExtent(int64_t value, const std::string &where) {
  if (value < 1 || value > maxExtent)
    throw Error(where + ": expected a number from 1 to " + std::to_string(maxExtent) + ", got " +
                std::to_string(value));
  return value;
}

static void checkExtents(const ModelFacts &facts, const std::string &file) {
  auto fail = [&](const std::string &message) { throw Error(file + ": " + message); };
  for (auto [value, what] : {std::pair(facts.hidden, "hidden size"),
                             {facts.layers, "layers"},
                             {facts.heads, "attention heads"},
                             {facts.kvHeads, "kv heads"},
                             {facts.headDim, "head dimension"},
                             {facts.ffn, "feed-forward size"},
                             {facts.vocab, "vocabulary size"},
                             {facts.maxContext, "context length"}})
    checkedExtent(value, file + ": " + what);
  if (facts.heads % facts.kvHeads)
    fail("expected the attention heads to be a multiple of the kv heads, got " + std::to_string(facts.heads) +
         " and " + std::to_string(facts.kvHeads));
  if (facts.headDim * facts.heads > maxExtent)
    fail("expected heads * head dimension of at most " + std::to_string(maxExtent) + ", got " +
         std::to_string(facts.heads) + " * " + std::to_string(facts.headDim));
  if (facts.rope.rotaryDim > facts.headDim)
    fail("expected at most " + std::to_string(facts.headDim) +
         " rotated dimensions (the head dimension), got " + std::to_string(facts.rope.rotaryDim));
  // NaN fails as well.
  if (!(facts.normEps > 0 && facts.normEps < 1))
    fail("expected a norm epsilon above 0 and below 1, got " + std::to_string(facts.normEps));
}

namespace {

/// Looks the expected tensors up one by one and remembers which were asked for.
class TensorChecker {
public:
  TensorChecker(ModelFacts &facts, const Source &source) : facts(facts), source(source) {
    for (const TensorFact &tensor : facts.tensors)
      byName.emplace(tensor.name, &tensor);
  }

  void expect(const std::string &name, std::vector<int64_t> shape) {
    auto found = byName.find(name);
    if (found == byName.end())
      throw Error(source.weights + ": expected the tensor " + quote(source.nameInFile(name)) + " of shape " +
                  shapeString(shape) + ", got none");
    const TensorFact &tensor = *found->second;
    std::string where = facts.files[tensor.file] + ": tensor " + quote(tensor.sourceName);
    if (tensor.shape != shape)
      throw Error(where + ": expected shape " + shapeString(shape) + ", got " + shapeString(tensor.shape));
    bool layer = name.rfind("blk.", 0) == 0 || name == "output.weight"; // embedding rows are read one by one
    if (tensor.type == DType::E4M3 && (shape.size() == 1 || !layer))
      throw Error(where + ": expected F32, F16 or BF16, got F8_E4M3");
    if (shape.size() == 1 && blockSize(tensor.type) != 1)
      throw Error(where + ": expected F32, F16 or BF16 for a vector, got " + toString(tensor.type));
    used.insert(name);
  }

  /// Sorts out the tensors that nobody asked for.
  void finish() {
    std::vector<TensorFact> kept;
    for (TensorFact &tensor : facts.tensors) {
      if (used.count(tensor.name)) {
        kept.push_back(std::move(tensor));
        continue;
      }
      std::string where = facts.files[tensor.file] + ": tensor " + quote(tensor.sourceName);
      if (changesResults(tensor.name))
        throw Error(where + ": expected only the tensors of a " + facts.architecture +
                    " layer, got one that llmc does not know");
      facts.warnings.push_back(where + ": not used");
    }
    facts.tensors = std::move(kept);
  }

private:
  /// Rotary tables are recomputed; everything else unknown inside one of the
  /// layers (biases, more norms, experts, adapters) would change the output.
  bool changesResults(const std::string &name) const {
    if (name.find("rot_embd") != std::string::npos || name.find("inv_freq") != std::string::npos)
      return false;
    if (name == "output_norm.bias" || name == "output.bias")
      return true;
    if (name.rfind("blk.", 0) != 0)
      return false;
    return std::atoll(name.c_str() + 4) < facts.layers;
  }

  ModelFacts &facts;
  const Source &source;
  std::unordered_map<std::string, const TensorFact *> byName;
  std::unordered_set<std::string> used;
};

} // namespace

void frontend::forEachTensor(const ModelFacts &facts, const TensorVisitor &expect) {
  int64_t queryRows = facts.heads * facts.headDim, kvRows = facts.kvHeads * facts.headDim;
  expect("token_embd.weight", {facts.vocab, facts.hidden});
  for (int64_t layer = 0; layer < facts.layers; ++layer) {
    std::string block = "blk." + std::to_string(layer) + ".";
    expect(block + "attn_norm.weight", {facts.hidden});
    expect(block + "attn_q.weight", {queryRows, facts.hidden});
    expect(block + "attn_k.weight", {kvRows, facts.hidden});
    expect(block + "attn_v.weight", {kvRows, facts.hidden});
    if (facts.attentionBias) {
      expect(block + "attn_q.bias", {queryRows});
      expect(block + "attn_k.bias", {kvRows});
      expect(block + "attn_v.bias", {kvRows});
    }
    if (facts.attentionSinks)
      expect(block + "attn_sinks.weight", {facts.heads});
    expect(block + "attn_output.weight", {facts.hidden, queryRows});
    if (facts.attentionOutputBias)
      expect(block + "attn_output.bias", {facts.hidden});
    if (facts.postNorms)
      expect(block + "post_attention_norm.weight", {facts.hidden});
    expect(block + "ffn_norm.weight", {facts.hidden});
    expect(block + "ffn_gate.weight", {facts.ffn, facts.hidden});
    expect(block + "ffn_up.weight", {facts.ffn, facts.hidden});
    expect(block + "ffn_down.weight", {facts.hidden, facts.ffn});
    if (facts.postNorms)
      expect(block + "post_ffw_norm.weight", {facts.hidden});
  }
  expect("output_norm.weight", {facts.hidden});
  if (!facts.tiedHead)
    expect("output.weight", {facts.vocab, facts.hidden});
}

void frontend::checkGeometry(const ModelFacts &facts, const std::string &config) {
  checkExtents(facts, config);
  checkRope(facts.rope, config + ": rope");
}

void frontend::checkFacts(ModelFacts &facts, const Source &source) {
  checkGeometry(facts, source.config);
  TensorChecker checker(facts, source);
  // One by one: a lying layer count stops at the first layer that is not there.
  forEachTensor(facts, [&](const std::string &name, const std::vector<int64_t> &shape) { checker.expect(name, shape); });
  checker.finish();
}

void frontend::checkOverlaps(const std::vector<TensorFact> &tensors, const std::vector<std::string> &files) {
  std::vector<const TensorFact *> order;
  for (const TensorFact &tensor : tensors)
    if (tensor.bytes > 0)
      order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorFact *a, const TensorFact *b) {
    return std::pair(a->file, a->offset) < std::pair(b->file, b->offset);
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorFact &before = *order[i - 1], &after = *order[i];
    if (before.file == after.file && before.offset + before.bytes > after.offset)
      throw Error(files[after.file] + ": tensor " + quote(after.sourceName) + " at byte " +
                  std::to_string(after.offset) + ": expected to start after tensor " +
                  quote(before.sourceName) + ", which ends at byte " +
                  std::to_string(before.offset + before.bytes));
  }
}

void frontend::checkTokenizer(const TokenizerData &tokenizer, int64_t vocab, const std::string &file) {
  auto fail = [&](const std::string &message) { throw Error(file + ": " + message); };
  if (static_cast<int64_t>(tokenizer.tokens.size()) > vocab)
    fail("expected at most " + std::to_string(vocab) + " tokens (the rows of the embedding), got " +
         std::to_string(tokenizer.tokens.size()));
  int64_t count = static_cast<int64_t>(tokenizer.tokens.size());
  auto checkId = [&](int32_t id, const char *what) {
    if (id < -1 || id >= count)
      fail(std::string("expected a ") + what + " id below " + std::to_string(count) + ", got " +
           std::to_string(id));
  };
  checkId(tokenizer.bosId, "bos token");
  checkId(tokenizer.padId, "pad token");
  checkId(tokenizer.unkId, "unknown token");
  for (int32_t id : tokenizer.eosIds)
    checkId(id, "eos token");
  if (tokenizer.addBos && tokenizer.bosId < 0)
    fail("expected a bos token, since the tokenizer adds one, got none");
  if (tokenizer.addEos && tokenizer.eosIds.empty())
    fail("expected an eos token, since the tokenizer adds one, got none");
  std::unordered_set<std::string_view> spellings(tokenizer.tokens.begin(), tokenizer.tokens.end());
  for (size_t i = 0; i < tokenizer.merges.size(); ++i) {
    const auto &[left, right] = tokenizer.merges[i];
    // The second part's mark of a continuation is not in the result.
    bool continues = !tokenizer.continuingPrefix.empty() && right.starts_with(tokenizer.continuingPrefix);
    std::string joined = left + (continues ? right.substr(tokenizer.continuingPrefix.size()) : right);
    for (const std::string &part : {left, right, joined})
      if (part.empty() || !spellings.count(part))
        fail("merge " + std::to_string(i) + ": expected parts and a result that are tokens, got " +
             quote(part));
  }
  for (const AddedToken &token : tokenizer.added)
    if (token.content.empty())
      fail("added token " + std::to_string(token.id) + ": expected text, got none");
}
