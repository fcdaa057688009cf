//===- CommandTest.cpp - the command line: messages and exit codes --------===//
//
// Everything here fails or finishes before a model is compiled; compiling is in test/EndToEnd.
//
//===----------------------------------------------------------------------===//
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace fs = std::filesystem;

namespace {
struct Result {
  int code;
  std::string out; // both streams
};

Result run(const std::string &arguments) {
  std::FILE *pipe = popen((std::string(LLMC_EXECUTABLE) + " " + arguments + " 2>&1 < /dev/null").c_str(), "r");
  Result result{-1, ""};
  std::array<char, 4096> buffer;
  while (size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.out.append(buffer.data(), count);
  int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

void expectFailure(const std::string &arguments, int code, const std::string &message) {
  Result result = run(arguments);
  EXPECT_EQ(result.code, code) << arguments << ": " << result.out;
  EXPECT_NE(result.out.find("llmc: error: " + message), std::string::npos) << arguments << ": " << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << "one line: " << result.out;
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("llmc-command-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

TEST(Command, helpTeaches) {
  for (const char *command : {"compile", "explain", "plan", "inspect"}) {
    Result result = run(std::string(command) + " --help");
    EXPECT_EQ(result.code, 0);
    EXPECT_NE(result.out.find("examples\n  llmc " + std::string(command)), std::string::npos) << result.out;
  }
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("--version").out, "llmc 0.1.0\n");
  EXPECT_NE(run("compile --help").out.find("--stop-after=imported|fused|reference|decided|tile|planned"), std::string::npos);
}

TEST(Command, usage) {
  EXPECT_EQ(run("").code, 2);
  expectFailure("frobnicate", 2, "expected a command (compile, explain, inspect, plan), got \"frobnicate\"");
  expectFailure("compile", 2, "llmc compile: expected MODEL");
  expectFailure("explain", 2, "llmc explain: expected PACKAGE");
  expectFailure("explain x --format=xml", 2, "--format: expected text, json, html, got \"xml\"");
  expectFailure("explain x --tokens=0", 2, "--tokens: expected a number of 1 to 16777216, got \"0\"");
  expectFailure("explain /nowhere/x", 1, "/nowhere/x");
  expectFailure("explain " LLMC_EXECUTABLE, 1, LLMC_EXECUTABLE);
  expectFailure("compile x", 2, "llmc compile: expected -o FILE");
  expectFailure("compile x -o -", 2, "llmc compile: expected -o FILE for an executable, got -");
  expectFailure("compile x y -o z", 2, "unexpected argument \"y\" of llmc compile");
  expectFailure("compile x -o", 2, "-o: expected a value");
  expectFailure("compile x --frobnicate", 2, "unknown flag \"--frobnicate\" of llmc compile");
  expectFailure("compile x -x", 2, "unknown flag \"-x\" of llmc compile");
  expectFailure("compile x --compute=f17", 2, "--compute: expected default, f32");
  expectFailure("compile x --target=tpu", 2, "--target: expected cpu, cuda:sm_90a, got \"tpu\"");
  expectFailure("plan x --target=cuda:sm_80", 2, "--target: expected cpu, cuda:sm_90a, got \"cuda:sm_80\"");
  expectFailure("compile x -o y --target=cuda:sm_90a --compute=q8", 2, "--compute: expected default (bf16 products) for cuda:sm_90a, got \"q8\"");
  expectFailure("plan x --target=cuda:sm_90a --kv-type=f32", 2, "--kv-type: expected bf16 for cuda:sm_90a, got \"f32\"");
  expectFailure("compile x -o y --target=cuda:sm_90a --isas=avx2", 2, "--isas: expected no instruction sets of a CPU for cuda:sm_90a, got \"avx2\"");
  expectFailure("compile x -o y --target=cuda:sm_90a --target-cpu=native", 2, "--target-cpu: expected no instruction sets");
  expectFailure("compile x -o y --target=cuda:sm_90a --emit=asm", 2, "--emit: expected llvm, ptx, cubin or object of the code for cuda:sm_90a, got \"asm\"");
  expectFailure("compile x -o y --emit=ptx", 2, "--emit: expected llvm, asm or object of the code for a CPU, got \"ptx\"");
  expectFailure("compile x --target=cuda:sm_90a --emit=cubin", 2, "llmc compile: expected -o FOLDER for cubins");
  expectFailure("compile x -o y --ptx-only", 2, "--ptx-only: expected a GPU as --target, got cpu");
  expectFailure("compile x -o y --trap-checks", 2, "--trap-checks: expected a GPU as --target, got cpu");
  expectFailure("compile x -o y --weights=none", 1, "--weights: expected embedded, separate or random:SEED");
  expectFailure("compile x -o y --max-shard-size=1MiB", 2, "--max-shard-size: expected --weights=separate with it, got --weights=embedded");
  expectFailure("compile x -o y --random-storage=q4_0", 2, "--random-storage: expected --weights=random:SEED with it, got --weights=embedded");
  expectFailure("compile x --max-seqs=0", 2, "--max-seqs: expected a number of 1 to 4096, got \"0\"");
  expectFailure("compile x --max-seqs=12x", 2, "--max-seqs: expected a number");
  expectFailure("compile x --no-fuse-qkv=yes", 2, "--no-fuse-qkv: expected no value, got \"yes\"");
  expectFailure("compile x --target-cpu=z80 -o y", 2, "--target-cpu: expected native, avx2, avx512vnni, avx512bf16, amxbf16, neon_dotprod, got \"z80\"");
  expectFailure("compile x --isas=avx2,sse -o y", 2, "--isas: expected avx2, avx512vnni, avx512bf16, amxbf16, neon_dotprod, got \"sse\"");
  expectFailure("compile x --isas=avx2,neon_dotprod -o y", 2,
                "--isas: expected instruction sets of one architecture, got avx2 (x86-64) and neon_dotprod (AArch64)");
  expectFailure("compile x --isas=avx2 --target-cpu=avx2 -o y", 2, "expected one of --target-cpu and --isas, got both");
  expectFailure("compile x --stop-after=dinner", 2, "--stop-after: expected imported, fused");
  expectFailure("plan x --memory=lots", 2, "--memory: expected bytes such as 512MiB or 8GiB, got \"lots\"");
}

TEST(Command, badInput) {
  Folder folder;
  std::string absent = folder.path / "absent.gguf", text = folder.path / "text.gguf", out = folder.path / "out";
  std::ofstream(text) << "hello\n";
  for (const char *command : {"compile -o /dev/null ", "inspect ", "plan "}) {
    expectFailure(command + absent, 1, absent);
    expectFailure(command + text, 1, text);
    expectFailure(command + folder.path.string(), 1, folder.path.string()); // a folder that is no model
  }
  expectFailure("compile " + text + " -o " + folder.path.string(), 1, folder.path.string() + ": expected a file to write, got a directory");
  expectFailure("compile " + text + " -o " + out + "/x", 1, out + "/x: expected the folder " + out + " to exist");
  expectFailure("--worker", 1, "--worker: expected IN OUT ISA FORM NAME");
  EXPECT_FALSE(fs::exists(out));
}
} // namespace
