// SmolLM2's tokenizer against the goldens of HF tokenizers (make_goldens.py).
// Needs LLMC_TEST_MODEL=SmolLM2-135M-Instruct.Q4_1.gguf; test.sh sets it.

#include "Synthetic.h"

#include "llmc/Frontend/ModelFacts.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>

using namespace llmc;
using llmc::test::cpuSeconds;
using nlohmann::json;

namespace {
class RealModel : public testing::Test {
protected:
  static void SetUpTestSuite() {
    if (const char *path = std::getenv("LLMC_TEST_MODEL")) {
      data = new TokenizerData(loadModelFacts(path).tokenizer);
      data->unkId = -1; // SmolLM2's BPE model has none; the goldens drop the bytes that no token spells
      tokenizer = new Tokenizer(Tokenizer::create(*data));
      goldens = new json(json::parse(std::ifstream(LLMC_SOURCE_DIR "/test/runtime/tokenizer/goldens.json")));
    }
  }
  static void TearDownTestSuite() {
    delete tokenizer;
    delete data;
    delete goldens;
  }
  void SetUp() override {
    if (!tokenizer)
      GTEST_SKIP() << "LLMC_TEST_MODEL is not set";
  }

  static uint32_t fnv(const std::vector<int32_t> &ids) {
    uint32_t h = 0x811C9DC5;
    for (int32_t id : ids)
      for (int shift = 0; shift < 32; shift += 8)
        h = (h ^ (static_cast<uint32_t>(id) >> shift & 0xFF)) * 0x01000193u;
    return h;
  }

  static void compare(const char *group, bool parseSpecial) {
    size_t checked = 0;
    for (const json &c : (*goldens)[group]) {
      std::string text = c[0];
      std::vector<int32_t> ids = tokenizer->encode(text, parseSpecial, false);
      EXPECT_TRUE(ids.size() == c[1] && fnv(ids) == c[2]) << "differs: " << c[0] << " gave " << json(ids);
      ++checked;
    }
    EXPECT_GE(checked, 100u);
  }

  static TokenizerData *data;
  static Tokenizer *tokenizer;
  static json *goldens;
};
TokenizerData *RealModel::data = nullptr;
Tokenizer *RealModel::tokenizer = nullptr;
json *RealModel::goldens = nullptr;
} // namespace

TEST_F(RealModel, EncodesAsTheReference) { compare("special", true); }

TEST_F(RealModel, UserTextStaysText) { compare("plain", false); }

TEST_F(RealModel, DecodesAsTheReference) {
  for (const json &c : (*goldens)["decode"]) {
    auto ids = c[0].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer->decode(ids, false), c[1].get<std::string>()) << c[0];
    EXPECT_EQ(tokenizer->decode(ids, true), c[2].get<std::string>()) << c[0];
  }
}

TEST_F(RealModel, LongRunsAsTheReference) {
  for (const json &c : (*goldens)["long"]) {
    std::string unit = c[0], text;
    for (int i = 0; i < c[1]; ++i)
      text += unit;
    std::vector<int32_t> ids = tokenizer->encode(text, true, false);
    EXPECT_TRUE(ids.size() == c[2] && fnv(ids) == c[3]) << c[0] << " gave " << ids.size() << " ids";
  }
}

TEST_F(RealModel, RoundTripsText) {
  std::ifstream file(LLMC_SOURCE_DIR "/test/data/evaluation.txt");
  std::string text(std::istreambuf_iterator<char>(file), {});
  ASSERT_GT(text.size(), 4000u);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false, false), false), text);
}

TEST_F(RealModel, LoadsInAFewMilliseconds) {
  std::string bytes = data->serialize();
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    double start = cpuSeconds();
    Tokenizer fresh = Tokenizer::load(bytes);
    best = std::min(best, 1e3 * (cpuSeconds() - start));
    EXPECT_EQ(fresh.size(), 49152u);
    const char *text = "Loading changes nothing: <|im_start|>  12 x\u00e9\n";
    EXPECT_EQ(fresh.encode(text, true, false), tokenizer->encode(text, true, false));
  }
  RecordProperty("load_ms", std::to_string(best));
  std::printf("load and create: %.1f ms, %zu bytes\n", best, bytes.size());
#if !defined(__has_feature) || !__has_feature(address_sanitizer)
  EXPECT_LT(best, 25.0);
#endif
}
