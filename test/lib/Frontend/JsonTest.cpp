//===- JsonTest.cpp -------------------------------------------------------===//
#include "llmc/Support/Json.h"

#include <gtest/gtest.h>

using namespace llmc;

namespace {

std::string errorOf(const std::string &text) {
  try {
    JsonDocument::parse(text, "f.json");
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

TEST(Json, Values) {
  JsonDocument document =
      JsonDocument::parse(R"({"b": [1, 2.5, "x", null, true], "a": {"n": 64.0}})", "f.json");
  JsonView root = document.root();
  EXPECT_EQ(root.object()[0].key, "b"); // order kept
  EXPECT_EQ(root.get("b").at(0).integer(), 1);
  EXPECT_EQ(root.get("b").at(1).number(), 2.5);
  EXPECT_EQ(root.get("b").at(2).string(), "x");
  EXPECT_TRUE(root.get("b").at(4).boolean());
  EXPECT_EQ(root.get("a").get("n").integer(), 64);
  EXPECT_FALSE(root.find("c"));
}

TEST(Json, ErrorsNameFileKeyAndByte) {
  JsonDocument document = JsonDocument::parse(R"({"a": {"b": ["x"]}})", "f.json");
  try {
    document.root().get("a").get("b").at(0).integer();
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), R"(f.json: a.b[0]: expected an integer, got "x" (byte 16))");
  }
}

TEST(Json, Refused) {
  EXPECT_NE(errorOf("{\"a\": 1,}").find("f.json: byte 9: expected JSON"), std::string::npos)
      << errorOf("{\"a\": 1,}");
  EXPECT_NE(errorOf("{\"a\": 1, \"a\": 2}").find("repeated key \"a\""), std::string::npos);
  for (const char *bad : {"", " ", "{", "[1", "nul", "{\"a\"}", "{a: 1}", "1 2", "'x'", "// c\n1", "[1e999]",
                          "NaN", "\"\xff\"", "\"\\ud800\"", "\"a\nb\"", "[01]", "\xef\xbb"})
    EXPECT_NE(errorOf(bad).find("f.json: byte"), std::string::npos) << bad << ": " << errorOf(bad);
}

TEST(Json, Depth) {
  EXPECT_EQ(errorOf(std::string(128, '[') + std::string(128, ']')), "");
  EXPECT_NE(errorOf(std::string(129, '[') + std::string(129, ']')).find("128 nested levels"),
            std::string::npos);
  EXPECT_NE(errorOf(std::string(1000000, '[')).find("128 nested levels"), std::string::npos);
}

TEST(Json, ManyKeysAreNotQuadratic) {
  std::string text = "{";
  for (int i = 0; i < 300000; ++i)
    text += "\"k" + std::to_string(i) + "\":0,";
  text.back() = '}';
  EXPECT_EQ(errorOf(text), "");
}

} // namespace
