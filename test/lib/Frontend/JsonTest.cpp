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

TEST(Json, Integers) {
  JsonDocument document = JsonDocument::parse(
      "[64.0, 6.4e1, -0.0, 9007199254740992.0, 9223372036854775807, -9223372036854775808, 9223372036854775808, 64.5, 1e300, 1e-300]",
      "f.json");
  JsonView root = document.root();
  for (auto [index, expected] : {std::pair<size_t, int64_t>(0, 64), {1, 64}, {2, 0}, {4, INT64_MAX}, {5, INT64_MIN}})
    EXPECT_EQ(root.at(index).integer(), expected) << index;
  for (size_t index : {3, 6, 7, 8, 9}) // from 2^53 on a double stands for several integers
    EXPECT_THROW(root.at(index).integer(), Error) << index;
}

TEST(Json, PositionsInTheFile) {
  EXPECT_NE(errorOf("{\n\"a\": 1,\n}").find("f.json: byte 11:"), std::string::npos) << errorOf("{\n\"a\": 1,\n}");
  EXPECT_NE(errorOf("\xef\xbb\xbf{\"a\": 1,}").find("f.json: byte 12:"), std::string::npos); // the mark counts
  for (const char *bad : {"NaN", "[Infinity]", "[-Infinity]", "[1e999]", "{\"a\": nan}", "[+1]", "[.5]", "[1.]", "[0x10]"})
    EXPECT_NE(errorOf(bad).find("f.json: byte"), std::string::npos) << bad;
}

TEST(Json, OtherEncodings) {
  using namespace std::string_literals;
  for (const std::string &bad : {"\xff\xfe{\0}\0"s, "\xfe\xff\0{\0}"s, "{\0}\0"s, "\0{\0}"s, "\0\0\xfe\xff\0\0\0{"s})
    EXPECT_NE(errorOf(bad).find("f.json: byte 0: expected UTF-8 text, got UTF-16"), std::string::npos) << errorOf(bad);
  EXPECT_NE(errorOf("{\"a\": \"\xe9\"}").find("f.json: byte 9"), std::string::npos) << errorOf("{\"a\": \"\xe9\"}"); // Latin-1
}

TEST(Json, MessagesStayShortAndPrintable) {
  for (const std::string &bad : {"\"" + std::string(1 << 20, 'x'), "[1" + std::string(1 << 20, '0') + "e9999]",
                                 "{\"\x1b[31m" + std::string(5000, 'k') + "\": 1, \"\x1b[31m" + std::string(5000, 'k') + "\": 2}",
                                 "\"\xc2\x9b" + std::string(1000, '\xff')}) {
    std::string message = errorOf(bad);
    EXPECT_LT(message.size(), 900u);
    EXPECT_EQ(message.find('\x1b'), std::string::npos);
  }
  // Keys that a message names are those of the file.
  JsonDocument document = JsonDocument::parse("{\"\\u001b[31m\": {\"" + std::string(5000, 'k') + "\": 1}}", "f.json");
  try {
    document.root().at(document.root().object()[0]).at(document.root().object()[0].node.object()->at(0)).string();
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("\\x1b[31m.kkk"), std::string::npos);
    EXPECT_LT(std::string(error.what()).size(), 500u);
  }
}

TEST(Json, NumberOfValues) {
  std::string many = "[";
  for (int i = 0; i < (1 << 23); ++i)
    many += "1,";
  many.back() = ']';
  EXPECT_NE(errorOf(many).find("at most 8388608 values"), std::string::npos) << errorOf(many).substr(0, 200);
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
