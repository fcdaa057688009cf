//===- RTToLLVM.cpp - rt.program and lm.weight to llmc_module_v1 ----------===//
#include "llmc/Conversion/RTToLLVM.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "lib/Conversion/RTToLLVM/ConstantTables.h"
#include "llmc/Target/Layout.h"

#include "llvm/ADT/MapVector.h"

namespace llmc {
#define GEN_PASS_DEF_RTTOLLVMPASS
#include "lib/Conversion/RTToLLVM/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {
using Record = ConstantTables::Record;

/// Numbers of a dictionary attribute of the module; an absent one is an error, told once.
class Facts {
public:
  Facts(ModuleOp module, StringRef name) : module(module), name(name), facts(module->getAttrOfType<DictionaryAttr>(name)) {
    if (!facts)
      fail(module.emitError("expected a module attribute ") << name);
  }
  uint64_t operator[](StringRef key) {
    auto number = facts ? facts.getAs<IntegerAttr>(key) : IntegerAttr();
    if (!number && facts)
      fail(module.emitError("expected a number ") << key << " in " << name);
    return number ? number.getInt() : 0;
  }
  bool failed() const { return bad; }

private:
  void fail(InFlightDiagnostic) { bad = true; }

  ModuleOp module;
  StringRef name;
  DictionaryAttr facts;
  bool bad = false;
};

class Writer {
public:
  Writer(ModuleOp module)
      : module(module), tables(module), cudaKernels(module->getAttrOfType<DictionaryAttr>("rt.cuda_kernels")) {}
  LogicalResult run(StringRef isa);

private:
  LogicalResult readWeights();
  uint64_t costIndex(rt::CostAttr cost);
  FailureOr<Record> program(StringRef name, bool required);
  FailureOr<Record> launch(rt::LaunchOp op, StringRef prefix, uint64_t index);
  FailureOr<Record> arg(rt::LaunchOp op, rt::ArgAttr arg);
  FailureOr<Constant> kernel(rt::LaunchOp op, StringRef name);
  FailureOr<LLVM::GlobalOp> cudaKernel(rt::LaunchOp op, StringRef name);

