//===- ObjectTest.cpp - workers, cache and linker -------------------------===//
//
// Kernels in the LLVM dialect go through everything behind the lowering: a worker process, LLVM, the cache, LLD, and are
// loaded and called. The test starts itself as the worker.
//
//===----------------------------------------------------------------------===//
#include "llmc/Pipelines/Compile.h"
#include "llmc/Support/Error.h"
#include "llmc/Target/Cubin.h"
#include "llmc/Target/KernelCompiler.h"
#include "llmc/Target/TargetInfo.h"
#include "llmc/abi.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <string_view>

using namespace llmc;
namespace fs = std::filesystem;

namespace {
// args[1][i] = args[0][i] * 2 for i in [begin, end). The worker reads text as well as bytecode.
const char kDouble[] = R"(
llvm.func @double(%args: !llvm.ptr, %rows: i64, %begin: i64, %end: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2.0 : f32) : f32
  %slot = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %in = llvm.load %args : !llvm.ptr -> !llvm.ptr
  %out = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.br ^head(%begin : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %end : i64
  llvm.cond_br %more, ^body, ^done
^body:
  %from = llvm.getelementptr %in[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %to = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %x = llvm.load %from : !llvm.ptr -> f32
  %y = llvm.fmul %x, %two : f32
  llvm.store %y, %to : f32, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^done:
  llvm.return
}
)";

// A loop that -O3 likes to turn into memset.
const char kZero[] = R"(
llvm.func @zero(%args: !llvm.ptr, %rows: i64, %begin: i64, %end: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %out = llvm.load %args : !llvm.ptr -> !llvm.ptr
  llvm.br ^head(%begin : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %end : i64
  llvm.cond_br %more, ^body, ^done
^body:
  %to = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %zero, %to : f32, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^done:
  llvm.return
}
)";

const char kCallsLibrary[] = R"(
llvm.func @calls(%args: !llvm.ptr, %rows: i64, %begin: i64, %end: i64) {
  %in = llvm.load %args : !llvm.ptr -> !llvm.ptr
  "llvm.intr.memcpy"(%in, %args, %rows) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.return
}
)";

// A module whose first pointer field (target) is the kernel: enough to find it.
const char kTables[] = R"(
llvm.func hidden @double(!llvm.ptr, i64, i64, i64)
llvm.func hidden @zero(!llvm.ptr, i64, i64, i64)
llvm.mlir.global external constant @llmc_module_v1() : !llvm.array<2 x ptr> {
  %0 = llvm.mlir.zero : !llvm.array<2 x ptr>
  %1 = llvm.mlir.addressof @double : !llvm.ptr
  %2 = llvm.insertvalue %1, %0[0] : !llvm.array<2 x ptr>
  %3 = llvm.mlir.addressof @zero : !llvm.ptr
  %4 = llvm.insertvalue %3, %2[1] : !llvm.array<2 x ptr>
  llvm.return %4 : !llvm.array<2 x ptr>
}
)";

KernelJob job(const std::string &name, const std::string &source, const std::string &isa = "avx2") {
  return {name, source, isa, "object"};
}

