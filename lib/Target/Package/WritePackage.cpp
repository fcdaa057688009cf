//===- WritePackage.cpp - the sections of a package -----------------------===//
#include "llmc/Target/WritePackage.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "llmc/Support/Error.h"
#include "llmc/Target/Packing.h"
#include "runtime/package/Manifest.h"
#include "runtime/package/PackageWriter.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;
using namespace llmc;

namespace {

// The two enums of a storage name the same things in the same order.
static_assert(int(lm::Storage::F32) == int(DType::F32) && int(lm::Storage::F16) == int(DType::F16) &&
              int(lm::Storage::BF16) == int(DType::BF16) && int(lm::Storage::Q4_0) == int(DType::Q4_0) &&
              int(lm::Storage::Q4_1) == int(DType::Q4_1) && int(lm::Storage::Q8_0) == int(DType::Q8_0));
static_assert(int(lm::Layout::RowsF32) == LLMC_LAYOUT_ROWS_F32 && int(lm::Layout::N16F32) == LLMC_LAYOUT_N16_F32 &&
              int(lm::Layout::N16F16) == LLMC_LAYOUT_N16_F16 && int(lm::Layout::N16BF16) == LLMC_LAYOUT_N16_BF16 &&
              int(lm::Layout::N16Q4_0) == LLMC_LAYOUT_N16_Q4_0 && int(lm::Layout::N16Q4_1) == LLMC_LAYOUT_N16_Q4_1 &&
              int(lm::Layout::N16Q8_0) == LLMC_LAYOUT_N16_Q8_0);

PackSpec specOf(lm::WeightOp op) {
  PackSpec spec;
  spec.name = op.getSymName().str();
  spec.storage = DType(op.getStorage());
  spec.layout = llmc_layout(*op.getLayout());
  spec.vector = op.getShape().size() == 1;
  spec.rows = spec.vector ? 1 : op.getShape().front();
  spec.cols = op.getShape().back();
  spec.interleave = op.getInterleave();
  if (op.getSources())
    for (auto span : op.getSources()->getAsRange<lm::SpanAttr>())
      spec.sources.push_back({span.getFile(), span.getOffset(), uint64_t(span.getRows()), uint64_t(span.getDeinterleave())});
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

/// The section "weights": every packed weight at its offset, gaps zero.
std::vector<Manifest::Weight> writeWeights(PackageWriter &writer, ModuleOp module, const ModelFacts &facts,
                                           const std::function<void(uint64_t)> &progress) {
  std::vector<InputFile> files;
  for (const std::string &file : facts.files)
    files.push_back(InputFile::open(file));
  SmallVector<lm::WeightOp> ops(module.getOps<lm::WeightOp>());
  llvm::sort(ops, [](lm::WeightOp a, lm::WeightOp b) { return *a.getOffset() < *b.getOffset(); });
  std::vector<Manifest::Weight> weights;
  static const std::vector<uint8_t> zeros(1 << 16, 0);
  auto fillTo = [&](uint64_t offset, const std::string &name) {
    if (writer.size() > offset)
      throw Error("weight " + name + ": expected offset " + std::to_string(offset) + " to be free, got " +
                  std::to_string(writer.size()) + " bytes there");
    while (writer.size() < offset)
      writer.append(zeros.data(), std::min<uint64_t>(zeros.size(), offset - writer.size()));
  };
  writer.begin("weights");
  for (lm::WeightOp op : ops) {
    PackSpec spec = specOf(op);
    fillTo(*op.getOffset(), spec.name);
    uint64_t hash = packWeight(spec, files, [&](std::span<const uint8_t> bytes) {
      writer.append(bytes.data(), bytes.size());
      progress(writer.size());
    });
    weights.push_back({spec.name, layoutName(spec.layout), *op.getOffset(), spec.bytes(), spec.rows, spec.cols, hash});
  }
  fillTo(module->getAttrOfType<IntegerAttr>("lm.weights_bytes").getInt(), "end");
  writer.end();
  return weights;
}

Manifest manifestOf(ModuleOp module, const ModelFacts &facts, const PackageParts &parts) {
  Manifest manifest;
  manifest.version = parts.version;
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
  manifest.kvElement = parts.kvElement;
  manifest.kvBlock = LLMC_KV_BLOCK;
  for (auto &[isa, object] : parts.modules)
    manifest.isas.push_back(isa);
  manifest.limits = {uint32_t(numberOf(module, "rt.limits", "max_tokens")), uint32_t(numberOf(module, "rt.limits", "max_seqs")),
                     uint32_t(numberOf(module, "rt.limits", "max_logits"))};
  auto step = module.lookupSymbol<rt::ProgramOp>("step");
  manifest.ledger = {{"weights", uint64_t(module->getAttrOfType<IntegerAttr>("lm.weights_bytes").getInt())},
                     {"arena", step.getArenaBytes()},
                     {"kv per token", numberOf(module, "rt.kv_group", "block_bytes") / LLMC_KV_BLOCK}};
  for (auto launch : step.getBody().getOps<rt::LaunchOp>())
    if (llvm::any_of(launch.getArgs().getAsRange<rt::ArgAttr>(),
                     [](rt::ArgAttr arg) { return arg.getKind() == rt::ArgKind::WeightF32; }))
      manifest.referenceOps.push_back(launch.getOp().str());
  manifest.eosIds = facts.tokenizer.eosIds;
  uint64_t bytes = 0;
  for (const std::string &file : facts.files)
    bytes += InputFile::open(file).size();
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
  manifest.weights = writeWeights(writer, module, facts, progress);
  writer.section("manifest", manifest.serialize());
  writer.finish();
  return std::filesystem::file_size(path);
}
