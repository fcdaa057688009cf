//===- Kernels.cpp - cuts a module into jobs ------------------------------===//
#include "lib/Pipelines/Kernels.h"

#include "dialects/Tile/Tile.h"
#include "llmc/Conversion/RTToLLVM.h"
#include "llmc/Pipelines/Phases.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace llmc;

static std::string bytecode(Operation *op) {
  Location unknown = UnknownLoc::get(op->getContext());
  op->walk([&](Operation *inner) {
    inner->setLoc(unknown);
    for (Region &region : inner->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(unknown);
  });
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  (void)writeBytecodeToFile(op, stream, BytecodeWriterConfig("llmc"));
  return bytes;
}

std::vector<KernelJob> llmc::kernelJobs(ModuleOp module, const std::string &isa, const std::string &form) {
  OpBuilder b(module.getContext());
  std::vector<KernelJob> jobs;
  for (Operation &op : *module.getBody()) {
    bool reference = llvm::isa<func::FuncOp>(op) && op.hasAttr("llmc.kernel");
    if (!reference && !llvm::isa<tile::KernelOp>(op))
      continue;
    OwningOpRef<ModuleOp> kernel = ModuleOp::create(b.getUnknownLoc());
    (*kernel)->setAttr("llmc.pipeline", b.getStringAttr(reference ? "reference" : findGPUTarget(isa) ? "cuda" : "cpu"));
    kernel->push_back(op.clone());
    jobs.push_back({SymbolTable::getSymbolName(&op).str(), bytecode(*kernel), isa, form});
  }
  return jobs;
}

/// The tables of `module`, which is changed.
static std::string tables(ModuleOp module, const std::string &isa) {
  DiagnosticCollector diagnostics(*module.getContext());
  PassManager manager(module.getContext());
  manager.addPass(createRTToLLVMPass({isa}));
  if (failed(manager.run(module)))
    diagnostics.fail("tables", "failed");
  return bytecode(module);
}

KernelJob llmc::tablesJob(ModuleOp module, const std::string &isa, const std::string &form) {
  OwningOpRef<ModuleOp> clone = module.clone();
  return {"tables", tables(*clone, isa), isa, form};
}

static ArrayAttr tensorMaps(OpBuilder &b, const GPUKernel &kernel) {
  SmallVector<Attribute> maps;
  for (const llmc_tensor_map_v1 &map : kernel.tensorMaps) {
    SmallVector<int64_t> numbers = {map.arg, map.element, map.rank, map.swizzle};
    numbers.append(std::begin(map.dims), std::end(map.dims));
    numbers.append(std::begin(map.strides), std::end(map.strides));
    numbers.append(std::begin(map.box), std::end(map.box));
    maps.push_back(b.getDenseI64ArrayAttr(numbers));
  }
  return b.getArrayAttr(maps);
}

KernelJob llmc::tablesJob(ModuleOp module, const GPUTarget &target, const std::vector<std::string> &names,
                          const std::vector<GPUKernel> &kernels) {
  OwningOpRef<ModuleOp> clone = module.clone();
  OpBuilder b(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (auto [name, kernel] : llvm::zip_equal(names, kernels)) {
    SmallVector<NamedAttribute> facts = {
        b.getNamedAttr("ptx", b.getStringAttr(kernel.ptx)), b.getNamedAttr("threads", b.getI64IntegerAttr(kernel.threads)),
        b.getNamedAttr("shared_bytes", b.getI64IntegerAttr(kernel.sharedBytes)),
        b.getNamedAttr("tensor_maps", tensorMaps(b, kernel))};
    if (kernel.persistent)
      facts.push_back(b.getNamedAttr("persistent", b.getI64IntegerAttr(kernel.persistent)));
    if (!kernel.cubin.empty())
      facts.push_back(b.getNamedAttr("cubin", b.getStringAttr(kernel.cubin)));
    entries.push_back(b.getNamedAttr(name, b.getDictionaryAttr(facts)));
  }
  (*clone)->setAttr("rt.cuda_kernels", b.getDictionaryAttr(entries));
  return {"tables", tables(*clone, target.isa), cpuTargets().front().isa, "object"};
}