std::string failure(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

const auto kQuiet = [](const KernelProgress &) {};

/// A loop of products that all sums, in `count` tiles, live through.
std::string tileKernel(int count, const std::string &inLoop = "") {
  auto each = [&](const std::string &text) {
    std::string all;
    for (int i = 0; i < count; ++i)
      for (char c : text)
        all += c == '#' ? std::to_string(i) : std::string(1, c);
    return all;
  };
  auto list = [&](const std::string &item) {
    std::string all = each(item + ", ");
    return all.substr(0, all.size() - 2);
  };
  return R"(
llvm.func hidden @double(!llvm.ptr, i64, i64, i64)
llvm.func @tiles(%args: !llvm.ptr, %rows: i64, %begin: i64, %end: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %stride = llvm.mlir.constant(64 : i64) : i64
  %r = llvm.mlir.constant(16 : i16) : i16
  %c = llvm.mlir.constant(64 : i16) : i16
  %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
)" + each("  %z# = llvm.call_intrinsic \"llvm.x86.tileloadd64.internal\"(%r, %c, %x, %stride) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx\n") +
         "  llvm.br ^head(%begin, " + list("%z#") + " : i64, " + list("!llvm.x86_amx") + ")\n^head(%i: i64, " + list("%s#: !llvm.x86_amx") +
         R"():
  %more = llvm.icmp "slt" %i, %end : i64
  llvm.cond_br %more, ^body, ^done
^body:
  %from = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %a = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%r, %c, %from, %stride) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
)" + inLoop +
         each("  %t# = llvm.call_intrinsic \"llvm.x86.tdpbf16ps.internal\"(%r, %c, %c, %s#, %a, %a) : (i16, i16, i16, !llvm.x86_amx, "
              "!llvm.x86_amx, !llvm.x86_amx) -> !llvm.x86_amx\n") +
         "  %next = llvm.add %i, %one : i64\n  llvm.br ^head(%next, " + list("%t#") + " : i64, " + list("!llvm.x86_amx") + ")\n^done:\n" +
         each("  llvm.call_intrinsic \"llvm.x86.tilestored64.internal\"(%r, %c, %x, %stride, %s#) : (i16, i16, !llvm.ptr, i64, "
              "!llvm.x86_amx) -> ()\n") +
         "  llvm.return\n}\n";
}

TEST(Object, tilesThatAreSpilledOrLiveAcrossCallsAreAnError) {
  auto compile = [](const std::string &source) {
    return failure([&] { compileKernels({job("tiles", source, "amxbf16")}, {1, ""}, kQuiet); });
  };
  EXPECT_EQ(compile(tileKernel(4)), "");
  const std::string spilled = compile(tileKernel(8)); // and an operand
  EXPECT_NE(spilled.find("tiles"), std::string::npos) << spilled;
  EXPECT_NE(spilled.find("8 stores and no calls were expected"), std::string::npos) << spilled;
  const std::string called = compile(tileKernel(4, "  llvm.call @double(%args, %rows, %begin, %end) : (!llvm.ptr, i64, i64, i64) -> ()\n"));
  EXPECT_NE(called.find("4 stores and no calls were expected"), std::string::npos) << called;
}

