// The file between EXE bench --profile and llmc explain.
#include "TwoLayers.h"
#include "ErrorOf.h"
#include "runtime/package/Profile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace llmc;

namespace {

Profile sample() { return {"0.1.0", "two", 0x0123456789abcdefull, "sm_90a", "NVIDIA H200", "sm_90a, driver 13.0", 1, {two::measuredStep()}}; }

std::string message(const std::string &text) {
  return errorOf([&] { Profile::parse(text, "p.json"); });
}

std::string changed(const std::function<void(nlohmann::json &)> &change) {
  nlohmann::json j = nlohmann::json::parse(sample().serialize());
  change(j);
  return message(j.dump());
}

TEST(Profile, RoundTrip) {
  const Profile profile = Profile::parse(sample().serialize(), "p.json");
  EXPECT_EQ(profile.weightsId, 0x0123456789abcdefull);
  EXPECT_EQ(profile.device, "NVIDIA H200");
  EXPECT_EQ(profile.isa, "sm_90a");
  ASSERT_EQ(profile.steps.size(), 1u);
  EXPECT_EQ(profile.steps[0].context, 100u);
  EXPECT_EQ(profile.steps[0].seconds, 0.02);
  ASSERT_EQ(profile.steps[0].launches.size(), 5u);
  EXPECT_EQ(profile.steps[0].launches[3].op, "blk.1.attention");
  EXPECT_EQ(profile.steps[0].launches[3].layer, 1);
  EXPECT_EQ(profile.steps[0].launches[3].seconds, 4e-3);
  EXPECT_EQ(profile.serialize(), sample().serialize());
}

TEST(Profile, NamesThatAreNoUtf8) {
  Profile profile = sample();
  profile.model = "\xff\xfe";
  EXPECT_NO_THROW(Profile::parse(profile.serialize(), "p.json"));
}

TEST(Profile, WrongFilesAreNamed) {
  EXPECT_EQ(message("no JSON").rfind("p.json: expected a profile of EXE bench --profile, got no JSON: ", 0), 0u);
  EXPECT_EQ(message("[1]"), "p.json: expected a profile of EXE bench --profile, got JSON without the key 'llmc_profile'");
  EXPECT_EQ(message("{\"model\": 1}"), "p.json: expected a profile of EXE bench --profile, got JSON without the key 'llmc_profile'");
  EXPECT_EQ(changed([](auto &j) { j["llmc_profile"] = 7; }), "p.json.llmc_profile: expected 1, got 7; another version of llmc made it");
  EXPECT_EQ(changed([](auto &j) { j["weights_id"] = "xyz"; }), "p.json.weights_id: expected 16 hexadecimal digits, got \"xyz\"");
  EXPECT_EQ(changed([](auto &j) { j["steps"] = nlohmann::json::array(); }), "p.json.steps: expected at least one step, got none");
  EXPECT_EQ(changed([](auto &j) { j["steps"][0]["context"] = 0; }),
            "p.json.steps[0]: expected sequences and tokens of at least 1 and a context of at least the tokens, got 1, 1 and 0");
  EXPECT_EQ(changed([](auto &j) { j["steps"][0]["launches"][2]["seconds"] = -1; }),
            "p.json.steps[0].launches[2].seconds: expected a number of at least 0, got -1");
  EXPECT_EQ(changed([](auto &j) { j["steps"][0]["launches"][2].erase("op"); }), "p.json.steps[0].launches[2]: no key 'op'");
  EXPECT_EQ(changed([](auto &j) { j["device"] = "gpu"; }), "p.json.device: expected an object, got string");
}

} // namespace
