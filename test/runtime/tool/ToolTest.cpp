// The executable's commands, one by one; text and conversations: TextToolTest.cpp.
#include "RunTool.h"
#include "runtime/package/Profile.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace fake;
using Json = nlohmann::json;

namespace {

std::vector<int32_t> greedy(std::vector<int32_t> ids, size_t count) {
  const size_t start = ids.size();
  for (size_t i = 0; i < count; ++i) {
    const std::vector<float> logits = expectedLogits(ids);
    ids.push_back(int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    if (ids.back() == kEos)
      break;
  }
  return {ids.begin() + start, ids.end()};
}

TEST_F(Tool, RunsThePromptThroughTheTemplate) {
  const Outcome got = run({"run", "--ids", "-n", "12", "hi"});
  ASSERT_EQ(got.code, 0) << got.err;
  const Json j = Json::parse(got.out);
  std::vector<int32_t> prompt = {256};
  auto text = [&](const std::string &s) { prompt.insert(prompt.end(), s.begin(), s.end()); };
  text("user\nhi");
  prompt.push_back(257);
  text("\n");
  prompt.push_back(256);
  text("assistant\n");
  EXPECT_EQ(j["prompt_ids"].get<std::vector<int32_t>>(), prompt);
  EXPECT_EQ(j["ids"].get<std::vector<int32_t>>(), greedy(prompt, 12));
}

TEST_F(Tool, RawPromptSystemMessagesAndStandardInput) {
  auto promptOf = [&](std::vector<std::string> arguments, const std::string &input = "") {
    arguments.insert(arguments.begin(), {"run", "--ids", "-n", "0"});
    const Outcome got = run(arguments, input);
    EXPECT_EQ(got.code, 0) << got.err;
    std::string text;
    for (int id : Json::parse(got.out)["prompt_ids"].get<std::vector<int>>())
      text += id == 256 ? "<" : id == 257 ? ">" : std::string(1, char(id));
    return text;
  };
  EXPECT_EQ(promptOf({"--raw", "<|im_start|>x"}), "<|im_start|>x") << "a user's text has no special tokens";
  EXPECT_EQ(promptOf({"--raw", "-"}, "from stdin\n"), "from stdin\n");
  EXPECT_EQ(promptOf({"--system", "S", "u"}), "<system\nS>\n<user\nu>\n<assistant\n");
  EXPECT_EQ(promptOf({"--system", "", "u"}), "<system\n>\n<user\nu>\n<assistant\n");
  std::ofstream(*folder_ / "messages") << R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])";
  EXPECT_EQ(promptOf({"--messages", *folder_ / "messages"}), "<user\na>\n<assistant\nb>\n<assistant\n");
}

TEST_F(Tool, TextIsValidUtf8AndEqualForEqualSeeds) {
  const std::vector<std::string> arguments = {"run", "--raw", "-n", "60", "-t", "1", "--seed", "3", "abc"};
  const Outcome first = run(arguments), second = run(arguments);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_NO_THROW(Json(first.out).dump()) << "strict about UTF-8";
  std::vector<std::string> other = arguments;
  other[7] = "4";
  EXPECT_NE(run(other).out, first.out);
}

TEST_F(Tool, TokenCounts) {
  for (int n : {0, 1, 2})
    EXPECT_EQ(Json::parse(run({"run", "--raw", "--ids", "-n", std::to_string(n), "q"}).out)["ids"].size(), size_t(n));
  const Outcome huge = run({"run", "--raw", "--ids", "-n", "9223372036854775808", "q"});
  EXPECT_EQ(huge.code, 0) << huge.err;
  EXPECT_LE(Json::parse(huge.out)["ids"].size(), size_t(kMaxContext));
}

TEST_F(Tool, UsageErrorsExitWith2) {
  expectFailure(run({}), 2, "subcommand");
  expectFailure(run({"dance"}), 2, "subcommand");
  expectFailure(run({"run"}), 2, "PROMPT is required");
  expectFailure(run({"run", "--nope", "x"}), 2, "--nope");
  for (const char *n : {"-1", "-2", "1.5", "five", "", "0x10", " 5"})
    expectFailure(run({"run", "-n", n, "x"}), 2, "--max-tokens: expected a whole number");
  for (const char *t : {"-0.5", "nan", "hot", "inf", ""})
    expectFailure(run({"run", std::string("--temperature=") + t, "x"}), 2, *t ? "--temperature: expected a number" : "--temperature");
  for (const char *p : {"-0.1", "1.5"}) {
    expectFailure(run({"run", "--top-p", p, "x"}), 2, "--top-p: expected a number from 0 to 1");
    expectFailure(run({"run", "--min-p", p, "x"}), 2, "--min-p: expected a number from 0 to 1");
  }
  expectFailure(run({"run", "--threads", "0", "x"}), 2, "--threads");
  expectFailure(run({"run", "--kv-memory", "lots", "x"}), 2, "--kv-memory: expected a size");
}

