//===- GGUFTest.cpp - good, lying and truncated GGUF files ----------------===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <filesystem>
#include <sys/resource.h>

using namespace llmc;
using namespace llmc::test;

namespace {

class GGUF : public ::testing::Test {
protected:
  TempDir dir;
  std::string save(const std::string &bytes) { return dir.write("model.gguf", bytes); }
  void refuse(const GGUFWriter &writer, const std::vector<std::string> &parts) {
    expectError(save(writer.build()), parts);
  }
  /// A file under 200 bytes: header numbers, then whatever follows.
  void refuseRaw(uint64_t tensors, uint64_t pairs, const std::string &rest,
                 const std::vector<std::string> &parts) {
    std::string bytes = "GGUF" + bytesOf<uint32_t>(3) + bytesOf(tensors) + bytesOf(pairs) + rest;
    ASSERT_LT(bytes.size(), 200u);
    expectError(save(bytes), parts);
  }
};

std::string tensorEntry(const std::string &name, const std::vector<uint64_t> &dims, uint32_t type,
                        uint64_t offset) {
  std::string bytes = ggufString(name) + bytesOf<uint32_t>(static_cast<uint32_t>(dims.size()));
  for (uint64_t extent : dims)
    bytes += bytesOf(extent);
  return bytes + bytesOf(type) + bytesOf(offset);
}

TEST_F(GGUF, Tiny) {
  ModelFacts facts = loadModelFacts(save(tinyGGUF().build()));
  EXPECT_EQ(facts.format, "gguf");
  EXPECT_EQ(facts.architecture, "llama");
  EXPECT_EQ(facts.name, "tiny");
  EXPECT_EQ(facts.hidden, 40);
  EXPECT_EQ(facts.layers, 2);
  EXPECT_EQ(facts.heads, 4);
  EXPECT_EQ(facts.kvHeads, 2);
  EXPECT_EQ(facts.headDim, 10);
  EXPECT_EQ(facts.ffn, 24);
  EXPECT_EQ(facts.vocab, Tiny::vocab);
  EXPECT_EQ(facts.maxContext, 128);
  EXPECT_TRUE(facts.tiedHead);
  EXPECT_FALSE(facts.attentionBias);
  EXPECT_TRUE(facts.rope.interleavedRows);
  EXPECT_EQ(facts.rope.theta, 10000.0);
  EXPECT_EQ(facts.rope.rotaryDim, 10);
  ASSERT_EQ(facts.tensors.size(), 2u + 2 * 9);
  EXPECT_EQ(facts.find("blk.1.attn_k.weight")->shape, (std::vector<int64_t>{20, 40}));
  EXPECT_EQ(facts.find("blk.2.attn_k.weight"), nullptr);
  EXPECT_TRUE(facts.warnings.empty());
}

TEST_F(GGUF, TinyTokenizer) {
  GGUFWriter writer = tinyGGUF();
  writer.string("tokenizer.chat_template", "{{ messages }}");
  writer.boolean("tokenizer.ggml.add_bos_token", true);
  ModelFacts facts = loadModelFacts(save(writer.build()));
  const TokenizerData &tokenizer = facts.tokenizer;
  EXPECT_EQ(tokenizer.tokens.size(), 9u);
  ASSERT_EQ(tokenizer.merges.size(), 2u);
  EXPECT_EQ(tokenizer.merges[0], std::pair(std::string("a"), std::string("b")));
  ASSERT_EQ(tokenizer.added.size(), 4u);
  EXPECT_EQ(tokenizer.added[2].content, "<|im_end|>");
  EXPECT_TRUE(tokenizer.added[2].special);
  EXPECT_EQ(tokenizer.added[3].content, "1"); // user defined
  EXPECT_FALSE(tokenizer.added[3].special);
  EXPECT_EQ(tokenizer.bosId, 0);
  EXPECT_EQ(tokenizer.padId, -1);
  EXPECT_TRUE(tokenizer.addBos);
  EXPECT_EQ(tokenizer.eosIds, (std::vector<int32_t>{1, 7})); // <|im_end|> ends a turn by its spelling
  EXPECT_FALSE(tokenizer.splitPatterns.empty());
  EXPECT_EQ(facts.chatTemplate, "{{ messages }}");
}

TEST_F(GGUF, Qwen2HasBiasAndHalves) {
  Tiny model;
  model.architecture = "qwen2";
  model.bias = true;
  model.tied = false;
  GGUFWriter writer = tinyGGUF(model);
  writer.string("tokenizer.ggml.pre", "qwen2");
  ModelFacts facts = loadModelFacts(save(writer.build()));
  EXPECT_TRUE(facts.attentionBias);
  EXPECT_FALSE(facts.tiedHead);
  EXPECT_FALSE(facts.rope.interleavedRows);
  EXPECT_TRUE(facts.tokenizer.nfc);
  writer.removeTensor("blk.1.attn_k.bias");
  refuse(writer, {"blk.1.attn_k.bias", "[20]", "got none"});
}

TEST_F(GGUF, LlamaWithBiases) {
  Tiny model;
  model.bias = true;
  GGUFWriter writer = tinyGGUF(model);
  for (int layer = 0; layer < 2; ++layer)
    writer.tensors.push_back(
        {"blk." + std::to_string(layer) + ".attn_output.bias", {40}, 0, std::string(160, '\0')});
  ModelFacts facts = loadModelFacts(save(writer.build()));
  EXPECT_TRUE(facts.attentionBias);
  EXPECT_TRUE(facts.attentionOutputBias);
}

TEST_F(GGUF, Version2) {
  GGUFWriter writer = tinyGGUF();
  writer.version = 2;
  EXPECT_EQ(loadModelFacts(save(writer.build())).layers, 2);
  for (uint32_t version : {0u, 1u, 4u}) {
    writer.version = version;
    refuse(writer, {"version at byte 4", "expected 2 or 3", std::to_string(version)});
  }
  writer.version = 0x03000000;
  refuse(writer, {"big-endian"});
}

TEST_F(GGUF, QuantisedTypes) {
  Tiny model;
  model.hidden = 96;
  model.headDim = 24;
  model.ffn = 64;
  for (auto [type, blockBytes, expected] :
       {std::tuple(2u, 18u, DType::Q4_0), {3u, 20u, DType::Q4_1}, {8u, 34u, DType::Q8_0}}) {
    GGUFWriter writer = tinyGGUF(model);
    writer.tensor("blk.0.ffn_up.weight").type = type;
    writer.tensor("blk.0.ffn_up.weight").data.assign(96 * 64 / 32 * blockBytes, '\1');
    ModelFacts facts = loadModelFacts(save(writer.build()));
    EXPECT_EQ(facts.find("blk.0.ffn_up.weight")->type, expected);
    EXPECT_EQ(facts.find("blk.0.ffn_up.weight")->bytes, 96u * 64 / 32 * blockBytes);
    // Rows that are no multiple of 32 and quantised vectors.
    GGUFWriter odd = tinyGGUF();
    odd.tensor("blk.0.ffn_up.weight").type = type;
    refuse(odd, {"blk.0.ffn_up.weight", "multiple of 32", "40"});
    writer.tensor("blk.1.ffn_norm.weight").type = type;
    refuse(writer, {"blk.1.ffn_norm.weight", "F32, F16 or BF16"});
  }
}

// Counts and sizes that lie ---------------------------------------------------

TEST_F(GGUF, CountsThatLie) {
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  refuseRaw((uint64_t(1) << 63) - 1, 0, "", {"tensor count at byte 8"});
  refuseRaw(uint64_t(1) << 56, 0, "", {"tensor count at byte 8", "72057594037927936"});
  refuseRaw(0, uint64_t(1) << 40, "", {"metadata count at byte 16", "1099511627776"});
  refuseRaw(~uint64_t(0), ~uint64_t(0), "", {"tensor count"});
  // Enough bytes for the smallest pairs, not for the tensors behind them.
  refuseRaw(3, 1, ggufString("k") + bytesOf<uint32_t>(0) + "x" + std::string(90, '\0'),
            {"tensor count at byte 8"});
  // A key and a value whose length is 2^62.
  refuseRaw(0, 1, bytesOf(uint64_t(1) << 62) + std::string(20, 'a'), {"metadata key 0 length at byte 24"});
  refuseRaw(0, 1, ggufString("k") + bytesOf<uint32_t>(8) + bytesOf(uint64_t(1) << 62),
            {"key \"k\" length at byte 37"});
  for (uint32_t element : {0u, 4u, 8u, 12u})
    refuseRaw(0, 1,
              ggufString("k") + bytesOf<uint32_t>(9) + bytesOf(element) + bytesOf(uint64_t(1) << 61) +
                  std::string(32, '\0'),
              {"key \"k\" length at byte 41", "2305843009213693952"});
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "KiB of peak memory from claimed counts";
}

TEST_F(GGUF, ProductsThatWrap) {
  refuseRaw(1, 0, tensorEntry("t", {4, uint64_t(1) << 62}, 0, 0), {"tensor \"t\" extent at byte"});
  refuseRaw(1, 0, tensorEntry("t", {uint64_t(1) << 32, uint64_t(1) << 32}, 0, 0), {"tensor \"t\" extent"});
  refuseRaw(1, 0, tensorEntry("t", {~uint64_t(0)}, 0, 0), {"tensor \"t\" extent"});
  // Pads to 0 when rounded up to the alignment, followed by a normal tensor.
  refuseRaw(2, 0,
            tensorEntry("t", {(uint64_t(1) << 62) - 1}, 0, 0) + tensorEntry("u", {4}, 0, 0) +
                std::string(32, '\0'),
            {"tensor \"t\""});
  // Below the limit of the product, past the end of the file; an offset that wraps.
  refuseRaw(1, 0, tensorEntry("t", {uint64_t(1) << 50}, 0, 0), {"tensor \"t\"", "end of the file"});
  refuseRaw(1, 0, tensorEntry("t", {4}, 0, ~uint64_t(0) - 31) + std::string(64, '\0'),
            {"tensor \"t\"", "end of the file"});
}

// Wrong types, zeros, empty names ----------------------------------------------

TEST_F(GGUF, ZeroExtent) {
  refuseRaw(1, 0, tensorEntry("t", {4, 0}, 0, 0), {"tensor \"t\" extent", "at least 1, got 0"});
  refuseRaw(1, 0, tensorEntry("t", {}, 0, 0) + std::string(32, '\0'), {"tensor \"t\" rank", "got 0"});
  refuseRaw(1, 0, tensorEntry("t", {1, 1, 1, 1, 1}, 0, 0), {"tensor \"t\" rank", "got 5"});
}

TEST_F(GGUF, Alignment) {
  GGUFWriter writer = tinyGGUF();
  writer.raw("general.alignment", 5, bytesOf<int32_t>(32));
  refuse(writer, {"general.alignment", "expected a u32", "i32"});
  for (uint32_t bad : {0u, 3u, 48u}) {
    writer.u32("general.alignment", bad);
    refuse(writer, {"general.alignment", "power of two", std::to_string(bad)});
  }
  writer.u32("general.alignment", 0x80000000u);
  refuse(writer, {"tensor"});
  writer.u32("general.alignment", 64);
  writer.alignment = 64;
  EXPECT_EQ(loadModelFacts(save(writer.build())).layers, 2);
  writer.alignment = 32; // now some offsets are multiples of 32 only
  refuse(writer, {"multiple of the alignment 64"});
}

// Numbers of ggml's enum: what is not computed is refused by name, and an unknown number as it is.
TEST_F(GGUF, TensorTypesThatAreNotComputed) {
  for (auto [id, name] : {std::pair(65535u, "the unknown type 65535"),
                          {43u, "the unknown type 43"},
                          {4u, "Q4_2"},
                          {9u, "Q8_1"},
                          {15u, "Q8_K"},
                          {16u, "IQ2_XXS"},
                          {19u, "IQ1_S"},
                          {21u, "IQ3_S"},
                          {24u, "I8"},
                          {28u, "F64"},
                          {31u, "Q4_0_4_4"},
                          {35u, "TQ2_0"},
                          {36u, "IQ4_NL_4_4"},
                          {39u, "MXFP4"},
                          {42u, "Q2_0"},
                          {0xffffffffu, "the unknown type 4294967295"}})
    refuseRaw(1, 0, tensorEntry("t", {256}, id, 0),
              {"tensor \"t\"", "expected type F32, ", " or IQ4_XS, got ", name});
}

TEST_F(GGUF, TensorTypes) {
  for (auto [id, type] : {std::pair(0u, DType::F32), {1u, DType::F16},   {2u, DType::Q4_0},  {3u, DType::Q4_1},
                          {6u, DType::Q5_0},         {7u, DType::Q5_1},  {8u, DType::Q8_0},  {10u, DType::Q2_K},
                          {11u, DType::Q3_K},        {12u, DType::Q4_K}, {13u, DType::Q5_K}, {14u, DType::Q6_K},
                          {20u, DType::IQ4_NL},      {23u, DType::IQ4_XS}, {30u, DType::BF16}}) {
    SCOPED_TRACE(toString(type));
    // A whole row; then one value less than a row.
    for (uint64_t cols : {512, 511}) {
      std::string entry = tensorEntry("t", {cols, 3}, id, 0);
      if (cols == 512 || blockSize(type) == 1)
        refuseRaw(1, 0, entry, {"tensor \"t\"", "expected " + std::to_string(storageBytes(type, cols * 3)) + " bytes"});
      else
        refuseRaw(1, 0, entry, {"tensor \"t\"", "multiple of " + std::to_string(blockSize(type)), toString(type), "511"});
    }
  }
}

TEST_F(GGUF, WrongValueTypes) {
  auto wrong = [&](const std::string &key, auto change, std::vector<std::string> parts) {
    GGUFWriter writer = tinyGGUF();
    change(writer);
    parts.push_back(key);
    refuse(writer, parts);
  };
  wrong("llama.context_length", [](auto &w) { w.string("llama.context_length", "128"); },
        {"expected an integer", "string"});
  wrong("llama.block_count", [](auto &w) { w.f32("llama.block_count", 2); }, {"expected an integer", "f32"});
  wrong("llama.block_count", [](auto &w) { w.i32s("llama.block_count", {2}); }, {"array of i32"});
  wrong("general.architecture", [](auto &w) { w.u32("general.architecture", 1); }, {"expected a string"});
  wrong("general.name", [](auto &w) { w.u32("general.name", 1); }, {"expected a string"});
  wrong("llama.rope.freq_base", [](auto &w) { w.u32("llama.rope.freq_base", 10000); },
        {"expected an f32 or f64"});
  wrong("tokenizer.ggml.tokens", [](auto &w) { w.i32s("tokenizer.ggml.tokens", {1}); }, {"array of strings"});
  wrong("tokenizer.ggml.add_bos_token", [](auto &w) { w.u32("tokenizer.ggml.add_bos_token", 1); },
        {"expected a bool"});
  wrong("tokenizer.ggml.token_type", [](auto &w) { w.strings("tokenizer.ggml.token_type", {"3"}); },
        {"array of i32"});
  wrong("tokenizer.ggml.scores",
        [](auto &w) {
          w.raw("tokenizer.ggml.scores", 9,
                bytesOf<uint32_t>(0) + bytesOf<uint64_t>(9) + std::string(9, '\0'));
        },
        {"array of f32", "array of u8"});
  wrong("\"odd\" type", [](auto &w) { w.raw("odd", 13, ""); },
        {"expected a value type from 0 to 12, got 13"});
  wrong("odd", [](auto &w) { w.raw("odd", 7, "\2"); }, {"0 or 1 for a bool"});
}

TEST_F(GGUF, ArraysOfArrays) {
  auto array = [](uint32_t element, const std::vector<std::string> &values) {
    std::string bytes = bytesOf(element) + bytesOf<uint64_t>(values.size());
    for (const std::string &value : values)
      bytes += value;
    return bytes;
  };
  std::string numbers = array(4, {bytesOf(1u), bytesOf(2u)}), texts = array(8, {ggufString("x"), ggufString("")});
  GGUFWriter writer = tinyGGUF();
  // Nobody needs such keys, but a file may have them.
  writer.raw("a.nested", 9, array(9, {numbers, texts, array(9, {numbers, array(9, {})})}));
  EXPECT_EQ(loadModelFacts(save(writer.build())).layers, 2);
  writer.raw("tokenizer.ggml.tokens", 9, array(9, {texts}));
  refuse(writer, {"tokenizer.ggml.tokens", "expected an array of strings, got type array of array"});
  std::string deep = numbers;
  for (int i = 0; i < 8; ++i)
    deep = array(9, {deep});
  writer = tinyGGUF();
  writer.raw("deep", 9, deep);
  refuse(writer, {"key \"deep\"", "at most 8 nested arrays"});
  std::string endless;
  for (int i = 0; i < 10; ++i)
    endless += bytesOf<uint32_t>(9) + bytesOf<uint64_t>(1);
  refuseRaw(0, 1, ggufString("k") + bytesOf<uint32_t>(9) + endless, {"key \"k\"", "nested arrays"});
  for (uint32_t element : {0u, 4u, 8u, 9u})
    refuseRaw(0, 1,
              ggufString("k") + bytesOf<uint32_t>(9) + bytesOf<uint32_t>(9) + bytesOf<uint64_t>(1) + bytesOf(element) +
                  bytesOf(uint64_t(1) << 62) + std::string(32, '\0'),
              {"key \"k\" length at byte", "4611686018427387904"});
  refuseRaw(0, 1, ggufString("k") + bytesOf<uint32_t>(9) + bytesOf<uint32_t>(9) + bytesOf(~uint64_t(0)) + std::string(32, '\0'),
            {"key \"k\" length at byte 41"});
  writer.raw("deep", 9, array(9, {array(8, {bytesOf(~uint64_t(0))})}));
  refuse(writer, {"key \"deep\"", "end of the file"});
}

TEST_F(GGUF, Keys) {
  refuseRaw(0, 1, ggufString("") + bytesOf<uint32_t>(0) + "xx", {"metadata key 0 at byte 24"});
  GGUFWriter writer = tinyGGUF();
  writer.pairs.emplace_back("general.name", bytesOf<uint32_t>(0) + "x");
  refuse(writer, {"\"general.name\"", "once"});
  writer = tinyGGUF();
  writer.tensors.push_back(writer.tensors[0]);
  refuse(writer, {"\"token_embd.weight\"", "once"});
  writer = tinyGGUF();
  writer.tensors[0].name.clear();
  refuse(writer, {"tensor name 0"});
}

TEST_F(GGUF, Numbers) {
  for (const char *key : {"block_count", "embedding_length", "attention.head_count", "feed_forward_length",
                          "context_length", "attention.head_count_kv", "attention.key_length"}) {
    GGUFWriter writer = tinyGGUF();
    writer.u32(std::string("llama.") + key, 0);
    refuse(writer, {key, "got 0"});
    writer.raw(std::string("llama.") + key, 5, bytesOf<int32_t>(-1));
    refuse(writer, {key, "got -1"});
    writer.raw(std::string("llama.") + key, 10, bytesOf(~uint64_t(0)));
    refuse(writer, {key});
  }
  GGUFWriter writer = tinyGGUF();
  writer.f32("llama.attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN());
  refuse(writer, {"layer_norm_rms_epsilon", "nan"});
  writer = tinyGGUF();
  writer.u32("llama.attention.head_count_kv", 3);
  refuse(writer, {"head_count_kv", "divide the 4 attention heads, got 3"});
}

// Cut files ---------------------------------------------------------------------

TEST_F(GGUF, Truncated) {
  GGUFWriter writer = tinyGGUF();
  std::string good = writer.build();
  std::string last = writer.tensors.back().name;
  size_t header = writer.header().size();
  auto cut = [&](size_t size, std::vector<std::string> parts) {
    expectError(save(good.substr(0, size)), parts);
  };
  cut(good.size() - 1, {last, "expected 160 bytes", std::to_string(good.size() - 1)});
  cut(good.size() - 80, {last});
  cut(header, {"token_embd.weight", "end of the file"});
  cut(header - 1, {"offset", "end of the file"});
  cut(30, {""}); // inside the first key's length
  cut(40, {""}); // inside the first key
  cut(0, {"neither"});
  cut(3, {"neither"});
  cut(4, {"version"});
  cut(20, {"metadata count"});
}

TEST_F(GGUF, EveryTruncationIsRefused) {
  std::string good = tinyGGUF().build();
  for (size_t size = 0; size < good.size(); size += size < 4000 ? 7 : 501)
    EXPECT_THROW(loadModelFacts(save(good.substr(0, size))), Error) << size;
}

TEST_F(GGUF, OverlappingTensors) {
  std::string two = tensorEntry("t", {16}, 0, 0) + tensorEntry("u", {16}, 0, 32);
  std::string bytes = "GGUF" + bytesOf<uint32_t>(3) + bytesOf<uint64_t>(2) + bytesOf<uint64_t>(1) +
                      ggufString("general.architecture") + bytesOf<uint32_t>(8) + ggufString("llama") + two;
  expectError(save(bytes + std::string(256, '\0')), {"tensor \"u\"", "start after tensor \"t\""});
}

// Architecture and geometry ---------------------------------------------------

TEST_F(GGUF, UnsupportedArchitecture) {
  GGUFWriter writer = tinyGGUF();
  writer.string("general.architecture", "gemma3");
  refuse(writer, {"unsupported architecture", "llama", "qwen2", "\"gemma3\""});
  writer.string("general.architecture", std::string("a\x1b[31m\0b", 8));
  refuse(writer, {"\\x1b[31m"}); // no escape sequence reaches the terminal
  writer.remove("general.architecture");
  refuse(writer, {"general.architecture", "no such key"});
}

TEST_F(GGUF, AbsentWrongAndUnknownTensors) {
  GGUFWriter writer = tinyGGUF();
  writer.removeTensor("blk.1.ffn_down.weight");
  refuse(writer, {"blk.1.ffn_down.weight", "[40, 24]", "got none"});
  writer = tinyGGUF();
  std::swap(writer.tensor("blk.1.ffn_down.weight").dims[0], writer.tensor("blk.1.ffn_down.weight").dims[1]);
  refuse(writer, {"blk.1.ffn_down.weight", "expected shape [40, 24], got [24, 40]"});
  // A tensor that llama as llmc computes it does not have would change results.
  writer = tinyGGUF();
  writer.tensors.push_back({"blk.0.attn_q_norm.weight", {10}, 0, std::string(40, '\0')});
  refuse(writer, {"blk.0.attn_q_norm.weight"});
  writer.tensors.back().name = "something.else";
  ModelFacts facts = loadModelFacts(save(writer.build()));
  ASSERT_EQ(facts.warnings.size(), 1u);
  EXPECT_NE(facts.warnings[0].find("something.else"), std::string::npos);
  EXPECT_EQ(facts.find("something.else"), nullptr);
}

TEST_F(GGUF, MoreLayersThanTensors) {
  GGUFWriter writer = tinyGGUF();
  writer.u32("llama.block_count", 0x7fffffff);
  refuse(writer, {"blk.2.attn_norm.weight"});
}

TEST_F(GGUF, HeadDimension) {
  Tiny model;
  model.hidden = 64;
  model.headDim = 32;
  ModelFacts facts = loadModelFacts(save(tinyGGUF(model).build()));
  EXPECT_EQ(facts.headDim, 32);
  EXPECT_EQ(facts.rope.rotaryDim, 32);
  EXPECT_EQ(facts.find("blk.0.attn_q.weight")->shape, (std::vector<int64_t>{128, 64}));
  EXPECT_EQ(facts.find("blk.0.attn_k.weight")->shape, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(facts.find("blk.0.attn_output.weight")->shape, (std::vector<int64_t>{64, 128}));

  GGUFWriter writer = tinyGGUF(model);
  writer.u32("llama.attention.value_length", 16);
  refuse(writer, {"llama.attention.value_length", "32, got 16"});
  writer = tinyGGUF(model);
  writer.u32("llama.rope.dimension_count", 16);
  EXPECT_EQ(loadModelFacts(save(writer.build())).rope.rotaryDim, 16);
  for (uint32_t bad : {15u, 34u}) {
    writer.u32("llama.rope.dimension_count", bad);
    refuse(writer, {"rotated dimensions", std::to_string(bad)});
  }
  model.heads = 3;
  model.kvHeads = 1;
  writer = tinyGGUF(model);
  writer.remove("llama.attention.key_length");
  refuse(writer, {"llama.embedding_length", "multiple of the 3 heads"});
}

// Tokenizer ---------------------------------------------------------------------

TEST_F(GGUF, BadTokenizers) {
  auto bad = [&](auto change, std::vector<std::string> parts) {
    GGUFWriter writer = tinyGGUF();
    change(writer);
    refuse(writer, parts);
  };
  bad([](auto &w) { w.string("tokenizer.ggml.model", "rwkv"); }, {"tokenizer.ggml.model", "gpt2", "\"rwkv\""});
  bad([](auto &w) { w.string("tokenizer.ggml.model", "llama"); }, {"tokenizer.ggml.scores", "no such key"});
  bad([](auto &w) { w.remove("tokenizer.ggml.model"); }, {"tokenizer.ggml.model"});
  bad([](auto &w) { w.string("tokenizer.ggml.pre", "no-such"); }, {"tokenizer.ggml.pre", "no-such"});
  bad([](auto &w) { w.remove("tokenizer.ggml.merges"); }, {"tokenizer.ggml.merges"});
  bad([](auto &w) { w.strings("tokenizer.ggml.merges", {"ab"}); }, {"merge 0", "\"ab\""});
  bad([](auto &w) { w.strings("tokenizer.ggml.merges", {"a b", "b a"}); }, {"merge 1", "\"ba\""});
  bad([](auto &w) { w.strings("tokenizer.ggml.merges", {"a b\r"}); }, {"merge 0", "\\x0d"});
  bad([](auto &w) { w.i32s("tokenizer.ggml.token_type", {3}); }, {"token_type", "expected 9"});
  bad(
      [](auto &w) {
        w.i32s("tokenizer.ggml.token_type", {9, 1, 1, 1, 1, 1, 1, 1, 1});
      },
      {"token_type", "got 9"});
  bad([](auto &w) { w.u32("tokenizer.ggml.eos_token_id", 9); }, {"eos_token_id", "below 9, got 9"});
  bad([](auto &w) { w.strings("tokenizer.ggml.tokens", {"\xff", "b"}); }, {"token 0", "UTF-8", "\\xff"});
  bad(
      [](auto &w) {
        w.strings("tokenizer.ggml.tokens", std::vector<std::string>(10, "a"));
        w.remove("tokenizer.ggml.token_type");
        w.strings("tokenizer.ggml.merges", {});
      },
      {"at most 9 tokens", "got 10"});
}

} // namespace
