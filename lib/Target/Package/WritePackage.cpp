//===- WritePackage.cpp - the sections of a package -----------------------===//
#include "llmc/Target/WritePackage.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "llmc/Support/Error.h"
#include "llmc/Target/Packing.h"
#include "runtime/package/Manifest.h"
#include "runtime/package/PackageWriter.h"
#include "runtime/package/RandomSource.h"
#include "runtime/package/Shards.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;
using namespace llmc;

namespace {

// The two enums of a storage name the same things in the same order, and so do those of a layout.
#define SAME(NAME) static_assert(int(lm::Storage::NAME) == int(DType::NAME))
#define SAME_CODED(NAME) SAME(NAME); static_assert(int(lm::Layout::N16##NAME) == LLMC_LAYOUT_N16_##NAME)
SAME_CODED(F32); SAME_CODED(F16); SAME_CODED(BF16); SAME_CODED(Q4_0); SAME_CODED(Q4_1); SAME_CODED(Q8_0); SAME_CODED(Q5_0);
SAME_CODED(Q5_1); SAME_CODED(Q2_K); SAME_CODED(Q3_K); SAME_CODED(Q4_K); SAME_CODED(Q5_K); SAME_CODED(Q6_K);
SAME_CODED(IQ4_NL); SAME_CODED(IQ4_XS); SAME_CODED(E4M3);
#undef SAME_CODED
#undef SAME
static_assert(int(lm::Layout::RowsF32) == LLMC_LAYOUT_ROWS_F32 && int(lm::Layout::RowsBF16) == LLMC_LAYOUT_ROWS_BF16 &&
              int(lm::Layout::RowsE4M3) == LLMC_LAYOUT_ROWS_E4M3);

PackSpec specOf(lm::WeightOp op) {
  PackSpec spec;
  spec.name = op.getSymName().str();
  spec.storage = DType(op.getStorage());
  spec.layout = llmc_layout(*op.getLayout());
  spec.vector = op.getShape().size() == 1;
  spec.rows = spec.vector ? 1 : op.getShape().front();
  spec.cols = op.getShape().back();
  spec.interleave = op.getInterleave();
  if (op.getAddend())
    spec.addend = op.getAddend()->convertToFloat();
  if (op.getSources())
    for (auto span : op.getSources()->getAsRange<lm::SpanAttr>()) {
      spec.sources.push_back({uint32_t(span.getFile()), uint64_t(span.getOffset()), uint64_t(span.getRows()),
                              uint64_t(span.getDeinterleave())});
      if (lm::ScalesAttr scales = span.getScales()) {
        PackSource &source = spec.sources.back();
        source.scalesFile = scales.getFile(), source.scalesOffset = scales.getOffset();
        source.scalesCount = scales.getCount(), source.scalesType = DType(scales.getStorage());
      }
    }
  else
    for (APFloat value : op.getValue()->getValues<APFloat>())
      spec.value.push_back(value.convertToFloat());
  if (spec.vector && !op.getSources())
    spec.vector = false; // values are read as rows
  return spec;
}

uint64_t numberOf(ModuleOp module, StringRef dictionary, StringRef key) {
  auto facts = module->getAttrOfType<DictionaryAttr>(dictionary);
  auto number = facts ? facts.getAs<IntegerAttr>(key) : IntegerAttr();
  return number ? number.getInt() : 0;
}

SmallVector<lm::WeightOp> weightsByOffset(ModuleOp module) {
  SmallVector<lm::WeightOp> ops(module.getOps<lm::WeightOp>());
  llvm::sort(ops, [](lm::WeightOp a, lm::WeightOp b) { return *a.getOffset() < *b.getOffset(); });
  return ops;
}

uint64_t weightsBytes(ModuleOp module) { return module->getAttrOfType<IntegerAttr>("lm.weights_bytes").getInt(); }

/// Takes the image of the weights in order.
struct ImageSink {
  std::function<uint64_t()> size; // so far
  std::function<void(const void *, size_t)> append;

