// The ten conversations of test/data: rendered and tokenised they are the prompt
// ids of transformers. Needs LLMC_TEST_MODEL=SmolLM2-135M-Instruct.Q4_1.gguf.

#include "llmc/Frontend/ModelFacts.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>

using namespace llmc;
using nlohmann::json;

TEST(Prompts, IdsAsTheReference) {
  const char *path = std::getenv("LLMC_TEST_MODEL");
  if (!path)
    GTEST_SKIP() << "LLMC_TEST_MODEL is not set";
  ModelFacts facts = loadModelFacts(path);
  Tokenizer tokenizer = Tokenizer::create(facts.tokenizer);
  ChatTemplate chatTemplate = ChatTemplate::parse(facts.chatTemplate);
  json goldens = json::parse(std::ifstream(LLMC_SOURCE_DIR "/test/data/smollm2-greedy.json"));
  std::ifstream lines(LLMC_SOURCE_DIR "/test/data/prompts.jsonl");
  std::string line;
  size_t index = 0;
  for (; std::getline(lines, line); ++index) {
    json prompt = json::parse(line);
    std::string text = prompt.contains("text") ? prompt["text"].get<std::string>()
                                               : renderChatJson(chatTemplate, prompt["messages"].dump(), {});
    ASSERT_LT(index, goldens.size());
    EXPECT_EQ(tokenizer.encode(text, true, false), goldens[index]["prompt_ids"].get<std::vector<int32_t>>()) << prompt["name"];
    EXPECT_EQ(tokenizer.decode(goldens[index]["greedy_ids"].get<std::vector<int32_t>>(), false),
              goldens[index]["text"].get<std::string>())
        << prompt["name"];
  }
  EXPECT_EQ(index, 10u);
}
