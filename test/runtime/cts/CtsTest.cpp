// The conformance suite itself: passes on the hand-written model on both devices, and notices faults.
#include "FakePackage.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/wait.h>

using namespace fake;

namespace {

struct Outcome {
  int code;
  std::string out;
};

Outcome run(const std::string &module, const std::string &isa, const std::string &environment = "", const std::string &flags = "") {
  const TemporaryFolder folder;
  writePackage(folder / "model.llmc", "", module, isa);
  const std::string driver = std::filesystem::path(LLMC_FAKE_CUDA_DRIVER).parent_path();
  const std::string line = "LD_LIBRARY_PATH='" + driver + "' LLMC_FAKE_CUDA='" + environment + "' '" LLMC_CTS "' " +
                           (folder / "model.llmc") + " --threads 2 " + flags + " >" + (folder / "out") + " 2>&1";
  const int status = std::system(line.c_str());
  EXPECT_TRUE(WIFEXITED(status)) << line;
  return {WEXITSTATUS(status), readFile(folder / "out")};
}

TEST(Cts, PassesOnBothDevices) {
  for (const char *flags : {"", "--quick"}) {
    const Outcome cpu = run(LLMC_FAKE_MODULE, "avx2", "", flags), cuda = run(LLMC_FAKE_CUDA_MODULE, "sm_90a", "", flags);
    for (const Outcome &outcome : {cpu, cuda}) {
      EXPECT_EQ(outcome.code, 0) << outcome.out;
      EXPECT_NE(outcome.out.find(" passed, 0 failed\n"), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.out.find("FAIL"), std::string::npos) << outcome.out;
    }
  }
}

TEST(Cts, NoticesADeviceLost) {
  const Outcome outcome = run(LLMC_FAKE_CUDA_MODULE, "sm_90a", "lose=append:700");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("FAIL sequences of one token"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("the device takes no more work since it failed"), std::string::npos) << outcome.out;
}

TEST(Cts, SaysWhyItCannotRun) {
  const Outcome outcome = run(LLMC_FAKE_CUDA_MODULE, "sm_90a", "major=8");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out.find("llmc-cts: error: device 0 is an NVIDIA Fake"), 0u) << outcome.out;
}

} // namespace