TEST_F(Tool, EdgeValuesOfSamplingAreAccepted) {
  for (std::vector<std::string> flags : {std::vector<std::string>{"--top-k", "-1"}, {"--top-k", "1000000000000"}, {"--top-p", "0"},
                                         {"--top-p", "1"}, {"--min-p", "1"}, {"-t", "1e-45"}, {"-t", "1e-9"}, {"-t", "5"}}) {
    flags.insert(flags.begin(), {"run", "--raw", "-n", "3"});
    flags.push_back("x");
    const Outcome got = run(flags);
    EXPECT_EQ(got.code, 0) << flags[4] << " " << flags[5] << ": " << got.err;
  }
}

TEST_F(Tool, OtherErrorsExitWith1) {
  expectFailure(run({"run", "--raw", ""}), 1, "prompt: expected at least one token, got none (the text is empty, and the model's tokenizer adds no");
  expectFailure(run({"run", "--isa", "avx512vnni", "x"}), 1, "avx512vnni");
  expectFailure(run({"run", "--isa", "mmx", "x"}), 1, "expected one of amxbf16, avx512bf16, avx512vnni, avx2, neon_dotprod, got 'mmx'");
  expectFailure(run({"run", "--raw", std::string(200, 'a')}), 1, "expected at most 96 tokens (the context length), got 200");
  expectFailure(run({"run", "--messages", "/nonexistent"}), 1, "/nonexistent");
  expectFailure(run({"run", "\xff\xfe"}), 1, "prompt: expected UTF-8 text, got a malformed byte at offset 0");
}

TEST_F(Tool, TruncatedOrDamagedExecutables) {
  const std::string bytes = readFile(*folder_ / "model");
  auto write = [&](const std::string &name, const std::string &content) {
    std::ofstream(*folder_ / name, std::ios::binary) << content;
    std::filesystem::permissions(*folder_ / name, std::filesystem::perms::owner_all);
  };
  std::filesystem::create_directory(*folder_ / "cut");
  write("cut/model", bytes.substr(0, bytes.size() - 100));
  expectFailure(run({"run", "x"}, "", "cut/model"), 1, "no package, or a truncated one");
  std::string damaged = bytes;
  const llmc_package_section *weights = nullptr;
  llmc::PackageReader reader(*folder_ / "model");
  weights = &reader.weights();
  damaged[weights->offset + kHeadOffset + 40] ^= 0x40;
  write("cut/model", damaged);
  expectFailure(run({"verify"}, "", "cut/model"), 1, "weight output.weight is damaged");
}

TEST_F(Tool, VerifyAgreesAndNamesAFaultyKernel) {
  Outcome got = run({"verify", "--json", "--tokens", "30"});
  ASSERT_EQ(got.code, 0) << got.err;
  Json j = Json::parse(got.out);
  EXPECT_TRUE(j["ok"]);
  EXPECT_EQ(j["tokens"], 30);
  EXPECT_EQ(j["values"].size(), 3u);
  got = run({"verify", "--per-layer"});
  EXPECT_NE(got.out.find("blk.0.attention"), std::string::npos) << got.out;

  std::filesystem::create_directory(*folder_ / "faulty");
  writePackage(*folder_ / "faulty/model", LLMC_STUB, LLMC_FAKE_MODULE_FAULT);
  expectFailure(run({"verify"}, "", "faulty/model"), 1, "first op beyond the bound: blk.0.attention");
}

TEST_F(Tool, LogitsAndCacheDoNotDependOnChunks) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 60; ++i)
    ids.push_back(i * 5 % 250);
  std::ofstream(*folder_ / "ids.json") << Json(ids).dump();
  std::string logits, kv;
  for (const char *chunk : {"1", "7", "32", "60"}) {
    const Outcome got = run({"logits", "--token-ids", *folder_ / "ids.json", "--chunk", chunk, "-o", *folder_ / "l", "--kv", *folder_ / "k"});
    ASSERT_EQ(got.code, 0) << got.err;
    if (logits.empty()) {
      logits = readFile(*folder_ / "l");
      kv = readFile(*folder_ / "k");
      ASSERT_EQ(logits.size(), ids.size() * kVocab * 4);
      ASSERT_EQ(kv.size(), 4 * kBlockBytes);
      const std::vector<float> want = expectedLogits(ids);
      EXPECT_EQ(0, std::memcmp(want.data(), logits.data() + 59 * kVocab * 4, kVocab * 4));
    }
    EXPECT_TRUE(readFile(*folder_ / "l") == logits && readFile(*folder_ / "k") == kv) << chunk;
  }
  expectFailure(run({"logits", "--token-ids", "[1, 999]", "-o", *folder_ / "l"}), 1, "expected ids below 260, got 999");
  expectFailure(run({"logits", "--token-ids", "[1, \"a\"]", "-o", *folder_ / "l"}), 1, "expected a JSON list");
}

