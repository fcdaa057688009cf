//===- Compile.cpp - the driver of llmc compile ---------------------------===//
#include "llmc/Pipelines/Compile.h"

#include "dialects/Tile/Tile.h"
#include "lib/Pipelines/Kernels.h"
#include "lib/Pipelines/Progress.h"
#include "llmc/Pipelines/Phases.h"
#include "llmc/Pipelines/Registration.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"
#include "llmc/Target/WritePackage.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/tokenizer/Tokenizer.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace mlir;
using namespace llmc;
namespace fs = std::filesystem;

const char *llmc::versionString() { return LLMC_VERSION; }

namespace {

/// Before anything slow: can the output be written at all?
void checkOutput(const std::string &output, bool folder) {
  if (output == "-")
    return;
  if (folder && fs::exists(output) && !fs::is_directory(output))
    throw Error(output + ": expected a folder to write, got a file");
  if (!folder && fs::is_directory(output))
    throw Error(output + ": expected a file to write, got a directory");
  fs::path parent = fs::path(output).parent_path();
  std::string where = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(where))
    throw Error(output + ": expected the folder " + where + " to exist");
  if (access(where.c_str(), W_OK) != 0)
    throw Error(output + ": expected the folder " + where + " to be writable");
}

void writeText(const std::string &output, std::string_view text) {
  if (output != "-")
    return writeFile(output, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error("standard output: cannot write");
}

/// The machine that an ELF file is for: EM_X86_64; none: EM_NONE.
uint16_t machineOf(const std::string &path) {
  char bytes[64] = {};
  std::ifstream(path, std::ios::binary).read(bytes, sizeof bytes);
  llvm::ELF::Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  return header.checkMagic() && header.getFileClass() == llvm::ELF::ELFCLASS64 ? header.e_machine : uint16_t(llvm::ELF::EM_NONE);
}

std::string findStub(const std::string &given, Architecture architecture) {
  std::vector<std::string> places = {given};
  bool foreign = architecture != hostArchitecture();
  if (given.empty()) {
    std::error_code ignored;
    fs::path self = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    std::string name = foreign ? "llmc-runtime-stub-aarch64" : "llmc-runtime-stub";
    places = {self / name, self / "../libexec/llmc" / name, self / "../runtime/tool" / name, self / "../../runtime/tool" / name};
  }
  for (const std::string &place : places) {
    if (!fs::is_regular_file(place))
      continue;
    if (machineOf(place) != (architecture == Architecture::AArch64 ? llvm::ELF::EM_AARCH64 : llvm::ELF::EM_X86_64))
      throw Error(place + ": expected the runtime executable for " + architectureName(architecture) + ", got another file; see --stub");
    return place;
  }
  throw Error("runtime executable for " + std::string(architectureName(architecture)) + ": expected it at " + join(places, " or ") +
              (foreign && given.empty() ? ", where scripts/build-aarch64.sh puts it" : "") + "; see --stub");
}

/// What would fail only in the executable must fail here.
void checkTextParts(const ModelFacts &facts) {
  if (facts.synthetic && facts.tokenizer.tokens.empty())
    return; // a package for measuring
  Tokenizer::create(facts.tokenizer);
  if (!facts.chatTemplate.empty())
    ChatTemplate::parse(facts.chatTemplate);
}

struct GPUCode {
  std::vector<std::string> names;
  std::vector<GPUKernel> kernels;
};

/// What `--emit=ptx` says of a kernel.
std::string header(const std::string &name, const GPUKernel &kernel, const GPUTarget &target) {
  std::string text = "// kernel " + name + ", " + target.isa + ": " + std::to_string(kernel.threads) + " threads, " +
                     std::to_string(kernel.sharedBytes) + " bytes of shared memory";
  return text + (kernel.cubin.empty() ? "" : ", " + std::to_string(kernel.registers) + " registers") + "\n";
}

class Driver {
public:
  explicit Driver(const CompileOptions &options)
      : options(options), context(makeRegistry(), MLIRContext::Threading::DISABLED) {}
  void run();

private:
  static const DialectRegistry &makeRegistry() {
    static DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }
  /// The code of each kernel and of the tables, for one ISA.
  std::vector<std::string> compile(const std::vector<KernelJob> &jobs, const std::string &isa);
  /// The kernels for a GPU, by name, each through the gate unless there is no ptxas.
  GPUCode compileForGPU(const GPUTarget &target);
  std::string sharedObject(const std::string &isa);
  std::vector<std::string> distinctIsas();
  void writeCode();
  void writeGPUCode(const GPUTarget &target);
  void writeExecutable();

  const CompileOptions &options;
  Progress progress;
  MLIRContext context;
  ModelFacts facts;
  OwningOpRef<ModuleOp> module;
};

std::vector<std::string> Driver::compile(const std::vector<KernelJob> &jobs, const std::string &isa) {
  KernelProgress last{};
  std::vector<std::string> code =
      compileKernels(jobs, {options.jobs, options.cacheFolder}, [&](const KernelProgress &counts) {
        last = counts;
        progress.renew("%s: kernels %zu/%zu", isa.c_str(), counts.done, counts.total);
      });
  progress.say("%s: kernels %zu/%zu (%zu from the cache)", isa.c_str(), last.done, last.total, last.cached);
  return code;
}

GPUCode Driver::compileForGPU(const GPUTarget &target) {
  std::optional<Ptxas> ptxas;
  if (!options.ptxOnly && !(ptxas = findPtxas()))
    std::fputs("llmc: warning: no ptxas: kernels do not pass the gate, and the driver compiles their PTX at load; "
               "scripts/install-deps.sh gets one, --ptx-only silences this\n",
               stderr);
  std::vector<KernelJob> jobs = kernelJobs(*module, target.isa, "cubin");
  GPUCode code;
  for (KernelJob &job : jobs) {
    code.names.push_back(job.name);
    if (ptxas)
      job.ptxas = ptxas->path, job.ptxasVersion = ptxas->version;
  }
  uint32_t registers = 0;
  for (const std::string &bytes : compile(jobs, target.isa)) {
    code.kernels.push_back(GPUKernel::parse(bytes));
    registers = std::max(registers, code.kernels.back().registers);
  }
  if (ptxas)
    progress.say("%s: no spills, at most %u registers (ptxas %s)", target.isa.c_str(), registers, ptxas->version.c_str());
  return code;
}

/// Of one ISA.
std::string Driver::sharedObject(const std::string &isa) {
  std::vector<std::string> objects;
  if (const GPUTarget *gpu = findGPUTarget(isa)) {
    GPUCode code = compileForGPU(*gpu);
    objects = compile({tablesJob(*module, *gpu, code.names, code.kernels)}, isa + " tables");
  } else {
    std::vector<KernelJob> jobs = kernelJobs(*module, isa, "object");
    jobs.push_back(tablesJob(*module, isa, "object"));
    objects = compile(jobs, isa);
  }
  return linkSharedObject(objects, "module." + isa + ".so");
}

// --emit=ptx and cubin.
void Driver::writeGPUCode(const GPUTarget &target) {
  GPUCode code = compileForGPU(target);
  std::string text;
  for (size_t i = 0; i < code.names.size(); ++i)
    text += header(code.names[i], code.kernels[i], target) + code.kernels[i].ptx + "\n";
  if (options.emit == "ptx")
    return writeText(options.output, text);
  fs::create_directories(options.output);
  for (size_t i = 0; i < code.names.size(); ++i) {
    if (code.kernels[i].cubin.empty())
      throw Error("--emit=cubin: expected a ptxas, got none; see scripts/install-deps.sh");
    writeFile(options.output + "/" + code.names[i] + ".cubin", code.kernels[i].cubin);
  }
}

// --emit=llvm and asm: all kernels of the first ISA in one text; object: the shared object.
void Driver::writeCode() {
  const std::string &isa = options.isas.front();
  if (options.emit == "object")
    return writeText(options.output, sharedObject(isa));
  const GPUTarget *gpu = findGPUTarget(isa);
  if (gpu && options.emit != "llvm")
    return writeGPUCode(*gpu);
  std::vector<KernelJob> jobs = kernelJobs(*module, isa, options.emit);
  if (!gpu)
    jobs.push_back(tablesJob(*module, isa, options.emit));
  std::vector<std::string> code = compile(jobs, isa);
  std::string text;
  for (size_t i = 0; i < jobs.size(); ++i)
    text += (options.emit == "asm" ? "# " : "; ") + std::string("kernel ") + jobs[i].name + ", " + isa + "\n" + code[i] + "\n";
  writeText(options.output, text);
}

// avx512bf16 and amxbf16 differ from avx512vnni in products of one arithmetic each.
std::vector<std::string> Driver::distinctIsas() {
  std::vector<std::string> isas = options.isas;
  bool bf16 = false, evenOdd = false;
  module->walk([&](tile::DotOp dot) {
    bf16 |= dot.getArith() == tile::DotArith::BF16;
    evenOdd |= dot.getArith() == tile::DotArith::BF16_EO32;
  });
  if (std::find(isas.begin(), isas.end(), "avx512vnni") == isas.end())
    return isas;
  for (auto [isa, differs] : {std::pair("avx512bf16", bf16), std::pair("amxbf16", evenOdd)})
    if (!differs)
      isas.erase(std::remove(isas.begin(), isas.end(), isa), isas.end());
  return isas;
}

void Driver::writeExecutable() {
  PackageParts parts;
  const GPUTarget *gpu = findGPUTarget(options.isas.front());
  parts.stub = findStub(options.stub, gpu ? hostArchitecture() : lookupCPUTarget(options.isas.front()).architecture);
  parts.version = versionString();
  parts.compute = options.ir.compute;
  parts.numerics = options.ir.numerics;
  parts.weights = options.weights;
  parts.trapChecks = options.ir.trapChecks;
  const std::vector<std::string> isas = distinctIsas();
  for (const std::string &isa : isas)
    parts.modules.emplace_back(isa, sharedObject(isa));
  parts.kvElement = !options.ir.kvType.empty() ? options.ir.kvType : options.ir.compute == "f32" ? "f32" : "bf16";
  uint64_t weights = (*module)->getAttrOfType<IntegerAttr>("lm.weights_bytes").getInt(), shown = 0;
  uint64_t size = writePackage(options.output, *module, facts, parts, [&](uint64_t bytes) {
    if (bytes - shown < (4u << 20))
      return;
    shown = bytes;
    progress.renew("weights %llu/%llu MB", static_cast<unsigned long long>(bytes / 1000000),
                   static_cast<unsigned long long>(weights / 1000000));
  });
  const char *where[] = {"", " beside the executable", ", random: made at load"};
  progress.say("weights %.1f MB%s", double(weights) / 1e6, where[int(options.weights.mode)]);
  progress.say("%s: %.1f MB, %s, compiled in %.1f s", options.output.c_str(), double(size) / 1e6, join(isas).c_str(),
               progress.seconds());
}

void Driver::run() {
  checkOutput(options.output, options.emit == "cubin" && options.stopAfter.empty());
  // Only a package holds weights.
  bool random = options.weights.mode == WeightsOptions::Mode::Random;
  facts = loadModelFacts(options.model, {random, options.randomStorage.value_or(DType::BF16)});
  if (options.randomStorage && !facts.synthetic)
    throw Error(options.model + ": expected no weight files with --random-storage, got some, which give the storage");
  for (const std::string &warning : facts.warnings)
    std::fprintf(stderr, "llmc: warning: %s\n", warning.c_str());
  bool ir = !options.stopAfter.empty();
  if (!ir)
    checkTextParts(facts);
  progress.say("%s: %s, %lld layers, hidden %lld, vocabulary %lld", facts.format.c_str(), facts.architecture.c_str(),
               static_cast<long long>(facts.layers), static_cast<long long>(facts.hidden),
               static_cast<long long>(facts.vocab));
  module = lowerModel(context, facts, options.ir, ir ? options.stopAfter : "planned");
  progress.say("lowered to %s", ir ? options.stopAfter.c_str() : "planned launch lists");
  if (ir) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, OpPrintingFlags().enableDebugInfo(options.locations).elideLargeElementsAttrs(64));
    return writeText(options.output, text);
  }
  if (options.emit == "package")
    return writeExecutable();
  writeCode();
}

} // namespace

void llmc::compileModel(const CompileOptions &options) { Driver(options).run(); }
