// The real executable around a module for GPUs: without a driver, and with FakeCuda.h's.
#include "FakePackage.h"
#include "runtime/package/Profile.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace fake;
using Json = nlohmann::json;

namespace {

struct Outcome {
  int code;
  std::string out, err;
};

class GpuTool : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    writePackage(*folder_ / "model", LLMC_STUB, LLMC_FAKE_CUDA_MODULE, "sm_90a");
    writePackage(*folder_ / "cpu", LLMC_STUB);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  /// `machine`: see FakeCuda.h; "none": no driver.
  Outcome run(const std::string &arguments, const std::string &machine = "", const std::string &exe = "model") {
    const std::string driver = std::filesystem::path(LLMC_FAKE_CUDA_DRIVER).parent_path();
    const std::string environment =
        machine == "none" ? "LD_LIBRARY_PATH= " : "LD_LIBRARY_PATH='" + driver + "' LLMC_FAKE_CUDA='" + machine + "' ";
    const std::string line = environment + (*folder_ / exe) + " " + arguments + " >" + (*folder_ / "out") + " 2>" + (*folder_ / "err");
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status)) << line;
    return {WEXITSTATUS(status), readFile(*folder_ / "out"), readFile(*folder_ / "err")};
  }
  void expectFailure(const Outcome &outcome, const std::string &part) {
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err.find("model: error: "), 0u) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }

  static TemporaryFolder *folder_;
};
TemporaryFolder *GpuTool::folder_ = nullptr;

TEST_F(GpuTool, ProfileTimesLaunchesByEvents) {
  const std::string file = *folder_ / "p.json";
  const Outcome got = run("bench --profile " + file + " --prompt 9 --repeat 3");
  ASSERT_EQ(got.code, 0) << got.err;
  const llmc::Profile profile = llmc::Profile::parse(readFile(file), file);
  EXPECT_EQ(profile.isa, "sm_90a");
  EXPECT_NE(profile.device, "cpu");
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(profile.steps[1].context, 10u);
  for (const llmc::Profile::Step &step : profile.steps) {
    ASSERT_EQ(step.launches.size(), 6u);
    for (const llmc::Profile::Launch &launch : step.launches)
      EXPECT_NEAR(launch.seconds, 0.5e-3, 1e-9); // what the driver of FakeCuda.h says
  }
  EXPECT_NE(got.out.find("ms a step (median of 3); its launches: 3.000 ms"), std::string::npos) << got.out;

  const Outcome bursts = run("bench --profile " + file + " --bursts --prompt 9 --repeat 3");
  ASSERT_EQ(bursts.code, 0) << bursts.err;
  for (const llmc::Profile::Step &step : llmc::Profile::parse(readFile(file), file).steps)
    for (const llmc::Profile::Launch &launch : step.launches)
      EXPECT_NEAR(launch.seconds, 0.5e-3, 1e-9);
  EXPECT_EQ(run("bench --bursts").code, 2);
  const Outcome cpu = run("bench --profile " + file + " --bursts --prompt 9", "", "cpu");
  EXPECT_EQ(cpu.code, 1);
  EXPECT_NE(cpu.err.find("error: bursts: expected a package for a GPU, got one for cpu"), std::string::npos) << cpu.err;
}

TEST_F(GpuTool, TextIsThatOfTheCpu) {
  for (const char *flags : {"--ids -n 20 --raw abc", "--ids -n 20 --raw -t 1 --seed 5 abc", "--ids hi", "--ptx --ids hi"}) {
    const Outcome gpu = run(std::string("run ") + flags);
    ASSERT_EQ(gpu.code, 0) << gpu.err;
    if (std::string(flags).find("ptx") == std::string::npos) {
      EXPECT_EQ(gpu.out, run(std::string("run ") + flags, "", "cpu").out) << flags;
    }
  }
}

TEST_F(GpuTool, StartsWithoutADriverAndSaysSo) {
  const Outcome info = run("info", "none");
  ASSERT_EQ(info.code, 0) << info.err;
  for (const char *part : {"step buffers", "kv pool", "GPU, own allocations", "this machine cannot run the package: no CUDA driver"})
    EXPECT_NE(info.out.find(part), std::string::npos) << info.out;
  const Json j = Json::parse(run("info --json", "none").out);
  EXPECT_EQ(j["memory"]["device_bytes"], 4 * (2 << 20));
  EXPECT_EQ(j["ops"].size(), 6u);
  EXPECT_TRUE(j["gpu"].contains("missing"));
  expectFailure(run("run hi", "none"), "no CUDA driver (libcuda.so.1) on this machine");
  expectFailure(run("bench --prompt 9 --gen 2", "none"), "is compiled for cuda:sm_90a");
}

TEST_F(GpuTool, InfoAsksTheGpu) {
  const Json j = Json::parse(run("info --json", "name=H-Test").out);
  EXPECT_EQ(j["gpu"]["name"], "H-Test");
  EXPECT_EQ(j["gpu"]["total_bytes"].get<uint64_t>(),
            j["memory"]["device_bytes"].get<uint64_t>() + j["gpu"]["empty_context_bytes"].get<uint64_t>());
}

TEST_F(GpuTool, MachinesThatCannotRunIt) {
  expectFailure(run("run hi", "devices=0"), "no CUDA device on this machine");
  expectFailure(run("run hi", "major=8 name=A100-SXM4"), "is an A100-SXM4 (compute capability 8.0)");
  expectFailure(run("run hi --device 1"), "--device: expected a number below 1");
  expectFailure(run("run hi --context 64 --kv-memory 2GiB"), "are free on NVIDIA Fake");
  expectFailure(run("run hi", "memory=120000000"), "it would not fit with any KV pool");
}

TEST_F(GpuTool, ADeviceLostInTheMiddle) {
  const Outcome lost = run("run hi", "lose=head:719");
  EXPECT_EQ(lost.code, 1);
  EXPECT_NE(lost.err.find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos) << lost.err;
  EXPECT_NE(run("run hi --sync-launches", "lose=head:719").err.find("in op 4 (output, kernel head)"), std::string::npos);
}

TEST_F(GpuTool, VerifySaysThatThereIsNoReference) {
  expectFailure(run("verify"), "the reference program is not part of a package for a GPU");
}

TEST_F(GpuTool, BenchOfBatches) {
  for (const char *exe : {"model", "cpu"}) {
    const Outcome got = run("bench --batch 1,3,4 --prompt 40 --generate 5 --repeat 2", "", exe);
    ASSERT_EQ(got.code, 0) << got.err;
    const Json j = Json::parse(got.out);
    ASSERT_EQ(j["batches"].size(), 3u);
    EXPECT_EQ(j["batches"][1]["batch"], 3);
    EXPECT_GT(j["batches"][2]["prefill_tokens_per_second"], 0);
    EXPECT_GT(j["batches"][2]["decode_tokens_per_second"], 0);
    EXPECT_EQ(j.contains("gpu"), std::string(exe) == "model");
  }
  expectFailure(run("bench --batch 1,5"), "--batch: expected at most 4 sequences, which is what the package was compiled for");
  expectFailure(run("bench --batch 1 --prompt 90 --gen 7"), "expected at most 96 tokens together");
  EXPECT_EQ(run("bench --batch 1,,2").code, 2);
}

} // namespace
