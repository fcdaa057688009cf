//===- InspectTest.cpp - inspect's output, and the real model -------------===//
#include "llmc/Frontend/Inspect.h"
#include "TestModels.h"
#include "llmc/Support/Json.h"

#include <cstdlib>

using namespace llmc;
using namespace llmc::test;

namespace {

TEST(Inspect, Text) {
  TempDir dir;
  ModelFacts facts = loadModelFacts(tinyFolder(dir));
  std::string text = inspectText(facts);
  for (const char *part :
       {"architecture: llama", "heads:        4 query, 2 kv, dimension 10", "vocabulary:   9 (tied head)",
        "kv cache:     160 bytes a token in 16 bit, 320 in f32", "9 tokens, 2 merges, 3 added (3 special)",
        "blk.1.attn_output.weight", "[40, 40]", "template:     no", "all       20 tensors"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Inspect, Json) {
  TempDir dir;
  ModelFacts facts = loadModelFacts(tinyFolder(dir));
  JsonDocument document = JsonDocument::parse(inspectJson(facts), "inspect");
  JsonView root = document.root();
  EXPECT_EQ(root.get("layers").integer(), 2);
  EXPECT_EQ(root.get("kv_bytes_per_token").get("f32").integer(), 320);
  EXPECT_EQ(root.get("tensors").array().size(), 20u);
  EXPECT_EQ(root.get("totals").get("F32").get("tensors").integer(), 20);
}

// LLMC_TEST_MODEL: the SmolLM2-135M-Instruct Q4_1 GGUF.
TEST(RealModel, SmolLM2) {
  const char *path = std::getenv("LLMC_TEST_MODEL");
  if (!path)
    GTEST_SKIP() << "LLMC_TEST_MODEL is not set";
  ModelFacts facts = loadModelFacts(path);
  EXPECT_EQ(facts.architecture, "llama");
  EXPECT_EQ(facts.hidden, 576);
  EXPECT_EQ(facts.layers, 30);
  EXPECT_EQ(facts.heads, 9);
  EXPECT_EQ(facts.kvHeads, 3);
  EXPECT_EQ(facts.headDim, 64);
  EXPECT_EQ(facts.ffn, 1536);
  EXPECT_EQ(facts.vocab, 49152);
  EXPECT_EQ(facts.maxContext, 8192);
  EXPECT_EQ(facts.rope.theta, 100000);
  EXPECT_TRUE(facts.tiedHead);
  EXPECT_EQ(facts.tensors.size(), 272u);
  EXPECT_EQ(facts.find("token_embd.weight")->type, DType::Q8_0);
  EXPECT_EQ(facts.find("blk.0.attn_q.weight")->type, DType::Q4_1);
  EXPECT_EQ(facts.find("token_embd.weight")->offset, 1785664u); // gguf-py's figure
  EXPECT_EQ(facts.tokenizer.merges.size(), 48900u);
  EXPECT_EQ(facts.tokenizer.bosId, 1);
  EXPECT_EQ(facts.tokenizer.eosIds.front(), 2);
  EXPECT_FALSE(facts.chatTemplate.empty());
  EXPECT_TRUE(facts.warnings.empty());
}

} // namespace
