// Runs the real executable around the hand-written model.
#ifndef LLMC_TEST_RUNTIME_TOOL_RUNTOOL_H
#define LLMC_TEST_RUNTIME_TOOL_RUNTOOL_H

#include "FakePackage.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace fake {

struct Outcome {
  int code;
  std::string out, err;
};

inline std::string quoted(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// One executable around the hand-written model, "model", in a folder of its own.
class Tool : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    writePackage(*folder_ / "model", LLMC_STUB);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  Outcome run(std::vector<std::string> arguments, const std::string &input = "", const std::string &exe = "model") {
    std::string line = quoted(*folder_ / exe);
    for (const std::string &argument : arguments)
      line += " " + quoted(argument);
    std::ofstream(*folder_ / "in") << input;
    line += " <" + quoted(*folder_ / "in") + " >" + quoted(*folder_ / "out") + " 2>" + quoted(*folder_ / "err");
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status)) << line;
    return {WEXITSTATUS(status), readFile(*folder_ / "out"), readFile(*folder_ / "err")};
  }

  static TemporaryFolder *folder_;
};
inline TemporaryFolder *Tool::folder_ = nullptr;

inline void expectFailure(const Outcome &outcome, int code, const std::string &part) {
  EXPECT_EQ(outcome.code, code);
  EXPECT_EQ(outcome.err.find("model: error: "), 0u) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
}

} // namespace fake

#endif // LLMC_TEST_RUNTIME_TOOL_RUNTOOL_H