  void fillTo(uint64_t offset, const std::string &name) const {
    static const std::vector<uint8_t> zeros(1 << 16, 0);
    if (size() > offset)
      throw Error("weight " + name + ": expected offset " + std::to_string(offset) + " to be free, got " +
                  std::to_string(size()) + " bytes there");
    while (size() < offset)
      append(zeros.data(), std::min<uint64_t>(zeros.size(), offset - size()));
  }
};

/// Every packed weight at its offset, gaps zero.
std::vector<Manifest::Weight> writeImage(const ImageSink &sink, ModuleOp module, const ModelFacts &facts,
                                         const std::function<void(uint64_t)> &progress) {
  std::vector<InputFile> files;
  for (const std::string &file : facts.files)
    files.push_back(InputFile::open(file));
  std::vector<Manifest::Weight> weights;
  for (lm::WeightOp op : weightsByOffset(module)) {
    PackSpec spec = specOf(op);
    sink.fillTo(*op.getOffset(), spec.name);
    uint64_t hash = packWeight(spec, files, [&](std::span<const uint8_t> bytes) {
      sink.append(bytes.data(), bytes.size());
      progress(sink.size());
    });
    weights.push_back({spec.name, layoutName(spec.layout), *op.getOffset(), spec.bytes(), spec.rows, spec.cols, hash});
  }
  sink.fillTo(weightsBytes(module), "end");
  return weights;
}

/// The tensor and the row that a source starts at: random values depend on them, not on how weights were fused.
void nameSource(PackSource &source, const PackSpec &spec, size_t index, const ModelFacts &facts) {
  for (const TensorFact &tensor : facts.tensors) {
    if (tensor.file != source.file || source.offset < tensor.offset || source.offset - tensor.offset >= tensor.bytes)
      continue;
    source.tensor = tensor.name;
    source.row = (source.offset - tensor.offset) / storageBytes(spec.storage, spec.vector ? 1 : spec.cols);
    return;
  }
  source.tensor = spec.name + "#" + std::to_string(index); // computed by the compiler
}

std::vector<Manifest::Weight> randomRecipes(ModuleOp module, const ModelFacts &facts) {
  std::vector<Manifest::Weight> weights;
  for (lm::WeightOp op : weightsByOffset(module)) {
    PackSpec spec = specOf(op); // a recipe has no addend: random values have the distribution of the sum
    for (auto [index, source] : llvm::enumerate(spec.sources))
      nameSource(source, spec, index, facts);
    if (spec.storage == DType::E4M3) // values that are quantised, as a trained model's were
      spec.storage = DType::BF16;
    weights.push_back({spec.name, layoutName(spec.layout), *op.getOffset(), spec.bytes(), spec.rows, spec.cols, std::nullopt,
                       recipeOf(spec)});
  }
  return weights;
}

Manifest manifestOf(ModuleOp module, const ModelFacts &facts, const PackageParts &parts) {
  Manifest manifest;
  manifest.version = parts.version;
  manifest.trapChecks = parts.trapChecks;
  manifest.model = {facts.name,
                    facts.architecture,
                    uint64_t(facts.hidden),
                    uint64_t(facts.layers),
                    uint64_t(facts.heads),
                    uint64_t(facts.kvHeads),
                    uint64_t(facts.headDim),
                    uint64_t(facts.ffn),
                    uint64_t(facts.vocab),
                    uint64_t(facts.maxContext)};
  manifest.compute = parts.compute;
  manifest.numerics = parts.numerics;
  manifest.kvElement = parts.kvElement;
  manifest.kvBlock = LLMC_KV_BLOCK;
  for (auto &[isa, object] : parts.modules)
    manifest.isas.push_back(isa);
  manifest.limits = {uint32_t(numberOf(module, "rt.limits", "max_tokens")), uint32_t(numberOf(module, "rt.limits", "max_seqs")),
                     uint32_t(numberOf(module, "rt.limits", "max_logits"))};
  auto step = module.lookupSymbol<rt::ProgramOp>("step");
  auto prompt = module.lookupSymbol<rt::ProgramOp>("prompt");
  manifest.ledger = {{"weights", weightsBytes(module)},
                     {"arena", std::max<uint64_t>(step.getArenaBytes(), prompt ? prompt.getArenaBytes() : 0)},
                     {"kv per token", numberOf(module, "rt.kv_group", "block_bytes") / LLMC_KV_BLOCK}};
  for (auto launch : step.getBody().getOps<rt::LaunchOp>())
    if (llvm::any_of(launch.getArgs().getAsRange<rt::ArgAttr>(),
                     [](rt::ArgAttr arg) { return arg.getKind() == rt::ArgKind::WeightF32; }))
      manifest.referenceOps.push_back(launch.getOp().str());
  manifest.eosIds = facts.tokenizer.eosIds;
  uint64_t bytes = 0;
  for (const std::string &file : facts.files) {
    std::error_code absent; // random weights need no files
    if (uintmax_t size = std::filesystem::file_size(file, absent); !absent)
      bytes += size;
  }
  manifest.source = {facts.files.empty() ? "" : facts.files.front(), bytes};
  return manifest;
}

} // namespace

uint64_t llmc::writePackage(const std::string &path, ModuleOp module, const ModelFacts &facts, const PackageParts &parts,
                            const std::function<void(uint64_t)> &progress) {
  PackageWriter writer(path);
  writer.stub(parts.stub);
  for (auto &[isa, object] : parts.modules)
    writer.section("module." + isa, object);
  writer.section("tokenizer", facts.tokenizer.serialize());
  writer.section("template", facts.chatTemplate);
  Manifest manifest = manifestOf(module, facts, parts);
  std::unique_ptr<ShardWriter> shards; // its files go away unless kept
  using Origin = Manifest::WeightsOrigin;
  switch (parts.weights.mode) {
  case WeightsOptions::Mode::Embedded:
    writer.begin("weights");
    manifest.weights = writeImage({[&] { return writer.size(); }, [&](const void *bytes, size_t size) { writer.append(bytes, size); }},
                                  module, facts, progress);
    writer.end();
    break;
  case WeightsOptions::Mode::Separate: {
    std::filesystem::path file(path);
    shards = std::make_unique<ShardWriter>(file.parent_path().string(), file.filename().string(), weightsBytes(module),
                                           parts.weights.maxShardBytes);
    manifest.weights = writeImage({[&] { return shards->size(); }, [&](const void *bytes, size_t size) { shards->append(bytes, size); }},
                                  module, facts, progress);
    manifest.weightsOrigin = {Origin::Kind::Separate, weightsBytes(module), shards->close()};
    break;
  }
  case WeightsOptions::Mode::Random: {
    manifest.weights = randomRecipes(module, facts);
    manifest.weightsOrigin = {Origin::Kind::Random, weightsBytes(module), {}, parts.weights.seed};
    RandomSource check(manifest, path); // throws what the runtime would
    break;
  }
  }
  writer.section("manifest", manifest.serialize());
  if (shards)
    shards->rename();
  writer.finish();
  if (shards)
    shards->keep();
  return std::filesystem::file_size(path);
}
