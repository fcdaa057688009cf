//===- BuildModelTest.cpp - facts to lm -----------------------------------===//
#include "llmc/Frontend/BuildModel.h"
#include "dialects/LM/LM.h"
#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/Error.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace llmc;

namespace {

void addTensor(ModelFacts &facts, const std::string &name, DType type, std::vector<int64_t> shape) {
  TensorFact fact;
  fact.name = fact.sourceName = name;
  fact.type = type;
  fact.shape = shape;
  fact.offset = facts.tensors.empty() ? 64 : facts.tensors.back().offset + facts.tensors.back().bytes;
  fact.bytes = storageBytes(type, uint64_t(shape[0]) * uint64_t(shape.size() == 2 ? shape[1] : 1));
  facts.tensors.push_back(fact);
}

/// Two layers; hidden 96 = no power of two, head_dim 32 apart from hidden / heads = 24.
ModelFacts tinyFacts(const std::string &architecture) {
  ModelFacts f;
  f.format = "gguf";
  f.architecture = architecture;
  f.name = "tiny";
  f.hidden = 96, f.layers = 2, f.heads = 4, f.kvHeads = 2, f.headDim = 32, f.ffn = 160, f.vocab = 200,
  f.maxContext = 512;
  f.tiedHead = true;
  f.rope.rotaryDim = 32;
  f.files = {"tiny.gguf"};
  return f;
}

void addTensors(ModelFacts &f, DType type = DType::Q4_1) {
  f.tensors.clear();
  addTensor(f, "token_embd.weight", DType::Q8_0, {f.vocab, f.hidden});
  for (int64_t layer = 0; layer < f.layers; ++layer) {
    std::string p = "blk." + std::to_string(layer) + ".";
    addTensor(f, p + "attn_norm.weight", DType::F32, {f.hidden});
    addTensor(f, p + "attn_q.weight", type, {f.heads * f.headDim, f.hidden});
    addTensor(f, p + "attn_k.weight", type, {f.kvHeads * f.headDim, f.hidden});
    addTensor(f, p + "attn_v.weight", type, {f.kvHeads * f.headDim, f.hidden});
    addTensor(f, p + "attn_output.weight", type, {f.hidden, f.heads * f.headDim});
    addTensor(f, p + "ffn_norm.weight", DType::F32, {f.hidden});
    addTensor(f, p + "ffn_gate.weight", type, {f.ffn, f.hidden});
    addTensor(f, p + "ffn_up.weight", type, {f.ffn, f.hidden});
    addTensor(f, p + "ffn_down.weight", type, {f.hidden, f.ffn});
    if (f.attentionBias) {
      addTensor(f, p + "attn_q.bias", DType::F32, {f.heads * f.headDim});
      addTensor(f, p + "attn_k.bias", DType::F32, {f.kvHeads * f.headDim});
      addTensor(f, p + "attn_v.bias", DType::F32, {f.kvHeads * f.headDim});
    }
    if (f.attentionOutputBias)
      addTensor(f, p + "attn_output.bias", DType::F32, {f.hidden});
    if (f.attentionSinks)
      addTensor(f, p + "attn_sinks.weight", DType::F32, {f.heads});
    if (f.postNorms) {
      addTensor(f, p + "post_attention_norm.weight", DType::F32, {f.hidden});
      addTensor(f, p + "post_ffw_norm.weight", DType::F32, {f.hidden});
    }
  }
  addTensor(f, "output_norm.weight", DType::F32, {f.hidden});
  if (!f.tiedHead)
    addTensor(f, "output.weight", type, {f.vocab, f.hidden});
}

class BuildModel : public testing::Test {
protected:
  BuildModel() : context(mlir::MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &d) { diagnostics += d.str() + "\n"; });
  }
  void build(const ModelFacts &facts) { module = buildModel(&context, facts); }
  lm::WeightOp weight(llvm::StringRef name) { return module->lookupSymbol<lm::WeightOp>(name); }
  lm::SpanAttr span(llvm::StringRef name, unsigned index = 0) {
    return llvm::cast<lm::SpanAttr>(weight(name).getSources()->getValue()[index]);
  }
  /// The op whose location has this name.
  template <typename Op> Op named(llvm::StringRef name) {
    Op found;
    module->walk([&](Op op) {
      if (lm::nameOf(op) == name)
        found = op;
    });
    return found;
  }
  template <typename Op> int count() {
    int n = 0;
    module->walk([&](Op) { ++n; });
    return n;
  }
  mlir::LogicalResult run(llvm::function_ref<void(mlir::OpPassManager &)> populate) {
    mlir::PassManager pm(&context);
    populate(pm);
    return pm.run(*module);
  }

  mlir::MLIRContext context;
  std::string diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

