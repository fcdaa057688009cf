//===- BuildModel.cpp - ModelBuilder on the lm dialect --------------------===//
#include "llmc/Frontend/BuildModel.h"

#include "dialects/LM/LM.h"
#include "llmc/Frontend/ModelBuilder.h"
#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/Error.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"

#include <map>

using namespace mlir;

namespace llmc {
namespace {

// The two enums of a storage name the same things in the same order (WritePackage.cpp asserts it).
lm::Storage toStorage(DType type) { return lm::Storage(type); }

std::string toText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

class Builder final : public ModelBuilder {
public:
  Builder(ModuleOp module, const ModelFacts &facts)
      : facts(facts), module(module), context(module.getContext()), weightBuilder(context), builder(context) {
    weightBuilder.setInsertionPointToStart(module.getBody());
    startStep();
  }

  Weight matrix(const std::string &name, int64_t rows, int64_t columns, int64_t headDim) override {
    return weight(name, name + ".weight", {rows, columns}, headDim);
  }
  Weight vector(const std::string &name, const std::string &tensor, int64_t size, int64_t headDim) override {
    return weight(name, tensor, {size}, headDim);
  }
  Weight normWeight(const std::string &name, int64_t size) override {
    Weight result = weight(name, name + ".weight", {size}, /*headDim=*/0);
    if (facts.normAddsOne)
      weights[result.index].setAddendAttr(builder.getF32FloatAttr(1));
    return result;
  }
  Weight table(const std::string &name, const std::vector<float> &values) override {
    if (values.empty())
      throw Error("expected values for " + name + ", got none");
    SmallVector<int64_t> shape = {1, int64_t(values.size())};
    auto type = RankedTensorType::get(shape, builder.getF32Type());
    return addWeight(name, lm::Storage::F32, shape, ArrayAttr(),
                     DenseElementsAttr::get(type, ArrayRef<float>(values)));
  }

  Value tokenIds() override { return {0}; }
  Value positions() override { return {1}; }
  Value logitsRows() override { return {2}; }
  Cache cache(int64_t layer) override { return {uint32_t(3 + layer)}; }

  Value embedding(const std::string &name, Value ids, Weight table, double scale) override {
    return keep(lm::EmbeddingOp::create(builder, loc(name), rows(shape(table)[1]), at(ids), symbol(table),
                                        scale == 1 ? FloatAttr() : builder.getF64FloatAttr(scale)));
  }
  Value rmsNorm(const std::string &name, Value input, Weight weight, double eps) override {
    return keep(lm::RMSNormOp::create(builder, loc(name), TypeRange(at(input).getType()), at(input),
                                      symbol(weight), builder.getF64FloatAttr(eps)));
  }
  Value linear(const std::string &name, Value input, Weight weight, const Weight *bias) override {
    return keep(lm::LinearOp::create(builder, loc(name), rows(shape(weight)[0]), at(input),
                                     /*residual=*/nullptr, symbol(weight),
                                     bias ? symbol(*bias) : FlatSymbolRefAttr(), lm::ArithAttr()));
  }
  Value gated(const std::string &name, Activation activation, Value gate, Value up) override {
    auto kind = activation == Activation::GELUTanh ? lm::Activation::GELUTanh : lm::Activation::SiLU;
    return keep(lm::GatedActivationOp::create(builder, loc(name), at(gate).getType(), kind, at(gate), at(up)));
  }
  Value scale(const std::string &name, Value input, double factor) override {
    return keep(lm::ScaleOp::create(builder, loc(name), at(input).getType(), at(input), builder.getF64FloatAttr(factor)));
  }
  Value softCap(const std::string &name, Value input, double cap) override {
    return keep(lm::SoftCapOp::create(builder, loc(name), at(input).getType(), at(input), builder.getF64FloatAttr(cap)));
  }
  Value add(const std::string &name, Value lhs, Value rhs) override {
    return keep(lm::AddOp::create(builder, loc(name), at(lhs).getType(), at(lhs), at(rhs)));
  }
  Value ropeTable(const std::string &name, Value positions, Weight frequencies) override {
    return keep(lm::RopeTableOp::create(builder, loc(name), rows(2 * shape(frequencies)[1]), at(positions),
                                        symbol(frequencies)));
  }
  Value rope(const std::string &name, Value input, Value table, int64_t headDim) override {
    return keep(lm::RopeOp::create(builder, loc(name), at(input).getType(), at(input), at(table), headDim));
  }
  Cache append(const std::string &name, Cache cache, Value keys, Value values) override {
    mlir::Value old = at(Value{cache.index});
    auto op = lm::KVAppendOp::create(builder, loc(name), old.getType(), old, at(keys), at(values));
    return {keep(op).index};
  }
  Value attention(const std::string &name, Value query, Cache cache, const Attention &how) override {
    return keep(lm::AttentionOp::create(
        builder, loc(name), TypeRange(at(query).getType()), at(query), at(Value{cache.index}), builder.getI64IntegerAttr(how.headDim),
        builder.getF64FloatAttr(how.scale), builder.getI64IntegerAttr(how.window),
        lm::FormatAttr::get(builder.getContext(), lm::Format::F32), lm::ArithAttr(),
        how.softCap > 0 ? builder.getF64FloatAttr(how.softCap) : FloatAttr(), how.sinks ? symbol(*how.sinks) : FlatSymbolRefAttr()));
  }
  Value gatherRows(const std::string &name, Value input, Value rows) override {
    return keep(lm::GatherRowsOp::create(builder, loc(name), at(input).getType(), at(input), at(rows)));
  }