  ModuleOp module;
  ConstantTables tables;
  DictionaryAttr cudaKernels; // null: the kernels are functions of other objects
  llvm::StringMap<LLVM::GlobalOp> cudaTables;
  SmallVector<Record> weights;
  llvm::MapVector<rt::CostAttr, Record> costs; // each once: equal layers share them
  llvm::StringMap<std::pair<uint64_t, uint64_t>> weightPlaces; // name -> (index, offset)
};

LogicalResult Writer::readWeights() {
  for (auto op : module.getOps<lm::WeightOp>()) {
    if (!op.getLayout())
      return op.emitOpError("expected a layout before rt-to-llvm");
    auto layout = llmc_layout(*op.getLayout());
    ArrayRef<int64_t> shape = op.getShape();
    uint64_t cols = shape.back(), rows = shape.size() == 2 ? shape.front() : 1, offset = *op.getOffset();
    weightPlaces[op.getSymName()] = {weights.size(), offset};
    weights.push_back({tables.text(op.getSymName()), offset, packedBytes(layout, rows, cols), uint64_t(layout),
                       uint64_t(0), rows, cols, storedRows(layout, rows), padded(cols)});
  }
  return success();
}

FailureOr<Record> Writer::arg(rt::LaunchOp op, rt::ArgAttr arg) {
  uint64_t value = arg.getValue();
  if (arg.getWeight()) {
    auto place = weightPlaces.find(arg.getWeight().getValue());
    if (place == weightPlaces.end())
      return op.emitOpError("expected ") << arg.getWeight() << " to be a lm.weight";
    auto [index, offset] = place->second;
    value = arg.getKind() == rt::ArgKind::WeightF32 ? index : offset;
  }
  return Record{uint64_t(arg.getKind()), uint64_t(0), value};
}

/// An array of 19 numbers: the fields of llmc_tensor_map_v1, without `reserved`.
static Record tensorMap(ArrayRef<int64_t> numbers) {
  Record record;
  for (int64_t number : numbers)
    record.push_back(uint64_t(number));
  record.push_back(uint64_t(0));
  return record;
}

FailureOr<LLVM::GlobalOp> Writer::cudaKernel(rt::LaunchOp op, StringRef name) {
  if (LLVM::GlobalOp known = cudaTables.lookup(name))
    return known;
  auto facts = cudaKernels.getAs<DictionaryAttr>(name);
  auto text = [&](StringRef key) { return facts ? facts.getAs<StringAttr>(key) : StringAttr(); };
  auto number = [&](StringRef key) { return facts ? facts.getAs<IntegerAttr>(key) : IntegerAttr(); };
  if (!text("ptx") || !number("threads") || !number("shared_bytes"))
    return op.emitOpError("expected the kernel @") << name << " in rt.cuda_kernels, with ptx, threads and shared_bytes";
  SmallVector<Record> maps;
  if (auto list = facts.getAs<ArrayAttr>("tensor_maps"))
    for (auto numbers : list.getAsRange<DenseI64ArrayAttr>())
      maps.push_back(tensorMap(numbers));
  StringRef cubin = text("cubin") ? text("cubin").getValue() : StringRef(), ptx = text("ptx");
  std::string zeroTerminated = (ptx + StringRef("\0", 1)).str(), prefix = ("cuda." + name).str();
  // A cubin is an ELF file.
  return cudaTables[name] =
             tables.array(prefix, abi::cuda_kernel::fields,
                          {{tables.bytes(prefix + ".cubin", cubin, 64), cubin.size(),
                            tables.bytes(prefix + ".ptx", zeroTerminated, 1), ptx.size(), uint64_t(number("threads").getInt()),
                            uint64_t(number("shared_bytes").getInt()), maps.size(), uint64_t(number("persistent") ? number("persistent").getInt() : 0),
                            tables.array(prefix + ".tensor_maps", abi::tensor_map::fields, maps)}});
}

FailureOr<Constant> Writer::kernel(rt::LaunchOp op, StringRef name) {
  if (!cudaKernels)
    return Constant(tables.kernel(name));
  FailureOr<LLVM::GlobalOp> table = cudaKernel(op, name);
  if (failed(table))
    return failure();
  return Constant(*table);
}

uint64_t Writer::costIndex(rt::CostAttr cost) {
  if (!cost)
    return UINT32_MAX;
  auto [place, added] = costs.try_emplace(cost);
  if (added)
    place->second = {uint64_t(cost.getArithmetic()), uint64_t(cost.getWindow()), cost.getFlopsPerRow(), cost.getFlopsPerPair(),
                     cost.getWeightBytes(), cost.getWeightBytesPerRow(), cost.getActivationBytesPerRow(),
                     cost.getKvReadBytes(), cost.getKvWriteBytesPerRow()};
  return uint64_t(place - costs.begin());
}

FailureOr<Record> Writer::launch(rt::LaunchOp op, StringRef prefix, uint64_t index) {
  std::string name = (prefix + "." + Twine(index)).str();
  SmallVector<Record> variants, args, values;
  for (auto variant : op.getVariants().getAsRange<rt::VariantAttr>()) {
    StringRef name = variant.getKernel().getValue();
    FailureOr<Constant> entry = kernel(op, name);
    if (failed(entry))
      return failure();
    variants.push_back({uint64_t(variant.getMaxRows()), uint64_t(variant.getRowBlock()), uint64_t(variant.getColBlocks()),
                        uint64_t(variant.getSpanRows()), *entry, tables.text(name)});
  }
  for (auto attr : op.getArgs().getAsRange<rt::ArgAttr>()) {
    FailureOr<Record> record = arg(op, attr);
    if (failed(record))
      return failure();
    args.push_back(*record);
  }
  // Query tiles are a way to walk over tokens: what they compute has a row per token.
  rt::Rows rows = op.getRows() == rt::Rows::QueryTiles ? rt::Rows::Tokens : op.getRows();
  for (auto value : op.getValues().getAsRange<rt::ValueAttr>())
    values.push_back({tables.text(value.getName().getValue()), value.getOffset(), uint64_t(value.getElement()),
                      uint64_t(rows), uint64_t(value.getCols()), uint64_t(value.getStride()), value.getScalesOffset()});
  return Record{index,
                uint64_t(op.getRows()),
                uint64_t(int64_t(op.getLayer())),
                variants.size(),
                args.size(),
                values.size(),
                tables.array(name + ".variants", abi::variant::fields, variants),
                tables.array(name + ".args", abi::arg::fields, args),
                tables.array(name + ".values", abi::value::fields, values),
                tables.text(op.getOp()),
                costIndex(op.getCostAttr()),
                uint64_t(0)};
}

FailureOr<Record> Writer::program(StringRef name, bool required) {
  auto program = module.lookupSymbol<rt::ProgramOp>(name);
  if (!program && required)
    return module.emitError("expected an rt.program @") << name;
  if (!program)
    return Record{uint64_t(0), uint64_t(0), LLVM::GlobalOp(), uint64_t(0), uint64_t(0), UINT64_MAX, UINT64_MAX};
  SmallVector<Record> launches;
  for (auto op : program.getBody().front().getOps<rt::LaunchOp>()) {
    FailureOr<Record> record = launch(op, name, launches.size());
    if (failed(record))
      return failure();
    launches.push_back(*record);
  }
  return Record{launches.size(), uint64_t(0), tables.array((name + ".launches").str(), abi::launch::fields, launches),
                program.getArenaBytes(), program.getLogitsOffset(), program.getHiddenOffset(), program.getIdsOffset()};
}

LogicalResult Writer::run(StringRef isa) {
  Facts model(module, "lm.model"), limits(module, "rt.limits"), kv(module, "rt.kv_group");
  auto weightsBytes = module->getAttrOfType<IntegerAttr>("lm.weights_bytes");
  if (!weightsBytes)
    return module.emitError("expected a module attribute lm.weights_bytes");
  if (failed(readWeights()))
    return failure();
  FailureOr<Record> step = program("step", true), reference = program("reference", false), prompt = program("prompt", false);
  if (failed(step) || failed(reference) || failed(prompt))
    return failure();
  Record group;
  for (StringRef key : {"element", "layers", "heads", "k_dim", "v_dim", "window", "block_bytes", "layer_bytes", "head_bytes"})
    group.push_back(kv[key]);
  uint64_t vocab = model["vocab"], hidden = model["hidden"];
  Record record = {sizeof(llmc_module_v1), uint64_t(LLMC_ABI_VERSION), tables.text(cudaKernels ? "cuda" : "cpu"), tables.text(isa),
                   limits["max_tokens"], limits["max_seqs"], limits["max_logits"], vocab, padded(vocab), hidden,
                   padded(hidden), model["max_context"], model["layers"], uint64_t(1), weights.size(), costs.size(),
                   tables.array("kv_groups", abi::kv_group::fields, {group}),
                   tables.array("weights", abi::weight::fields, weights), uint64_t(weightsBytes.getInt())};
  record.append(*step);
  record.append(*reference);
  record.push_back(tables.array("costs", abi::cost::fields, llvm::to_vector(llvm::make_second_range(costs))));
  record.append(*prompt);
  if (model.failed() || limits.failed() || kv.failed())
    return failure();
  tables.exported(LLMC_MODULE_SYMBOL, abi::module::fields, record);
  return success();
}

struct RTToLLVMPass : llmc::impl::RTToLLVMPassBase<RTToLLVMPass> {
  using RTToLLVMPassBase::RTToLLVMPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Operation *> sources;
    for (Operation &op : *module.getBody())
      sources.push_back(&op);
    if (failed(Writer(module).run(isa)))
      return signalPassFailure();
    // Kernels had the names of their declarations until here; symbols are looked up in what was there first.
    for (Operation *op : sources)
      op->erase();
    for (StringRef name : {"lm.model", "lm.weights_bytes", "rt.limits", "rt.kv_group", "rt.cuda_kernels"})
      module->removeAttr(name);
  }
};

} // namespace