std::string errorOf(const ModelFacts &facts) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  try {
    buildModel(&context, facts);
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST_F(BuildModel, Llama) {
  ModelFacts facts = tinyFacts("llama");
  facts.rope.interleavedRows = true;
  addTensors(facts);
  build(facts);
  auto step = module->lookupSymbol<mlir::func::FuncOp>("step");
  ASSERT_TRUE(step);
  EXPECT_EQ(step.getNumArguments(), 5u);
  EXPECT_EQ(step.getNumResults(), 3u);
  EXPECT_EQ(named<lm::LinearOp>("output").getWeight(), "token_embd"); // tied
  EXPECT_FALSE(weight("output"));
  EXPECT_EQ(span("blk.1.attn_q").getDeinterleave(), 32);
  EXPECT_EQ(span("blk.1.attn_k").getDeinterleave(), 32);
  EXPECT_EQ(span("blk.1.attn_v").getDeinterleave(), 0);
  EXPECT_EQ(span("blk.1.attn_output").getDeinterleave(), 0);
  const TensorFact *fact = facts.find("blk.1.attn_k.weight");
  EXPECT_EQ(span("blk.1.attn_k").getOffset(), fact->offset);
  EXPECT_EQ(span("blk.1.attn_k").getBytes(), fact->bytes);
  auto attention = named<lm::AttentionOp>("blk.0.attn");
  EXPECT_EQ(attention.getWindow(), 0u);
  EXPECT_DOUBLE_EQ(attention.getScale().convertToDouble(), 1.0 / std::sqrt(32.0));
  auto model = (*module)->getAttrOfType<mlir::DictionaryAttr>("lm.model");
  EXPECT_EQ(model.getAs<mlir::IntegerAttr>("kv_heads").getInt(), 2);
  EXPECT_EQ(model.getAs<mlir::StringAttr>("architecture").getValue(), "llama");
}

TEST_F(BuildModel, EveryOpHasItsName) {
  ModelFacts facts = tinyFacts("llama");
  addTensors(facts);
  build(facts);
  std::set<std::string> names;
  module->walk([&](mlir::Operation *op) {
    if (!llvm::isa<lm::LMDialect>(op->getDialect()) || llvm::isa<lm::WeightOp>(op))
      return;
    std::string name = lm::nameOf(op).str();
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(lm::layerOf(name), name.rfind("blk.", 0) == 0 ? name[4] - '0' : -1) << name;
  });
  for (const char *name : {"token_embd", "rope", "blk.0.attn_norm", "blk.0.attn_q", "blk.0.attn_q_rope",
                           "blk.0.kv", "blk.0.attn", "blk.0.attn_output", "blk.0.attn_residual",
                           "blk.0.ffn_norm", "blk.0.ffn_gate", "blk.0.ffn_up", "blk.0.ffn_act",
                           "blk.0.ffn_down", "blk.1.ffn_residual", "logits_rows", "output_norm", "output"})
    EXPECT_TRUE(names.count(name)) << name;
}

TEST_F(BuildModel, Qwen2) {
  ModelFacts facts = tinyFacts("qwen2");
  facts.attentionBias = true;
  facts.tiedHead = false;
  addTensors(facts);
  build(facts);
  EXPECT_EQ(named<lm::LinearOp>("blk.0.attn_q").getBias(), "blk.0.attn_q.bias");
  EXPECT_EQ(named<lm::LinearOp>("blk.0.attn_v").getBias(), "blk.0.attn_v.bias");
  EXPECT_FALSE(named<lm::LinearOp>("blk.0.attn_output").getBias());
  EXPECT_EQ(span("blk.0.attn_q").getDeinterleave(), 0);
  EXPECT_EQ(named<lm::LinearOp>("output").getWeight(), "output");
}

TEST_F(BuildModel, LlamaWithBiases) {
  ModelFacts facts = tinyFacts("llama");
  facts.attentionBias = facts.attentionOutputBias = true;
  facts.rope.interleavedRows = true;
  addTensors(facts);
  build(facts);
  EXPECT_EQ(span("blk.0.attn_q.bias").getDeinterleave(), 32);
  EXPECT_EQ(span("blk.0.attn_k.bias").getDeinterleave(), 32);
  EXPECT_EQ(span("blk.0.attn_v.bias").getDeinterleave(), 0);
  EXPECT_EQ(named<lm::LinearOp>("blk.1.attn_output").getBias(), "blk.1.attn_output.bias");
}

TEST_F(BuildModel, MistralWindow) {
  ModelFacts facts = tinyFacts("mistral");
  facts.slidingWindow = 48;
  addTensors(facts);
  build(facts);
  EXPECT_EQ(named<lm::AttentionOp>("blk.1.attn").getWindow(), 48u);
}

TEST_F(BuildModel, Gemma2) {
  ModelFacts facts = tinyFacts("gemma2");
  facts.slidingWindow = 48, facts.windowLayers = {true, false};
  facts.normAddsOne = facts.postNorms = facts.geluGate = true;
  facts.embeddingScale = 9.5, facts.attentionScale = 0.2, facts.attentionSoftCap = 50, facts.finalSoftCap = 30;
  addTensors(facts);
  build(facts);
  EXPECT_EQ(named<lm::EmbeddingOp>("token_embd").getScale()->convertToDouble(), 9.5);
  auto attention = named<lm::AttentionOp>("blk.0.attn");
  EXPECT_EQ(attention.getWindow(), 48u);
  EXPECT_EQ(attention.getScale().convertToDouble(), 0.2);
  EXPECT_EQ(attention.getSoftCap()->convertToDouble(), 50);
  EXPECT_FALSE(attention.getSinks());
  EXPECT_EQ(named<lm::AttentionOp>("blk.1.attn").getWindow(), 0u);
  EXPECT_EQ(named<lm::GatedActivationOp>("blk.0.ffn_act").getActivation(), lm::Activation::GELUTanh);
  EXPECT_EQ(named<lm::AddOp>("blk.0.attn_residual").getRhs(), named<lm::RMSNormOp>("blk.0.post_attention_norm").getResult(0));
  EXPECT_EQ(named<lm::AddOp>("blk.1.ffn_residual").getRhs(), named<lm::RMSNormOp>("blk.1.post_ffw_norm").getResult(0));
  for (const char *norm : {"blk.0.attn_norm", "blk.0.post_attention_norm", "blk.1.ffn_norm", "blk.1.post_ffw_norm", "output_norm"})
    EXPECT_EQ(weight(norm).getAddend()->convertToFloat(), 1.0f) << norm;
  EXPECT_EQ(named<lm::SoftCapOp>("output_cap").getCap().convertToDouble(), 30);
  EXPECT_EQ(count<lm::ScaleOp>(), 0);
}

TEST_F(BuildModel, GraniteSWA) {
  ModelFacts facts = tinyFacts("granite_swa");
  facts.attentionSinks = true;
  facts.residualScale = 0.5, facts.logitsScale = 0.125;
  facts.layers = 3, facts.layerThetas = {500, 0, 10000};
  addTensors(facts);
  build(facts);
  EXPECT_EQ(named<lm::AttentionOp>("blk.2.attn").getSinks(), "blk.2.attn_sinks");
  EXPECT_EQ(count<lm::RopeTableOp>(), 2);
  EXPECT_NE(named<lm::RopeOp>("blk.0.attn_q_rope").getTable(), named<lm::RopeOp>("blk.2.attn_q_rope").getTable());
  EXPECT_FALSE(named<lm::RopeOp>("blk.1.attn_q_rope"));
  EXPECT_EQ(named<lm::KVAppendOp>("blk.1.kv").getKeys(), named<lm::LinearOp>("blk.1.attn_k").getResult());
  EXPECT_EQ(count<lm::ScaleOp>(), 2 * 3 + 1);
  EXPECT_EQ(named<lm::ScaleOp>("blk.0.attn_residual_scale").getFactor().convertToDouble(), 0.5);
  EXPECT_EQ(named<lm::ScaleOp>("output_scale").getFactor().convertToDouble(), 0.125);
  EXPECT_FALSE(weight("output_norm").getAddend());
}

TEST_F(BuildModel, LayersThatAreNotAllThere) {
  ModelFacts facts = tinyFacts("granite_swa");
  facts.layerThetas = {500};
  addTensors(facts);
  EXPECT_NE(errorOf(facts).find("expected 2 thetas, one a layer, got 1"), std::string::npos);
  facts.layerThetas.clear();
  facts.slidingWindow = 4, facts.windowLayers = {true, false, true};
  EXPECT_NE(errorOf(facts).find("one a layer, got 3"), std::string::npos);
}

TEST_F(BuildModel, RopeFrequencies) {
  ModelFacts facts = tinyFacts("llama");
  facts.rope.scaling = RopeFacts::Scaling::Llama3;
  facts.rope.factor = 32, facts.rope.originalContext = 8192, facts.rope.theta = 500000;
  addTensors(facts);
  build(facts);
  std::vector<float> expected = facts.rope.inverseFrequencies();
  auto value = llvm::cast<mlir::DenseElementsAttr>(*weight("rope.frequencies").getValue());
  EXPECT_EQ(std::vector<float>(value.value_begin<float>(), value.value_end<float>()), expected);
}

TEST_F(BuildModel, PipelinesFuseAndDecide) {
  ModelFacts facts = tinyFacts("llama");
  facts.rope.interleavedRows = true;
  addTensors(facts);
  build(facts);
  ASSERT_TRUE(mlir::succeeded(run([](mlir::OpPassManager &pm) { lm::buildLMFusionPipeline(pm); })))
      << diagnostics;
  EXPECT_EQ(count<lm::LinearOp>(), 2 * 3 + 1); // qkv, attn_output, ffn_down; output
  EXPECT_EQ(count<lm::RopeAppendOp>(), 2);
  EXPECT_EQ(count<lm::GatedLinearOp>(), 2);
  EXPECT_EQ(count<lm::AddOp>(), 0);
  EXPECT_EQ(span("blk.0.attn_qkv", 1).getDeinterleave(), 32);
  EXPECT_TRUE(named<lm::LinearOp>("blk.0.attn_qkv"));
  EXPECT_TRUE(named<lm::LinearOp>("blk.1.ffn_residual").getResidual());
  ASSERT_TRUE(mlir::succeeded(run([](mlir::OpPassManager &pm) { lm::buildLMDecidePipeline(pm); })))
      << diagnostics;
  EXPECT_EQ(count<lm::QuantizeOp>(),
            2); // only what gated_linear writes; norms and attention write codes themselves
  EXPECT_EQ(named<lm::AttentionOp>("blk.0.attn").getFormat(), lm::Format::Q16);
  EXPECT_EQ(weight("blk.0.ffn_gate_up").getLayout(), lm::Layout::N16Q4_1);
  EXPECT_EQ(weight("token_embd").getOffset(), 0u);
}

TEST_F(BuildModel, PipelinesWithEverythingOff) {
  ModelFacts facts = tinyFacts("llama");
  addTensors(facts, DType::F16);
  build(facts);
  ASSERT_TRUE(mlir::succeeded(run([](mlir::OpPassManager &pm) {
    lm::buildLMFusionPipeline(pm, {false, false, false});
    lm::DecideOptions options;
    options.compute = "f32";
    lm::buildLMDecidePipeline(pm, options);
  }))) << diagnostics;
  EXPECT_EQ(count<lm::LinearOp>(), 2 * 7 + 1);
  EXPECT_EQ(count<lm::AddOp>(), 4);
  EXPECT_EQ(count<lm::QuantizeOp>() + count<lm::RoundOp>(), 0);
  auto kv = llvm::cast<lm::KVType>(named<lm::KVAppendOp>("blk.0.kv").getType());
  EXPECT_TRUE(kv.getElement().isF32());
  EXPECT_EQ(kv.getBlock(), 16);
}

TEST(BuildModelErrors, EveryTensorIsNeeded) {
  ModelFacts facts = tinyFacts("qwen2");
  facts.attentionBias = facts.attentionOutputBias = true;
  facts.tiedHead = false;
  addTensors(facts);
  ASSERT_EQ(errorOf(facts), "no error");
  for (size_t i = 0; i < facts.tensors.size(); ++i) {
    ModelFacts missing = facts, wrong = facts, bytes = facts;
    std::string name = facts.tensors[i].name;
    missing.tensors.erase(missing.tensors.begin() + i);
    EXPECT_NE(errorOf(missing).find("expected tensor " + name), std::string::npos) << errorOf(missing);
    wrong.tensors[i].shape[0] += 32;
    EXPECT_EQ(errorOf(wrong).rfind("tensor " + name + ": expected shape [", 0), 0u) << errorOf(wrong);
    wrong.tensors[i].shape = {};
    EXPECT_EQ(errorOf(wrong).rfind("tensor " + name + ": expected shape [", 0), 0u) << errorOf(wrong);
    bytes.tensors[i].bytes -= 2;
    EXPECT_EQ(errorOf(bytes).rfind("tensor " + name + ": expected ", 0), 0u) << errorOf(bytes);
  }
}

TEST(BuildModelErrors, Facts) {
  auto with = [](auto change) {
    ModelFacts facts = tinyFacts("llama");
    addTensors(facts);
    change(facts);
    return errorOf(facts);
  };
  EXPECT_EQ(with([](ModelFacts &f) { f.layers = 1000000000; }),
            "expected layers up to the 20 tensors, got 1000000000");
  EXPECT_EQ(with([](ModelFacts &f) { f.kvHeads = 0; }), "expected KV heads between 1 and 2^30, got 0");
  EXPECT_EQ(with([](ModelFacts &f) { f.kvHeads = 3; }),
            "expected heads to be a multiple of the 3 KV heads, got 4");
  EXPECT_EQ(with([](ModelFacts &f) { f.heads = f.headDim = int64_t(1) << 30; }),
            "expected heads * head dimension up to 2^30, got 1073741824 * 1073741824");
  EXPECT_EQ(with([](ModelFacts &f) { f.rope.rotaryDim = 34; }),
            "expected an even rotary dimension up to 32, got 34");
  EXPECT_EQ(with([](ModelFacts &f) { f.normEps = 0; }), "expected a positive norm epsilon, got 0.000000");
  EXPECT_EQ(with([](ModelFacts &f) { f.rope.interleavedRows = true, f.rope.rotaryDim = 16; }),
            "expected a rotary dimension equal to the head dimension 32 for interleaved rows, got 16");
  EXPECT_EQ(with([](ModelFacts &f) { f.architecture = "gpt2"; }).rfind("expected an architecture among ", 0),
            0u);
  EXPECT_EQ(with([](ModelFacts &f) { f.tensors.back().type = DType::Q8_0; }),
            "tensor output_norm.weight: expected rows of a multiple of 32 values for Q8_0, got shape [96]");
}

} // namespace