  void finish(Value logits, const std::vector<Cache> &caches) override {
    SmallVector<mlir::Value> results = {at(logits)};
    for (Cache cache : caches)
      results.push_back(at(Value{cache.index}));
    func::ReturnOp::create(builder, loc("step"), results);
  }

private:
  void startStep() {
    Type f32 = builder.getF32Type();
    Type ids = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
    Type cache = lm::KVType::get(context, facts.kvHeads, facts.headDim, facts.headDim, f32, /*block=*/0);
    SmallVector<Type> arguments = {ids, ids, ids}, results = {rows(facts.vocab)};
    arguments.append(facts.layers, cache);
    results.append(facts.layers, cache);
    builder.setInsertionPointToEnd(module.getBody());
    auto step =
        func::FuncOp::create(builder, loc("step"), "step", builder.getFunctionType(arguments, results));
    builder.setInsertionPointToStart(step.addEntryBlock());
    weightBuilder.setInsertionPoint(step);
    for (BlockArgument argument : step.getArguments())
      values.push_back(argument);
  }

  Weight weight(const std::string &name, const std::string &tensor, SmallVector<int64_t> shape,
                int64_t headDim) {
    if (auto known = weightByName.find(name); known != weightByName.end())
      return {known->second};
    const TensorFact *fact = facts.find(tensor);
    if (!fact)
      throw Error("expected tensor " + tensor + " of shape " + toText(shape) + ", got no such tensor");
    std::string label = "tensor " + tensor;
    if (fact->sourceName != tensor && !fact->sourceName.empty())
      label += " (" + fact->sourceName + ")";
    if (ArrayRef<int64_t>(fact->shape) != ArrayRef<int64_t>(shape))
      throw Error(label + ": expected shape " + toText(shape) + ", got " + toText(fact->shape));
    unsigned block = blockSize(fact->type);
    if (block != 1 && (shape.size() != 2 || shape[1] % block != 0))
      throw Error(label + ": expected rows of a multiple of " + std::to_string(block) + " values for " +
                  toString(fact->type) + ", got shape " + toText(shape));
    uint64_t bytes =
        storageBytes(fact->type, uint64_t(shape[0]) * uint64_t(shape.size() == 2 ? shape[1] : 1));
    if (fact->bytes != bytes || fact->file >= facts.files.size())
      throw Error(label + ": expected " + std::to_string(bytes) + " bytes of file 0 to " +
                  std::to_string(facts.files.size()) + ", got " + std::to_string(fact->bytes) +
                  " bytes of file " + std::to_string(fact->file));
    lm::ScalesAttr scales;
    if (const TensorFact::Scales &own = fact->scales; own.count)
      scales = lm::ScalesAttr::get(context, own.file, own.offset, own.count, toStorage(own.type));
    auto span = lm::SpanAttr::get(context, fact->file, fact->offset, fact->bytes, shape[0], headDim, scales);
    return addWeight(name, toStorage(fact->type), shape, builder.getArrayAttr({span}), ElementsAttr());
  }

  Weight addWeight(const std::string &name, lm::Storage storage, ArrayRef<int64_t> shape, ArrayAttr sources,
                   ElementsAttr value) {
    auto op = lm::WeightOp::create(weightBuilder, loc(name), name, shape, storage, sources, /*interleave=*/0,
                                   value, /*quantize=*/lm::StorageAttr(), lm::LayoutAttr(), IntegerAttr(), /*addend=*/FloatAttr());
    weights.push_back(op);
    weightByName[name] = uint32_t(weights.size() - 1);
    return {uint32_t(weights.size() - 1)};
  }

