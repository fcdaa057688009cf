// What the files of a tokenizer say beside the vocabulary, and files that are wrong.

#include "lib/Frontend/HuggingFace/HuggingFace.h"
#include "lib/Frontend/HuggingFace/SentencePieceModel.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

using namespace llmc;
using namespace llmc::huggingface;
using nlohmann::json;

namespace {

json tiny() {
  return json::parse(R"({
    "added_tokens": [{"id": 5, "content": "<s>", "special": true}, {"id": 6, "content": "</s>", "special": true},
                     {"id": 7, "content": "[gMASK]", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"},
    "post_processor": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġa": 4}, "merges": ["a b", "Ġ a"]}})");
}

TokenizerData read(const json &tokenizer) {
  JsonDocument document = JsonDocument::parse(tokenizer.dump(), "tokenizer.json");
  std::vector<std::string> warnings;
  return readTokenizer(document.root(), 64, warnings);
}

std::string errorOf(const json &tokenizer) {
  try {
    read(tokenizer);
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

void expectError(const std::string &message, const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << " has no " << part;
}

std::vector<int32_t> plain(const TokenizerData &data, std::string_view text) {
  Tokenizer tokenizer = Tokenizer::load(data.serialize());
  return tokenizer.encode(text, false, tokenizer.addsBos());
}

class Folder : public testing::Test {
protected:
  void SetUp() override {
    std::string name = "/tmp/llmc-tokenizer-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  void TearDown() override { std::filesystem::remove_all(path); }
  void write(const std::string &name, std::string_view text) {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
  }
  TokenizerData load() {
    std::vector<std::string> warnings;
    return loadTokenizer(path, warnings);
  }
  std::string path;
};

// Protobuf by hand: a field of bytes, a varint, a float.
std::string field(int number, const std::string &bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t n = bytes.size();; n >>= 7) {
    out += static_cast<char>(n < 128 ? n : (n & 127) | 128);
    if (n < 128)
      return out + bytes;
  }
}
std::string varint(int number, uint64_t value) {
  std::string out;
  for (uint64_t n = static_cast<uint64_t>(number) << 3; n; n >>= 7)
    out += static_cast<char>(n < 128 ? n : (n & 127) | 128);
  if (out.empty())
    out = std::string(1, '\0');
  do
    out += static_cast<char>(value < 128 ? value : (value & 127) | 128);
  while (value >>= 7);
  return out;
}
std::string piece(const std::string &text, float score, int kind) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &score, 4);
  return field(1, field(1, text) + std::string(1, static_cast<char>(2 << 3 | 5)) + bytes + varint(3, static_cast<uint64_t>(kind)));
}
std::string model() {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("▁", -3, 1) + piece("a", -4, 1) +
         piece("b", -5, 1) + piece("▁a", -1, 1) + piece("ab", -2, 1) + field(2, varint(3, 2)) + field(3, varint(4, 0));
}

} // namespace

// Post-processors and tokenizer_config.json: what goes before plain text ---------

TEST(PostProcessor, Template) {
  json file = tiny();
  EXPECT_EQ(plain(read(file), "ab"), (std::vector<int32_t>{2}));
  file["post_processor"] = json::parse(R"({"type": "TemplateProcessing", "single":
    [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [6], "tokens": ["</s>"]}}})");
  TokenizerData data = read(file);
  EXPECT_TRUE(data.addBos && data.addEos);
  EXPECT_EQ(data.suffixIds, (std::vector<int32_t>{6}));
  EXPECT_EQ(data.eosIds, (std::vector<int32_t>{6}));
  EXPECT_EQ(plain(data, "ab"), (std::vector<int32_t>{5, 2}));
  EXPECT_TRUE(Tokenizer::create(data).addsEos());
  EXPECT_EQ(Tokenizer::create(data).encode("ab", false, true, true), (std::vector<int32_t>{5, 2, 6}));
  EXPECT_EQ(Tokenizer::create(data).encode("", false, true, true), (std::vector<int32_t>{5, 6}));
  // A rendered chat template has written its own.
  EXPECT_EQ(Tokenizer::create(data).encode("<s>ab", true, false), (std::vector<int32_t>{5, 2}));
}

TEST(PostProcessor, SeveralTokensInFront) {
  json file = tiny();
  file["post_processor"] = json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[gMASK]"}}, {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}]})");
  EXPECT_EQ(plain(read(file), "ab"), (std::vector<int32_t>{7, 5, 2}));
}

TEST(PostProcessor, BertAndRoberta) {
  for (const char *type : {"BertProcessing", "RobertaProcessing"}) {
    json file = tiny();
    file["post_processor"] = {{"type", type}, {"cls", {"<s>", 5}}, {"sep", {"</s>", 6}}};
    TokenizerData data = read(file);
    EXPECT_EQ(plain(data, "ab"), (std::vector<int32_t>{5, 2})) << type;
    EXPECT_EQ(data.suffixIds, (std::vector<int32_t>{6})) << type;
    file["post_processor"]["cls"][1] = 6;
    expectError(errorOf(file), {"post_processor.cls", "id 5"});
  }
}

TEST_F(Folder, ConfigOverridesTheTemplate) {
  write("tokenizer.json", tiny().dump());
  write("tokenizer_config.json", R"({"bos_token": "<s>", "add_bos_token": true, "eos_token": {"content": "</s>"}, "add_eos_token": true})");
  TokenizerData data = load();
  EXPECT_EQ(plain(data, "ab"), (std::vector<int32_t>{5, 2}));
  EXPECT_EQ(data.suffixIds, (std::vector<int32_t>{6}));
  write("tokenizer_config.json", R"({"bos_token": "<s>", "add_bos_token": false})");
  EXPECT_EQ(plain(load(), "ab"), (std::vector<int32_t>{2}));
}

