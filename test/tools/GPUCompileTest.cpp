//===- GPUCompileTest.cpp - llmc compile for a GPU, without one -----------===//
//
// A model that is a config.json, so that nothing but kernels takes time. What needs a ptxas is skipped where there is none.
//
//===----------------------------------------------------------------------===//
#include "llmc/Target/Cubin.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/wait.h>

namespace fs = std::filesystem;

namespace {
const char kConfig[] = R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 128, "intermediate_size": 96,
  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 200,
  "max_position_embeddings": 256})";

class GPUCompile : public testing::Test {
protected:
  fs::path folder = fs::temp_directory_path() / ("llmc-gpu-compile-" + std::to_string(getpid()));

  void SetUp() override {
    fs::create_directories(folder / "model");
    std::ofstream(folder / "model/config.json") << kConfig;
  }
  void TearDown() override { fs::remove_all(folder); }

  /// Both streams, the exit code at the end.
  std::string run(const std::string &command, const std::string &flags, const std::string &environment = "") {
    std::string line = environment + " " + LLMC_EXECUTABLE + " " + command + " " + (folder / "model").string() +
                       " --target=cuda:sm_90a " + flags + " 2>&1 < /dev/null";
    std::FILE *pipe = popen(line.c_str(), "r");
    std::string out;
    std::array<char, 4096> buffer;
    while (size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
      out.append(buffer.data(), count);
    int status = pclose(pipe);
    return out + "exit " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  std::string compile(const std::string &flags, const std::string &environment = "") {
    return run("compile", "--weights=random:7 --no-cache " + flags, environment);
  }
  std::string text(const std::string &name) {
    std::ifstream file(folder / name);
    return (std::stringstream() << file.rdbuf()).str();
  }
};

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST_F(GPUCompile, aPackageWithoutAssembler) {
  std::string exe = folder / "exe", out = compile("--ptx-only -o " + exe);
  EXPECT_TRUE(contains(out, "exit 0")) << out;
  EXPECT_TRUE(contains(out, "weights 0.3 MB, random: made at load")) << out;
  EXPECT_FALSE(contains(out, "warning")) << out;
  EXPECT_TRUE(fs::exists(exe));
}

TEST_F(GPUCompile, everyKernelPassesTheGate) {
  if (!llmc::findPtxas())
    GTEST_SKIP() << "no ptxas";
  std::string out = compile("--emit=ptx -o " + (folder / "all.ptx").string());
  EXPECT_TRUE(contains(out, "sm_90a: no spills, at most ")) << out;
  std::string ptx = text("all.ptx");
  size_t end = 0;
  std::string header, name;
  int registers = 0;
  for (size_t begin = ptx.find("// kernel linear_"); begin != std::string::npos && registers <= 70; begin = ptx.find("// kernel linear_", end)) {
    end = ptx.find('\n', begin); // of one that cannot do with 32 registers
    header = ptx.substr(begin, end - begin), name = header.substr(10, header.find(',') - 10);
    ASSERT_TRUE(contains(header, " threads, ") && contains(header, " registers")) << header;
    registers = std::stoi(header.substr(header.rfind(", ") + 2));
  }
  ASSERT_GT(registers, 70) << ptx.substr(0, 400);
  EXPECT_TRUE(contains(ptx.substr(end), ".entry " + name + "(")) << name;

  out = compile("-o " + (folder / "exe").string(), "LLMC_TEST_MAXREG=" + name + ":32");
  EXPECT_TRUE(contains(out, "llmc: error: kernel " + name + ": the worker exited with 1: expected no spills, no stack and no remark C75xx "
                                                              "from ptxas, got: ")) << out;
  EXPECT_TRUE(contains(out, "exit 1")) << out;
  EXPECT_FALSE(fs::exists(folder / "exe"));

  out = compile("--emit=cubin -o " + (folder / "cubins").string());
  EXPECT_TRUE(fs::exists(folder / "cubins" / (name + ".cubin"))) << out;
}

TEST_F(GPUCompile, aWrongAssemblerIsNamed) {
  std::string out = compile("-o " + (folder / "exe").string(), "LLMC_PTXAS=/bin/true");
  EXPECT_TRUE(contains(out, "llmc: error: LLMC_PTXAS: expected the path of a ptxas that runs, got \"/bin/true\"\nexit 1")) << out;
}

TEST_F(GPUCompile, plan) {
  std::string out = run("plan", "--memory=80GiB");
  EXPECT_TRUE(contains(out, "step buffers")) << out;
  EXPECT_TRUE(contains(out, "tokens of KV fit")) << out;
  EXPECT_TRUE(contains(out, "h200-sxm")) << out;
  EXPECT_TRUE(contains(out, "nominal 4.8 TB/s")) << out;
  out = run("plan", "--memory=1MiB");
  EXPECT_TRUE(contains(out, "exit 1")) << out;
  EXPECT_TRUE(contains(out, "llmc: error: the model needs ")) << out;
}
} // namespace
