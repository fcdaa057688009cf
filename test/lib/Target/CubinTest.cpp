//===- CubinTest.cpp - the gate, ptxas, compiled kernels as bytes ---------===//
//
// What needs a ptxas is skipped where there is none.
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/ScratchFolder.h"
#include "llmc/Target/Cubin.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>

using namespace llmc;
namespace fs = std::filesystem;

namespace {
std::string failure(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// Keeps `live` values in registers at once.
std::string kernelWith(int live, const std::string &directives = "") {
  std::string ptx = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) .reqntid 128 " +
                    directives + "\n{\n.reg .b64 %a;\n.reg .f32 %f<" + std::to_string(live) +
                    ">;\nld.param.u64 %a, [p];\ncvta.to.global.u64 %a, %a;\n";
  for (int i = 0; i < live; ++i)
    ptx += "ld.volatile.global.f32 %f" + std::to_string(i) + ", [%a+" + std::to_string(4 * i) + "];\n";
  for (int i = live; i-- > 0;)
    ptx += "st.volatile.global.f32 [%a+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
  return ptx + "ret;\n}\n";
}

GPUKernel kernelOf(const std::string &ptx) {
  GPUKernel kernel;
  kernel.ptx = ptx;
  return kernel;
}

const char kClean[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers, 1024 bytes smem
ptxas info    : Compile time = 74.742 ms
)";

TEST(PtxasOutput, clean) {
  PtxasReport report = parsePtxasOutput(kClean);
  EXPECT_EQ(report.registers, 168u);
  EXPECT_TRUE(report.complaints.empty());
  EXPECT_TRUE(parsePtxasOutput("").complaints.empty());
}

TEST(PtxasOutput, everySpillAndStackCounts) {
  for (const char *line : {"    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
                           "    0 bytes stack frame, 12 bytes spill stores, 0 bytes spill loads",
                           "    0 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads"}) {
    PtxasReport report = parsePtxasOutput(std::string(kClean) + line + "\n");
    ASSERT_EQ(report.complaints.size(), 1u) << line;
    EXPECT_EQ(report.complaints[0], std::string(line).substr(4));
  }
}

TEST(PtxasOutput, performanceRemarks) {
  PtxasReport report = parsePtxasOutput(
      std::string(kClean) +
      "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma "
      "instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in the function 'k'\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.\n"
      "ptxas info    : (C9999) something else\n");
  ASSERT_EQ(report.complaints.size(), 2u);
  EXPECT_EQ(report.complaints[0].find("(C7514) Potential Performance Loss: wgmma"), 0u) << report.complaints[0];
  EXPECT_EQ(report.complaints[1].find("(C7508)"), 0u);
}

TEST(PtxasOutput, oddText) {
  for (const char *text : {"registers", "(C75", "(C75x9)", "bytes stack frame", "\n\n\n", "99999999999999999999999 registers"})
    EXPECT_TRUE(parsePtxasOutput(text).complaints.empty()) << text;
}

TEST(GPUKernel, roundTrip) {
  GPUKernel kernel;
  kernel.cubin = std::string("\x7f" "ELF\0\n", 6);
  kernel.ptx = ".version 8.6\n";
  kernel.threads = 384, kernel.sharedBytes = 200000, kernel.registers = 168, kernel.persistent = 4;
  kernel.tensorMaps.push_back({1, LLMC_BF16, 2, 128, {64, 32, 0, 0, 0}, {2, 128, 0, 0, 0}, {64, 8, 0, 0, 0}, 0});
  std::string bytes = kernel.serialize();
  GPUKernel read = GPUKernel::parse(bytes);
  EXPECT_EQ(read.cubin, kernel.cubin);
  EXPECT_EQ(read.ptx, kernel.ptx);
  EXPECT_EQ(read.threads, 384u);
  EXPECT_EQ(read.sharedBytes, 200000u);
  EXPECT_EQ(read.registers, 168u);
  EXPECT_EQ(read.persistent, 4u);
  ASSERT_EQ(read.tensorMaps.size(), 1u);
  EXPECT_EQ(read.tensorMaps[0].strides[1], 128u);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(failure([&] { GPUKernel::parse(std::string_view(bytes).substr(0, size)); }), "") << size;
  std::string longer = bytes + "x", other = bytes;
  other[0] = 'L';
  EXPECT_NE(failure([&] { GPUKernel::parse(longer); }), "");
  EXPECT_NE(failure([&] { GPUKernel::parse(other); }), "");
}

class Gate : public testing::Test {
protected:
  void SetUp() override {
    if (!(ptxas = findPtxas()))
      GTEST_SKIP() << "no ptxas";
  }
  std::optional<Ptxas> ptxas;
};

TEST_F(Gate, aGoodKernelPasses) {
  EXPECT_FALSE(ptxas->version.empty());
  GPUKernel kernel = kernelOf(kernelWith(80));
  assemble(kernel, ptxas->path, "sm_90a");
  EXPECT_EQ(kernel.cubin.substr(0, 4), "\x7f" "ELF");
  EXPECT_GE(kernel.registers, 80u);
}

TEST_F(Gate, spillsFail) {
  GPUKernel kernel = kernelOf(kernelWith(80, ".maxnreg 24"));
  std::string message = failure([&] { assemble(kernel, ptxas->path, "sm_90a"); });
  EXPECT_EQ(message.find("expected no spills, no stack and no remark C75xx from ptxas, got: "), 0u) << message;
  EXPECT_NE(message.find("bytes spill stores"), std::string::npos) << message;
  EXPECT_TRUE(kernel.cubin.empty());
}

TEST_F(Gate, errorsNameTheLine) {
  GPUKernel kernel = kernelOf(kernelWith(2) + "bogus\n");
  std::string message = failure([&] { assemble(kernel, ptxas->path, "sm_90a"); });
  EXPECT_EQ(message.find("ptxas exited with 255: ptxas kernel.ptx, line 1"), 0u) << message;
}

TEST(FindPtxas, theVariableMustBeOne) {
  std::string before = std::getenv("LLMC_PTXAS") ? std::getenv("LLMC_PTXAS") : "";
  ScratchFolder scratch;
  for (const std::string &path : {std::string("/absent/ptxas"), std::string("/bin/true"), scratch.file("")}) {
    setenv("LLMC_PTXAS", path.c_str(), 1);
    EXPECT_EQ(failure([] { findPtxas(); }).find("LLMC_PTXAS: expected the path of a ptxas that runs, got \""), 0u) << path;
  }
  std::string fake = scratch.file("ptxas");
  writeFile(fake, "#!/bin/sh\necho 'Cuda compilation tools, release 99.1, V99.1.7'\n");
  fs::permissions(fake, fs::perms::owner_all);
  setenv("LLMC_PTXAS", fake.c_str(), 1);
  auto found = findPtxas();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, fake);
  EXPECT_EQ(found->version, "99.1.7");
  before.empty() ? unsetenv("LLMC_PTXAS") : setenv("LLMC_PTXAS", before.c_str(), 1);
}
} // namespace