// vocab.json and merges.txt --------------------------------------------------------

TEST_F(Folder, VocabularyAndMerges) {
  write("vocab.json", "\xef\xbb\xbf" + tiny()["model"]["vocab"].dump());
  for (const char *merges : {"#version: 0.2\na b\nĠ a\n", "#version: 0.2\r\na b\r\nĠ a\r\n", "\xef\xbb\xbf" "a b\n\nĠ a"}) {
    write("merges.txt", merges);
    EXPECT_EQ(plain(load(), "ab a"), (std::vector<int32_t>{2, 4})) << merges;
  }
  write("merges.txt", "a b\na b c\n");
  try {
    load();
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    expectError(error.what(), {"merges.txt: line 2", "\"a b c\""});
  }
  write("merges.txt", "a b\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "OtherTokenizer"})");
  EXPECT_THROW(load(), Error);
}

TEST_F(Folder, NoTokenizer) {
  try {
    load();
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    expectError(error.what(), {"tokenizer.json", "tokenizer.model", "merges.txt"});
  }
}

// tokenizer.json: unknown types -----------------------------------------------------

TEST(TokenizerJson, UnknownTypesAreRefusedByPath) {
  json file = tiny();
  file["normalizer"] = json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Shout"}]})");
  expectError(errorOf(file), {"normalizer.normalizers[1].type", "\"Shout\"", "Precompiled"});
  file = tiny();
  file["pre_tokenizer"]["type"] = "Jieba";
  expectError(errorOf(file), {"pre_tokenizer.type", "\"Jieba\"", "Metaspace"});
  file = tiny();
  file["decoder"] = json::parse(R"({"type": "Sequence", "decoders": [{"type": "CTC"}]})");
  expectError(errorOf(file), {"decoder.decoders[0].type", "\"CTC\""});
  file = tiny();
  file["model"]["type"] = "Morph";
  expectError(errorOf(file), {"model.type", "\"Morph\"", "Unigram"});
  file = tiny();
  file["model"]["dropout"] = 0.1;
  expectError(errorOf(file), {"model.dropout", "0.1"});
}

// tokenizer.model ------------------------------------------------------------------

TEST(SentencePiece, ReadsWhatTheProtobufSays) {
  TokenizerData data = readSentencePiece(SentencePieceModel::parse(model(), "tokenizer.model"), true, "tokenizer.model");
  EXPECT_EQ(data.model, TokenizerData::Model::ScoredBPE);
  EXPECT_EQ(data.bosId, 1);
  EXPECT_EQ(data.eosIds, (std::vector<int32_t>{2}));
  EXPECT_EQ(plain(data, "a ab"), (std::vector<int32_t>{1, 6, 6, 5}));
  EXPECT_EQ(plain(data, "c"), (std::vector<int32_t>{1, 3, 0}));
  EXPECT_EQ(Tokenizer::create(data).decode(std::vector<int32_t>{1, 6, 5}, true), "ab");
}

TEST(SentencePiece, BadModels) {
  auto errorOfModel = [](const std::string &bytes) -> std::string {
    try {
      SentencePieceModel::parse(bytes, "m");
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  };
  expectError(errorOfModel(""), {"m: pieces: expected at least one"});
  expectError(errorOfModel(piece("a", 0, 1)), {"expected one of type unknown"});
  expectError(errorOfModel(model() + piece("a", 0, 1)), {"piece 8 \"a\"", "spelling of its own"});
  expectError(errorOfModel(model() + piece("<u>", 0, 2)), {"piece 8", "another, piece 0"});
  expectError(errorOfModel(model() + piece("", 0, 1)), {"piece 8", "UTF-8 text"});
  expectError(errorOfModel(model() + piece("x", 0, 7)), {"piece 8", "from 1 to 6, got 7"});
  expectError(errorOfModel(model() + piece("<0x0A>", 0, 6)), {"expected byte_fallback"});
  expectError(errorOfModel(model() + piece("x", std::numeric_limits<float>::infinity(), 1)), {"finite score"});
  expectError(errorOfModel(model() + field(2, varint(3, 9))), {"trainer_spec", "model_type", "got 9"});
  expectError(errorOfModel(model() + "\x0b"), {"wire type 0, 1, 2 or 5, got 3"});
  expectError(errorOfModel(model() + std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)), {"more bytes"});
  expectError(errorOfModel(model() + std::string(12, '\xff')), {"at most 10 bytes"});
  EXPECT_EQ(errorOfModel(model() + field(99 % 15, "later")), "no error"); // unknown fields are skipped
  EXPECT_THROW(readSentencePiece(SentencePieceModel::parse(model() + field(2, varint(3, 3)), "m"), true, "m"), Error);
}

// Cut anywhere or with any byte changed: an Error, or a model that can be used.
TEST(SentencePiece, DamagedModels) {
  std::string bytes = model();
  auto tryIt = [](const std::string &damaged) {
    try {
      TokenizerData data = readSentencePiece(SentencePieceModel::parse(damaged, "m"), true, "m");
      Tokenizer tokenizer = Tokenizer::create(data);
      tokenizer.decode(tokenizer.encode("a ab é", true, true), false);
    } catch (const Error &) {
    }
  };
  for (size_t n = 0; n < bytes.size(); ++n) {
    tryIt(bytes.substr(0, n));
    for (unsigned char flip : {0x01, 0x10, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[n] = static_cast<char>(damaged[n] ^ flip);
      tryIt(damaged);
    }
  }
}