TEST_F(Tool, InfoBenchAndLicenses) {
  const Json info = Json::parse(run({"info", "--json"}).out);
  EXPECT_EQ(info["model"]["name"], "fake");
  EXPECT_EQ(info["ops"].size(), 5u);
  EXPECT_EQ(info["reference_ops"].size(), 0u);
  EXPECT_NE(run({"info"}).out.find("kv pool"), std::string::npos);
  const Outcome bench = run({"bench", "--prompt", "32", "--gen", "8", "--repeat", "2", "--threads", "2"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  const Json j = Json::parse(bench.out);
  EXPECT_EQ(j["threads"], 2);
  EXPECT_GT(j["prefill_tokens_per_second"], 0);
  EXPECT_GT(j["decode_tokens_per_second"], 0);
  const Outcome licenses = run({"licenses"});
  for (const char *library : {"nlohmann", "CLI11", "PCRE2", "utf8proc", "xxHash", "Boost", "libgcc"})
    EXPECT_NE(licenses.out.find(library), std::string::npos);
}

TEST_F(Tool, BenchProfileWritesWhatExplainReads) {
  const std::string file = *folder_ / "p.json";
  const Outcome got = run({"bench", "--profile=" + file, "--prompt", "40", "--batch", "1,3", "--repeat", "2", "--threads", "2"});
  ASSERT_EQ(got.code, 0) << got.err;
  const llmc::Profile profile = llmc::Profile::parse(readFile(file), file);
  EXPECT_EQ(profile.model, "fake");
  EXPECT_EQ(profile.weightsId, manifest().weightsId());
  EXPECT_EQ(profile.isa, "avx2");
  EXPECT_EQ(profile.threads, 2u);
  // A prompt of 40 in steps of 32 tokens, for three sequences of 10: the last whole step, and a token behind it.
  const uint64_t shapes[][3] = {{1, 32, 40}, {1, 1, 41}, {3, 10, 40}, {3, 1, 41}};
  ASSERT_EQ(profile.steps.size(), 4u);
  for (size_t s = 0; s < 4; ++s) {
    const llmc::Profile::Step &step = profile.steps[s];
    EXPECT_EQ(step.sequences, shapes[s][0]);
    EXPECT_EQ(step.tokens, shapes[s][1]);
    EXPECT_EQ(step.context, shapes[s][2]);
    EXPECT_GT(step.seconds, 0);
    ASSERT_EQ(step.launches.size(), 5u);
    for (const llmc::Profile::Launch &launch : step.launches)
      EXPECT_GT(launch.seconds, 0) << launch.op;
    EXPECT_EQ(step.launches[2].op, "blk.0.attention");
    EXPECT_EQ(step.launches[2].kernel, s % 2 ? "attention_1" : "attention_4");
    EXPECT_EQ(step.launches[2].layer, 0);
  }
  for (const char *part : {"1 sequence of 32 new tokens, 40 in the cache: ", "3 sequences of 1 new token, 41 in the cache: ", "attention (attention_4)"})
    EXPECT_NE(got.out.find(part), std::string::npos) << got.out;
  expectFailure(run({"bench", "--profile=/nowhere/p.json", "--prompt", "8"}), 1, "/nowhere/p.json");
  EXPECT_NE(run({"bench", "--help"}).out.find(".profile.json) for llmc explain"), std::string::npos);
}

TEST_F(Tool, StopAfterOpGeneratesNothing) {
  const Outcome got = run({"run", "--raw", "--ids", "--stop-after-op", "1", "abc"});
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(Json::parse(got.out)["ids"].size(), 0u);
}

TEST_F(Tool, StatsMatchTheLedger) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer's own memory is not in the ledger";
#endif
  const Outcome got = run({"run", "--raw", "--stats", "--kv-memory", "200MiB", "abc"});
  ASSERT_EQ(got.code, 0) << got.err;
  unsigned long long planned = 0, real = 0;
  const size_t at = got.err.find("anonymous memory");
  ASSERT_NE(at, std::string::npos) << got.err;
  ASSERT_EQ(2, std::sscanf(got.err.c_str() + at, "anonymous memory %llu bytes, process %llu", &planned, &real)) << got.err;
  EXPECT_LE(std::abs(double(planned) - double(real)), 0.01 * double(planned) + (16 << 20));
}

} // namespace