TEST(Object, compilesLinksAndRuns) {
  std::string so = linkSharedObject(
      compileKernels({job("double", kDouble), job("zero", kZero), job("tables", kTables)}, {2, ""}, kQuiet), "module.so");
  ScratchFolder scratch;
  writeFile(scratch.file("module.so"), so);
  void *library = dlopen(scratch.file("module.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  EXPECT_FALSE(dlsym(library, "double")) << "kernels are hidden";
  auto *table = static_cast<llmc_kernel_fn *>(dlsym(library, LLMC_MODULE_SYMBOL));
  ASSERT_TRUE(table);
  float in[100], out[100] = {};
  for (int i = 0; i < 100; ++i)
    in[i] = float(i) / 3;
  void *args[] = {in, out};
  table[0](args, 100, 10, 90);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(out[i], i >= 10 && i < 90 ? 2 * in[i] : 0.0f) << i;
  void *zeroArgs[] = {out};
  table[1](zeroArgs, 100, 0, 50);
  EXPECT_EQ(out[49], 0.0f);
  EXPECT_EQ(out[50], 2 * in[50]);
  dlclose(library);
}

TEST(Object, everyTargetCompiles) {
  for (const CPUTarget &target : cpuTargets())
    EXPECT_FALSE(compileKernels({job("double", kDouble, target.isa)}, {1, ""}, kQuiet)[0].empty()) << target.isa;
}

TEST(Object, textForms) {
  KernelJob assembly = job("double", kDouble), ir = job("double", kDouble);
  assembly.form = "asm";
  ir.form = "llvm";
  std::vector<std::string> text = compileKernels({assembly, ir}, {2, ""}, kQuiet);
  EXPECT_NE(text[0].find("vaddps"), std::string::npos) << "x * 2 is x + x; vectorised for AVX2";
  EXPECT_NE(text[1].find("define hidden void @double"), std::string::npos);
}

TEST(Object, libraryCallsAreNamed) {
  std::string message = failure([&] { compileKernels({job("calls", kCallsLibrary)}, {1, ""}, kQuiet); });
  EXPECT_EQ(message, "kernel calls: the worker exited with 1: expected code without library calls, got calls of memcpy");
}

TEST(Object, badBytecodeIsAnError) {
  std::string message = failure([&] { compileKernels({job("bad", "this is no module")}, {1, ""}, kQuiet); });
  EXPECT_EQ(message.find("kernel bad: the worker exited with 1"), 0u) << message;
}

TEST(Object, aWorkerThatDiesNamesItsKernel) {
  setenv("LLMC_TEST_WORKER_ABORT", "victim", 1);
  std::string message =
      failure([&] { compileKernels({job("double", kDouble), job("victim", kZero)}, {2, ""}, kQuiet); });
  unsetenv("LLMC_TEST_WORKER_ABORT");
  EXPECT_EQ(message.find("kernel victim: the worker was stopped by signal 6 (Aborted)"), 0u) << message;
}

TEST(Object, undefinedSymbolsFailTheLink) {
  std::string message =
      failure([&] { linkSharedObject(compileKernels({job("tables", kTables)}, {1, ""}, kQuiet), "module.so"); });
  EXPECT_NE(message.find("undefined hidden symbol: double"), std::string::npos) << message;
}

// out[i] = out[i] * 2 + 1 for every thread; as many values at once as a planted register limit cannot hold.
std::string gpuKernel(const std::string &attributes = "attributes {llmc.threads = 128 : i32, llmc.shared_bytes = 1024 : i32}") {
  std::string body;
  for (int i = 0; i < 64; ++i) {
    std::string n = std::to_string(i);
    body += "  %c" + n + " = llvm.mlir.constant(" + n + " : i64) : i64\n  %p" + n + " = llvm.getelementptr %out[%c" + n +
            "] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n  %x" + n + " = llvm.load volatile %p" + n + " : !llvm.ptr -> f32\n";
  }
  for (int i = 63; i >= 0; --i) {
    std::string n = std::to_string(i);
    body += "  %y" + n + " = llvm.fmul %x" + n + ", %two : f32\n  %z" + n + " = llvm.fadd %y" + n + ", %one : f32\n" +
            "  llvm.store volatile %z" + n + ", %p" + n + " : f32, !llvm.ptr\n";
  }
  return "module " + attributes + " {\nllvm.func @scale(%out: !llvm.ptr, %rows: i64) attributes {nvvm.kernel, nvvm.reqntid = "
         "array<i32: 128, 1, 1>} {\n  %two = llvm.mlir.constant(2.0 : f32) : f32\n  %one = llvm.mlir.constant(1.0 : f32) : f32\n" +
         body + "  llvm.return\n}\n}\n";
}

KernelJob gpuJob(const std::string &form, const std::string &source = gpuKernel()) {
  KernelJob job{"scale", source, "sm_90a", form};
  if (auto ptxas = findPtxas(); ptxas && form == "cubin")
    job.ptxas = ptxas->path, job.ptxasVersion = ptxas->version;
  return job;
}

TEST(GPU, textForms) {
  std::vector<std::string> text = compileKernels({gpuJob("ptx"), gpuJob("llvm")}, {2, ""}, kQuiet);
  EXPECT_NE(text[0].find(".version 8.6"), std::string::npos);
  EXPECT_NE(text[0].find(".target sm_90a"), std::string::npos);
  EXPECT_NE(text[0].find(".entry scale("), std::string::npos);
  EXPECT_NE(text[0].find("add.rn.f32"), std::string::npos) << "two roundings, also for ptxas";
  EXPECT_EQ(text[0].find("fma"), std::string::npos);
  EXPECT_NE(text[1].find("ptx_kernel void @scale("), std::string::npos);
}

TEST(GPU, withoutAssemblerPtxAlone) {
  KernelJob job = gpuJob("cubin");
  job.ptxas.clear();
  GPUKernel kernel = GPUKernel::parse(compileKernels({job}, {1, ""}, kQuiet)[0]);
  EXPECT_TRUE(kernel.cubin.empty());
  EXPECT_NE(kernel.ptx.find(".entry scale("), std::string::npos);
  EXPECT_EQ(kernel.threads, 128u);
  EXPECT_EQ(kernel.sharedBytes, 1024u);
}

TEST(GPU, cubin) {
  if (!findPtxas())
    GTEST_SKIP() << "no ptxas";
  GPUKernel kernel = GPUKernel::parse(compileKernels({gpuJob("cubin")}, {1, ""}, kQuiet)[0]);
  EXPECT_EQ(kernel.cubin.substr(0, 4), "\x7f" "ELF");
  EXPECT_GE(kernel.registers, 64u);
}

TEST(GPU, aPlantedSpillFailsWithItsName) {
  if (!findPtxas())
    GTEST_SKIP() << "no ptxas";
  setenv("LLMC_TEST_MAXREG", "scale:24", 1);
  std::string message = failure([] { compileKernels({gpuJob("cubin")}, {1, ""}, kQuiet); });
  unsetenv("LLMC_TEST_MAXREG");
  EXPECT_EQ(message.find("kernel scale: the worker exited with 1: expected no spills, no stack and no remark C75xx from ptxas, got: "), 0u)
      << message;
  EXPECT_NE(message.find("bytes spill stores"), std::string::npos) << message;
}

TEST(GPU, whatTheLaunchNeedsMustBeSaid) {
  std::string message = failure([] { compileKernels({gpuJob("cubin", gpuKernel(""))}, {1, ""}, kQuiet); });
  EXPECT_NE(message.find("expected a number as attribute llmc.threads"), std::string::npos) << message;
  KernelJob other = gpuJob("ptx");
  other.name = "other";
  message = failure([&] { compileKernels({other}, {1, ""}, kQuiet); });
  EXPECT_NE(message.find("expected an llvm.func @other with nvvm.kernel"), std::string::npos) << message;
}

TEST(GPU, theAssemblersVersionIsPartOfTheKey) {
  ScratchFolder scratch;
  KernelCache cache(scratch.file("cache"));
  KernelJob job = gpuJob("cubin"), other = job;
  other.ptxasVersion = "99.0";
  EXPECT_NE(cache.key(job), cache.key(other));
}

TEST(Cache, secondTimeFromTheCache) {
  ScratchFolder scratch;
  std::string folder = scratch.file("cache");
  KernelProgress last{};
  auto remember = [&](const KernelProgress &progress) { last = progress; };
  std::vector<KernelJob> jobs = {job("double", kDouble), job("zero", kZero)};
  std::vector<std::string> first = compileKernels(jobs, {2, folder}, remember);
  EXPECT_EQ(last.cached, 0u);
  EXPECT_EQ(compileKernels(jobs, {2, folder}, remember), first);
  EXPECT_EQ(last.cached, 2u);
  jobs[1].isa = "avx512vnni";
  compileKernels(jobs, {2, folder}, remember);
  EXPECT_EQ(last.cached, 1u) << "another target is another kernel";

  for (const fs::directory_entry &file : fs::directory_iterator(folder)) // damage all of it
    fs::resize_file(file.path(), file.file_size() - 1);
  jobs[1].isa = "avx2";
  EXPECT_EQ(compileKernels(jobs, {2, folder}, remember), first);
  EXPECT_EQ(last.cached, 0u);
}

TEST(Cache, anUnwritableFolderIsNoError) {
  EXPECT_EQ(compileKernels({job("double", kDouble)}, {1, "/proc/no/such/folder"}, kQuiet).size(), 1u);
}
} // namespace

int main(int argc, char **argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--worker")
    return runWorker(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
