//===- WorkerGPU.cpp - a kernel module to PTX and cubin -------------------===//
#include "lib/Pipelines/WorkerGPU.h"

#include "llmc/Target/CodeGen.h"
#include "llmc/Target/Cubin.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"

#include <cstdlib>

using namespace mlir;
using namespace llmc;

/// For tests: LLMC_TEST_MAXREG=KERNEL:COUNT makes a kernel spill.
static void plantSpill(ModuleOp module, llvm::StringRef name) {
  const char *wish = std::getenv("LLMC_TEST_MAXREG");
  auto [victim, count] = llvm::StringRef(wish ? wish : "").split(':');
  uint32_t registers = 0;
  if (victim != name || count.getAsInteger(10, registers))
    return;
  OpBuilder b(module.getContext());
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr("nvvm.kernel"))
      function->setAttr("nvvm.maxnreg", b.getI32IntegerAttr(int32_t(registers)));
}

static FailureOr<uint32_t> number(ModuleOp module, llvm::StringRef name) {
  auto attribute = module->getAttrOfType<IntegerAttr>(name);
  if (!attribute || attribute.getInt() < 0 || attribute.getInt() > UINT32_MAX)
    return module.emitError("expected a number as attribute ") << name;
  return uint32_t(attribute.getInt());
}

static LogicalResult readTensorMaps(ModuleOp module, std::vector<llmc_tensor_map_v1> &maps) {
  auto list = module->getAttrOfType<ArrayAttr>("llmc.tensor_maps");
  if (!list)
    return success();
  for (Attribute entry : list) {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(entry);
    if (!numbers || numbers.size() != 19)
      return module.emitError("expected 19 numbers for each of llmc.tensor_maps, got ") << entry;
    llmc_tensor_map_v1 map = {};
    const int64_t *at = numbers.asArrayRef().data();
    for (uint32_t *field : {&map.arg, &map.element, &map.rank, &map.swizzle})
      *field = uint32_t(*at++);
    for (uint64_t &dim : map.dims)
      dim = uint64_t(*at++);
    for (uint64_t &stride : map.strides)
      stride = uint64_t(*at++);
    for (uint32_t &size : map.box)
      size = uint32_t(*at++);
    maps.push_back(map);
  }
  return success();
}

static LogicalResult checkEntry(ModuleOp module, llvm::StringRef name) {
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!function || !function->hasAttr("nvvm.kernel"))
    return module.emitError("expected an llvm.func @") << name << " with nvvm.kernel";
  return success();
}

LogicalResult llmc::compileForGPU(ModuleOp module, const GPUJob &job, std::string &result) {
  plantSpill(module, job.name);
  llvm::SmallVector<char, 0> code;
  if (failed(checkEntry(module, job.name)) ||
      failed(generatePTX(module, job.target, job.form == "llvm" ? CodeForm::LLVM : CodeForm::Assembly, code)))
    return failure();
  result.assign(code.data(), code.size());
  if (job.form != "cubin")
    return success();
  GPUKernel kernel;
  FailureOr<uint32_t> threads = number(module, "llmc.threads"), shared = number(module, "llmc.shared_bytes");
  if (failed(threads) || failed(shared) || failed(readTensorMaps(module, kernel.tensorMaps)))
    return failure();
  kernel.ptx = std::move(result);
  kernel.threads = *threads;
  kernel.sharedBytes = *shared;
  if (module->hasAttr("llmc.persistent")) {
    FailureOr<uint32_t> ctas = number(module, "llmc.persistent");
    if (failed(ctas))
      return failure();
    kernel.persistent = *ctas;
  }
  if (!job.ptxas.empty())
    assemble(kernel, job.ptxas, job.target.isa);
  result = kernel.serialize();
  return success();
}