  template <typename Op> Value keep(Op op) {
    values.push_back(op->getResult(0));
    return {uint32_t(values.size() - 1)};
  }
  mlir::Value at(Value value) const { return values[value.index]; }
  ArrayRef<int64_t> shape(Weight weight) { return weights[weight.index].getShape(); }
  FlatSymbolRefAttr symbol(Weight weight) {
    return FlatSymbolRefAttr::get(weights[weight.index].getSymNameAttr());
  }
  RankedTensorType rows(int64_t columns) {
    return RankedTensorType::get({ShapedType::kDynamic, columns}, builder.getF32Type());
  }
  Location loc(const std::string &name) { return NameLoc::get(StringAttr::get(context, name)); }

  const ModelFacts &facts;
  ModuleOp module;
  MLIRContext *context;
  OpBuilder weightBuilder, builder; // before and inside @step
  std::vector<mlir::Value> values;  // handles of activations and caches
  std::vector<lm::WeightOp> weights;
  std::map<std::string, uint32_t> weightByName;
};

/// Sizes that the types are made of; the families' own shapes are checked against the tensors.
void checkSizes(const ModelFacts &facts) {
  constexpr int64_t limit = int64_t(1) << 30;
  const std::pair<const char *, int64_t> sizes[] = {
      {"hidden size", facts.hidden},   {"layers", facts.layers},          {"heads", facts.heads},
      {"KV heads", facts.kvHeads},     {"head dimension", facts.headDim}, {"feed-forward size", facts.ffn},
      {"vocabulary size", facts.vocab}};
  for (auto [what, size] : sizes)
    if (size <= 0 || size > limit)
      throw Error(std::string("expected ") + what + " between 1 and 2^30, got " + std::to_string(size));
  // Every layer has tensors of its own: a lying layer count must not size anything.
  if (size_t(facts.layers) > facts.tensors.size())
    throw Error("expected layers up to the " + std::to_string(facts.tensors.size()) + " tensors, got " +
                std::to_string(facts.layers));
  if (facts.heads % facts.kvHeads != 0)
    throw Error("expected heads to be a multiple of the " + std::to_string(facts.kvHeads) +
                " KV heads, got " + std::to_string(facts.heads));
  if (facts.heads > limit / facts.headDim)
    throw Error("expected heads * head dimension up to 2^30, got " + std::to_string(facts.heads) + " * " +
                std::to_string(facts.headDim));
  if (facts.rope.rotaryDim <= 0 || facts.rope.rotaryDim % 2 != 0 || facts.rope.rotaryDim > facts.headDim)
    throw Error("expected an even rotary dimension up to " + std::to_string(facts.headDim) + ", got " +
                std::to_string(facts.rope.rotaryDim));
  if (facts.slidingWindow < 0)
    throw Error("expected a sliding window >= 0, got " + std::to_string(facts.slidingWindow));
  for (auto [layers, what] : {std::pair(facts.windowLayers.size(), "layers with or without a window"), {facts.layerThetas.size(), "thetas"}})
    if (layers != 0 && layers != size_t(facts.layers))
      throw Error("expected " + std::to_string(facts.layers) + " " + what + ", one a layer, got " + std::to_string(layers));
  if (!(facts.normEps > 0))
    throw Error("expected a positive norm epsilon, got " + std::to_string(facts.normEps));
}

DictionaryAttr modelAttribute(MLIRContext *context, const ModelFacts &facts) {
  mlir::Builder builder(context);
  NamedAttrList list;
  list.set("name", builder.getStringAttr(facts.name));
  list.set("architecture", builder.getStringAttr(facts.architecture));
  const std::pair<const char *, int64_t> sizes[] = {
      {"hidden", facts.hidden},    {"layers", facts.layers},         {"heads", facts.heads},
      {"kv_heads", facts.kvHeads}, {"head_dim", facts.headDim},      {"ffn", facts.ffn},
      {"vocab", facts.vocab},      {"max_context", facts.maxContext}};
  for (auto [name, size] : sizes)
    list.set(name, builder.getI64IntegerAttr(size));
  return list.getDictionary(context);
}

} // namespace

OwningOpRef<ModuleOp> buildModel(MLIRContext *context, const ModelFacts &facts) {
  context->loadDialect<lm::LMDialect, func::FuncDialect>();
  checkSizes(facts);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  (*module)->setAttr("lm.model", modelAttribute(context, facts));
  Builder builder(*module, facts);
  buildFamily(builder, facts);
  if (failed(verify(*module)))
    throw Error("internal error: the imported model does not verify");
  return module;
}

} // namespace llmc
