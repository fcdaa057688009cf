//===- Compile.cpp - the driver of llmc compile ---------------------------===//
#include "llmc/Pipelines/Compile.h"

#include "lib/Pipelines/Kernels.h"
#include "llmc/Pipelines/Phases.h"
#include "llmc/Pipelines/Registration.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"
#include "llmc/Target/WritePackage.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/tokenizer/Tokenizer.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace mlir;
using namespace llmc;
namespace fs = std::filesystem;

const char *llmc::versionString() { return LLMC_VERSION; }

namespace {

/// Lines "llmc: 1.2 s  what" on stderr; on a terminal the line of a running phase is renewed in place.
class Progress {
public:
  void say(const char *format, ...) __attribute__((format(printf, 2, 3))) {
    va_list arguments;
    va_start(arguments, format);
    line(format, arguments, "\n");
    va_end(arguments);
  }
  /// Shown on terminals only.
  void renew(const char *format, ...) __attribute__((format(printf, 2, 3))) {
    if (!terminal)
      return;
    va_list arguments;
    va_start(arguments, format);
    line(format, arguments, "\r");
    va_end(arguments);
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

private:
  void line(const char *format, va_list arguments, const char *end) {
    std::fprintf(stderr, "%sllmc: %5.1f s  ", terminal ? "\r\033[K" : "", seconds());
    std::vfprintf(stderr, format, arguments);
    std::fputs(end, stderr);
    std::fflush(stderr);
  }
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  bool terminal = isatty(STDERR_FILENO);
};

/// Before anything slow: can the output be written at all?
void checkOutput(const std::string &output) {
  if (output == "-")
    return;
  if (fs::is_directory(output))
    throw Error(output + ": expected a file to write, got a directory");
  fs::path folder = fs::path(output).parent_path();
  std::string where = folder.empty() ? "." : folder.string();
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

std::string findStub(const std::string &given) {
  std::vector<std::string> places = {given};
  if (given.empty()) {
    std::error_code ignored;
    fs::path self = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    places = {self / "llmc-runtime-stub", self / "../libexec/llmc/llmc-runtime-stub", self / "../runtime/tool/llmc-runtime-stub",
              self / "../../runtime/tool/llmc-runtime-stub"};
  }
  for (const std::string &place : places)
    if (fs::is_regular_file(place))
      return place;
  throw Error("runtime executable: expected it at " + join(places, " or ") + "; see --stub");
}

/// What would fail only in the executable must fail here.
void checkTextParts(const ModelFacts &facts) {
  Tokenizer::create(facts.tokenizer);
  if (!facts.chatTemplate.empty())
    ChatTemplate::parse(facts.chatTemplate);
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
  void writeCode();
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

// --emit=llvm and asm: all kernels of the first ISA in one text; object: the shared object.
void Driver::writeCode() {
  const std::string &isa = options.isas.front();
  std::vector<KernelJob> jobs = kernelJobs(*module, isa, options.emit);
  jobs.push_back(tablesJob(*module, isa, options.emit));
  std::vector<std::string> code = compile(jobs, isa);
  if (options.emit == "object")
    return writeText(options.output, linkSharedObject(code, "module." + isa + ".so"));
  std::string text;
  for (size_t i = 0; i < jobs.size(); ++i)
    text += (options.emit == "asm" ? "# " : "; ") + std::string("kernel ") + jobs[i].name + ", " + isa + "\n" + code[i] + "\n";
  writeText(options.output, text);
}

void Driver::writeExecutable() {
  PackageParts parts;
  parts.stub = findStub(options.stub);
  parts.version = versionString();
  parts.compute = options.ir.compute;
  for (const std::string &isa : options.isas) {
    std::vector<KernelJob> jobs = kernelJobs(*module, isa, "object");
    jobs.push_back(tablesJob(*module, isa, "object"));
    parts.modules.emplace_back(isa, linkSharedObject(compile(jobs, isa), "module." + isa + ".so"));
  }
  parts.kvElement = !options.ir.kvType.empty() ? options.ir.kvType : options.ir.compute == "f32" ? "f32" : "bf16";
  uint64_t weights = (*module)->getAttrOfType<IntegerAttr>("lm.weights_bytes").getInt(), shown = 0;
  uint64_t size = writePackage(options.output, *module, facts, parts, [&](uint64_t bytes) {
    if (bytes - shown < (4u << 20))
      return;
    shown = bytes;
    progress.renew("weights %llu/%llu MB", static_cast<unsigned long long>(bytes / 1000000),
                   static_cast<unsigned long long>(weights / 1000000));
  });
  progress.say("weights %.1f MB", double(weights) / 1e6);
  progress.say("%s: %.1f MB, %zu ISA variant%s, compiled in %.1f s", options.output.c_str(), double(size) / 1e6,
               options.isas.size(), options.isas.size() == 1 ? "" : "s", progress.seconds());
}

void Driver::run() {
  checkOutput(options.output);
  facts = loadModelFacts(options.model);
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
