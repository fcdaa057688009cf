//===- FolderTest.cpp - Hugging Face folders: config, shards, side files --===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <filesystem>

using namespace llmc;
using namespace llmc::test;
namespace fs = std::filesystem;

namespace {

TEST(Folder, Tiny) {
  TempDir dir;
  ModelFacts facts = loadModelFacts(tinyFolder(dir) + "/");
  EXPECT_EQ(facts.format, "huggingface");
  EXPECT_EQ(facts.architecture, "llama");
  EXPECT_EQ(facts.hidden, 40);
  EXPECT_EQ(facts.headDim, 10);
  EXPECT_EQ(facts.normEps, 1e-6);
  EXPECT_TRUE(facts.tiedHead);
  EXPECT_FALSE(facts.rope.interleavedRows);
  const TensorFact *tensor = facts.find("blk.1.attn_output.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->sourceName, "model.layers.1.self_attn.o_proj.weight");
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{40, 40}));
  EXPECT_EQ(facts.files, (std::vector<std::string>{dir.file("model.safetensors")}));
}

TEST(Folder, TinyTokenizer) {
  TempDir dir;
  tinyFolder(dir);
  TokenizerData tokenizer = loadModelFacts(dir.path).tokenizer;
  EXPECT_EQ(tokenizer.tokens,
            (std::vector<std::string>{"<s>", "</s>", "a", "b", "ab", "Ġ", "Ġa", "<|im_end|>", "1"}));
  using Kind = PreTokenizerStep::Kind;
  ASSERT_EQ(tokenizer.preTokenizers.size(), 3u);
  EXPECT_EQ(tokenizer.preTokenizers[0], (PreTokenizerStep{.kind = Kind::Split, .pattern = "\\p{N}{1,3}"}));
  EXPECT_EQ(tokenizer.preTokenizers[1], (PreTokenizerStep{.kind = Kind::Digits, .individualDigits = true}));
  EXPECT_EQ(tokenizer.preTokenizers[2].kind, Kind::ByteLevel);
  ASSERT_EQ(tokenizer.normalizers.size(), 1u);
  EXPECT_EQ(tokenizer.normalizers[0].kind, NormalizerStep::Kind::NFC);
  EXPECT_TRUE(tokenizer.ignoreMerges);
  EXPECT_TRUE(tokenizer.addBos);
  EXPECT_FALSE(tokenizer.addEos);
  EXPECT_EQ(tokenizer.bosId, 0);
  EXPECT_EQ(tokenizer.eosIds, (std::vector<int32_t>{1}));
  ASSERT_EQ(tokenizer.added.size(), 3u);
  EXPECT_TRUE(tokenizer.added[2].rstrip);
}

TEST(Folder, SideFiles) {
  TempDir dir;
  tinyFolder(dir);
  dir.write("generation_config.json", R"({"eos_token_id": [7, 1]})");
  dir.write("tokenizer_config.json",
            R"({"pad_token": {"content": "</s>"}, "chat_template": [{"name": "rag", "template": "no"},
                {"name": "default", "template": "yes"}]})");
  ModelFacts facts = loadModelFacts(dir.path);
  EXPECT_EQ(facts.tokenizer.eosIds, (std::vector<int32_t>{7, 1}));
  EXPECT_EQ(facts.tokenizer.padId, 1);
  EXPECT_EQ(facts.chatTemplate, "yes");
  dir.write("chat_template.jinja", "{{ newer }}");
  EXPECT_EQ(loadModelFacts(dir.path).chatTemplate, "{{ newer }}");
  dir.write("chat_template.jinja", "\xff");
  expectError(dir.path, {"chat_template.jinja", "UTF-8"});
}

TEST(Folder, Families) {
  TempDir dir;
  Tiny model;
  model.architecture = "mistral";
  ModelFacts facts = loadModelFacts(tinyFolder(dir, model, R"("sliding_window": 64)"));
  EXPECT_EQ(facts.architecture, "mistral");
  EXPECT_EQ(facts.slidingWindow, 64);
  EXPECT_EQ(loadModelFacts(tinyFolder(dir, model, R"("sliding_window": null)")).slidingWindow, 0);
  EXPECT_EQ(loadModelFacts(tinyFolder(dir, model, R"("sliding_window": 4096)")).slidingWindow, 0);
  model.architecture = "qwen2";
  model.bias = true;
  model.tied = false;
  facts = loadModelFacts(tinyFolder(dir, model, R"("sliding_window": 64, "use_sliding_window": false)"));
  EXPECT_TRUE(facts.attentionBias);
  EXPECT_FALSE(facts.attentionOutputBias);
  EXPECT_FALSE(facts.tiedHead);
  EXPECT_EQ(facts.slidingWindow, 0);
  EXPECT_NE(facts.find("output.weight"), nullptr);
}

TEST(Folder, LlamaAttentionBias) {
  TempDir dir;
  Tiny model;
  model.bias = true;
  tinyFolder(dir, model, R"("attention_bias": true)");
  expectError(dir.path, {"model.layers.0.self_attn.o_proj.bias", "got none"});
  auto tensors = tinyTensors(model);
  for (int layer = 0; layer < 2; ++layer)
    tensors.push_back({"model.layers." + std::to_string(layer) + ".self_attn.o_proj.bias", "F32", {40}});
  dir.write("model.safetensors", safetensors(tensors));
  EXPECT_TRUE(loadModelFacts(dir.path).attentionOutputBias);
  // Biases that the config does not announce would be left out silently.
  dir.write("config.json", tinyConfig(model));
  expectError(dir.path, {"self_attn.", "bias"});
}

TEST(Folder, NoModel) {
  TempDir dir;
  expectError(dir.path, {"config.json"});
  expectError(dir.file("absent"), {"absent", "no such file"});
  dir.write("config.json", tinyConfig());
  expectError(dir.path, {"model.safetensors", "neither"});
  dir.write("pytorch_model.bin", "");
  expectError(dir.path, {"pytorch_model.bin is not supported"});
  expectError(dir.file("config.json"), {"pass the folder"});
  dir.write("model.safetensors", safetensors(tinyTensors()));
  expectError(dir.path, {"tokenizer.json"});
  fs::create_directory(dir.file("tokenizer.json"));
  expectError(dir.path, {"tokenizer.json", "got a folder"});
}

TEST(Folder, UnsupportedConfigs) {
  TempDir dir;
  auto refuse = [&](const std::string &more, const std::vector<std::string> &parts) {
    tinyFolder(dir, {}, more);
    expectError(dir.path, parts);
  };
  refuse(R"("quantization_config": {"quant_method": "gptq"})", {"quantization_config", "\"gptq\""});
  refuse(R"("hidden_act": "gelu")", {"hidden_act", "\"gelu\""});
  refuse(R"("mlp_bias": true)", {"mlp_bias"});
  refuse(R"("rms_norm_eps": "x")", {"rms_norm_eps"});
  refuse(R"("attention_bias": 1)", {"attention_bias", "true or false"});
  refuse(R"("hidden_size": 41)", {"repeated key \"hidden_size\""});
  dir.write("config.json", R"({"architectures": ["GemmaForCausalLM"]})");
  expectError(dir.path, {"config.json: architectures[0]", "llama, mistral, qwen2", "\"GemmaForCausalLM\""});
  dir.write("config.json", R"({"hidden_size": 3})");
  expectError(dir.path, {"architectures"});
  dir.write("config.json", "[]");
  expectError(dir.path, {"config.json", "expected an object"});
}

TEST(Folder, ConfigNumbers) {
  TempDir dir;
  auto with = [&](const std::string &key, const std::string &value) {
    tinyFolder(dir);
    std::string config = tinyConfig();
    size_t at = config.find("\"" + key + "\": ");
    size_t start = at + key.size() + 4, end = config.find_first_of(",\n", start);
    config.replace(start, end - start, value);
    dir.write("config.json", config);
    return dir.path;
  };
  for (const char *key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                          "intermediate_size", "vocab_size", "max_position_embeddings"})
    for (const char *bad : {"0", "-4", "64.5", "1e30", "9223372036854775808", "\"40\"", "[40]", "true"})
      expectError(with(key, bad), {std::string("config.json: ") + key, "expected", "byte"});
  expectError(with("hidden_size", "1e999"), {"config.json: byte"});
  EXPECT_EQ(loadModelFacts(with("hidden_size", "40.0")).hidden, 40);
  EXPECT_EQ(loadModelFacts(with("hidden_size", "4e1")).hidden, 40);
  expectError(with("hidden_size", "48"), {"model.embed_tokens.weight", "[9, 48]", "[9, 40]"});
  expectError(with("hidden_size", "44"), {"config.json: rope", "got 11"});
  expectError(with("num_hidden_layers", "2147483647"), {"model.layers.2.input_layernorm.weight"});
  expectError(with("vocab_size", "2147483648"), {"model.embed_tokens.weight"});
}

TEST(Folder, HeadDimension) {
  TempDir dir;
  Tiny model;
  model.hidden = 64;
  model.headDim = 32;
  ModelFacts facts = loadModelFacts(tinyFolder(dir, model));
  EXPECT_EQ(facts.headDim, 32);
  EXPECT_EQ(facts.find("blk.0.attn_q.weight")->shape, (std::vector<int64_t>{128, 64}));
  EXPECT_EQ(facts.find("blk.0.attn_k.weight")->shape, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(facts.find("blk.0.attn_output.weight")->shape, (std::vector<int64_t>{64, 128}));
  model.hidden = 80;
  model.heads = 3;
  model.kvHeads = 1;
  EXPECT_EQ(loadModelFacts(tinyFolder(dir, model)).headDim, 32);
  EXPECT_EQ(loadModelFacts(tinyFolder(dir, {}, R"("head_dim": null)")).headDim, 10);
  std::string config = tinyConfig(model);
  config.erase(config.find("\"head_dim\""), sizeof("\"head_dim\": 32,"));
  dir.write("config.json", config);
  expectError(dir.path, {"hidden_size", "multiple of the 3 attention heads", "80"});
}

TEST(Folder, Tensors) {
  TempDir dir;
  tinyFolder(dir);
  auto tensors = tinyTensors();
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {5}});
  tensors.push_back({"lm_head.weight", "F32", {9, 40}});
  tensors.push_back({"extra", "I64", {3}});
  dir.write("model.safetensors", safetensors(tensors));
  ModelFacts facts = loadModelFacts(dir.path);
  EXPECT_EQ(facts.warnings.size(), 3u);
  EXPECT_EQ(facts.find("output.weight"), nullptr);

  tensors = tinyTensors();
  tensors.push_back({"model.layers.1.self_attn.q_norm.weight", "F32", {10}});
  dir.write("model.safetensors", safetensors(tensors));
  expectError(dir.path, {"model.layers.1.self_attn.q_norm.weight"});

  tensors = tinyTensors();
  tensors[3].dtype = "I64";
  dir.write("model.safetensors", safetensors(tensors));
  expectError(dir.path, {tensors[3].name, "F32, F16, BF16 or F8_E4M3, got I64"});

  tensors = tinyTensors();
  std::string name = tensors.back().name;
  tensors.pop_back();
  dir.write("model.safetensors", safetensors(tensors));
  expectError(dir.path, {name, "[40]", "got none"});

  for (const char *dtype : {"F16", "BF16"}) {
    dir.write("model.safetensors", safetensors(tinyTensors({}, dtype)));
    EXPECT_STREQ(toString(loadModelFacts(dir.path).tensors[0].type), dtype);
  }
}

// Shards and where their names lead ---------------------------------------------

class Sharded : public ::testing::Test {
protected:
  TempDir dir;
  std::vector<StoredTensor> first, second;

  void SetUp() override {
    dir.write("model/config.json", tinyConfig());
    dir.write("model/tokenizer.json", tinyTokenizer());
    for (const StoredTensor &tensor : tinyTensors())
      (first.size() < 7 ? first : second).push_back(tensor);
  }
  std::string folder() const { return dir.file("model"); }

  /// `name` (JSON) is the shard of the second half.
  void writeIndex(const std::string &name) {
    std::string map;
    for (const StoredTensor &tensor : first)
      map += "\"" + tensor.name + "\": \"model-00001-of-00002.safetensors\",\n";
    for (const StoredTensor &tensor : second)
      map += "\"" + tensor.name + "\": " + name + ",\n";
    map.resize(map.size() - 2);
    dir.write("model/model.safetensors.index.json",
              "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {" + map + "}}");
    dir.write("model/model-00001-of-00002.safetensors", safetensors(first));
  }
};

TEST_F(Sharded, Good) {
  writeIndex("\"sub/x.safetensors\"");
  dir.write("model/sub/x.safetensors", safetensors(second));
  ModelFacts facts = loadModelFacts(folder());
  EXPECT_EQ(facts.files.size(), 2u);
  EXPECT_EQ(facts.files[facts.find("output_norm.weight")->file], folder() + "/sub/x.safetensors");
  EXPECT_TRUE(facts.warnings.empty());
}

TEST_F(Sharded, PathsThatLeave) {
  dir.write("other/model.safetensors", safetensors(second)); // exists and is valid
  dir.write("model/x.safetensors", safetensors(second));
  std::string absolute = "\"" + dir.file("other/model.safetensors") + "\"";
  for (const std::string &bad :
       {std::string("\"../other/model.safetensors\""), absolute,
        std::string("\"sub/../../model/x.safetensors\""), std::string("\"sub/../x.safetensors\""),
        std::string("\"..\""), std::string("\"a\\u0000b\""), std::string("\"\""), std::string("7"),
        std::string("null"), std::string("[]")}) {
    writeIndex(bad);
    expectError(folder(), {"model.safetensors.index.json: weight_map." + second[0].name, "expected"});
  }
}

TEST_F(Sharded, AbsentShardOrTensor) {
  writeIndex("\"absent.safetensors\"");
  expectError(folder(), {"index.json", "\"absent.safetensors\"", "model."});
  writeIndex("\"x.safetensors\"");
  std::vector<StoredTensor> fewer(second.begin(), second.end() - 1);
  dir.write("model/x.safetensors", safetensors(fewer));
  expectError(folder(), {second.back().name, "\"x.safetensors\"", "got none there"});
  // In the shard, not in the index: not used, and said so.
  auto more = second;
  more.push_back({"model.layers.0.mystery", "F32", {3}});
  dir.write("model/x.safetensors", safetensors(more));
  ModelFacts facts = loadModelFacts(folder());
  ASSERT_EQ(facts.warnings.size(), 1u);
  EXPECT_NE(facts.warnings[0].find("model.layers.0.mystery"), std::string::npos);
  writeIndex("\"" + std::string(5000, 'n') + "\"");
  expectError(folder(), {"no such file"});
  fs::create_directory(folder() + "/folder.safetensors");
  writeIndex("\"folder.safetensors\"");
  expectError(folder(), {"folder.safetensors", "got a folder"});
}

TEST_F(Sharded, BadIndex) {
  dir.write("model/model.safetensors.index.json", R"({"weight_map": {}})");
  expectError(folder(), {"weight_map", "expected tensors"});
  dir.write("model/model.safetensors.index.json", R"({"metadata": {}})");
  expectError(folder(), {"weight_map"});
  dir.write("model/model.safetensors.index.json", R"({"weight_map": {"a": "x", "a": "y"}})");
  expectError(folder(), {"repeated key \"a\""});
}

// Byte-order marks, CRLF, other encodings ---------------------------------------

std::string toCrlf(const std::string &text) {
  std::string out;
  for (char c : text)
    out += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return out;
}

TEST(Folder, ByteOrderMarkAndCrlf) {
  std::map<std::string, std::string> files = {
      {"config.json", tinyConfig()},
      {"generation_config.json", "{\n\"eos_token_id\": 7\n}\n"},
      {"tokenizer_config.json", "{\n\"chat_template\": \"x\"\n}\n"},
      {"tokenizer.json", tinyTokenizer()},
  };
  std::string index;
  for (const StoredTensor &tensor : tinyTensors())
    index += (index.empty() ? "\n\"" : ",\n\"") + tensor.name + "\": \"a.safetensors\"";
  files["model.safetensors.index.json"] = "{\"weight_map\": {" + index + "\n}\n}\n";
  TempDir dir;
  dir.write("a.safetensors", safetensors(tinyTensors()));
  auto writeAll = [&] {
    for (const auto &[name, text] : files)
      dir.write(name, text);
  };
  writeAll();
  ModelFacts plain = loadModelFacts(dir.path);
  for (const auto &[name, text] : files)
    for (const std::string &changed : {"\xef\xbb\xbf" + text, toCrlf(text), "\xef\xbb\xbf" + toCrlf(text)}) {
      writeAll();
      dir.write(name, changed);
      ModelFacts facts = loadModelFacts(dir.path);
      EXPECT_EQ(facts.tokenizer.serialize(), plain.tokenizer.serialize()) << name;
      EXPECT_EQ(facts.tensors.size(), plain.tensors.size());
      EXPECT_EQ(facts.chatTemplate, "x");
      EXPECT_EQ(facts.tokenizer.eosIds, (std::vector<int32_t>{7}));
    }
}

TEST(Folder, BadText) {
  TempDir dir;
  tinyFolder(dir);
  std::string utf16 = "\xff\xfe";
  for (char c : tinyConfig())
    utf16 += {c, '\0'};
  dir.write("config.json", utf16);
  expectError(dir.path, {"config.json", "byte 0", "UTF-16"});
  dir.write("config.json", utf16.substr(2)); // without its mark
  expectError(dir.path, {"config.json", "UTF-16"});
  std::string config = tinyConfig();
  config.insert(config.rfind('\n', config.size() - 3), ",");
  config = config.substr(0, config.rfind('}')) + ",}";
  dir.write("config.json", config);
  expectError(dir.path, {"config.json: byte " + std::to_string(config.size() - 1)});
}

TEST(Folder, MergesAsPairs) {
  TempDir dir;
  tinyFolder(dir);
  std::string strings = loadModelFacts(dir.path).tokenizer.serialize();
  std::string text = tinyTokenizer();
  std::string from = R"(["a b", "Ġ a"])";
  auto with = [&](const std::string &merges) {
    std::string changed = text;
    dir.write("tokenizer.json", changed.replace(changed.find(from), from.size(), merges));
    return dir.path;
  };
  EXPECT_EQ(loadModelFacts(with(R"([["a", "b"], ["Ġ", "a"]])")).tokenizer.serialize(), strings);
  for (const char *bad :
       {R"(["a b", 3])", R"(["ab"])", R"(["a b c"])", R"([["a"]])", R"([["a", 3]])", R"([["a", "b", "a"]])"})
    expectError(with(bad), {"tokenizer.json: model.merges["});
  expectError(with(R"(["a b\r"])"), {"carriage return"});
  expectError(with(R"(["b a"])"), {"merge 0", "\"ba\""});
  expectError(with(R"([["", "a"]])"), {"merge 0"});
  expectError(with("{}"), {"model.merges", "an array"});
}

TEST(Folder, RefusedTokenizers) {
  TempDir dir;
  tinyFolder(dir);
  auto refuse = [&](const std::string &from, const std::string &to, const std::vector<std::string> &parts) {
    std::string text = tinyTokenizer();
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    dir.write("tokenizer.json", text.replace(at, from.size(), to));
    expectError(dir.path, parts);
  };
  refuse(R"("type": "BPE")", R"("type": "Unigram")", {"tokenizer.json: model.vocab", "an array"});
  refuse(R"("type": "BPE")", R"("type": "BTE")", {"tokenizer.json: model.type", "WordPiece", "\"BTE\""});
  refuse(R"("type": "NFC")", R"("type": "NFQ")", {"normalizer.type", "NFKC", "\"NFQ\""});
  refuse(R"("type": "Digits")", R"("type": "Commas")",
         {"pre_tokenizer.pretokenizers[1].type", "Punctuation", "\"Commas\""});
  refuse(R"("behavior": "Isolated")", R"("behavior": "Dropped")",
         {"pretokenizers[0].behavior", "Contiguous", "\"Dropped\""});
  refuse(R"("decoder": {"type": "ByteLevel"})", R"("decoder": {"type": "CTC"})", {"decoder.type", "\"CTC\""});
  refuse(R"("TemplateProcessing")", R"("OtherProcessing")",
         {"post_processor.processors[1].type", "\"OtherProcessing\""});
  refuse(R"("TemplateProcessing")", R"("RobertaProcessing")", {"post_processor.processors[1]: expected the key \"cls\""});
  refuse(R"("dropout": null)", R"("dropout": 0.1)", {"model.dropout", "0.1"});
  refuse(R"("a": 2)", R"("a": 9)", {"model.vocab.a", "vocabulary size 9", "got 9"});
  refuse(R"("a": 2)", R"("a": -1)", {"model.vocab.a"});
  refuse(R"("a": 2)", R"("a": 4)", {"an id of its own"});
  refuse(R"("id": 7, "content": "<|im_end|>")", R"("id": 3, "content": "<|im_end|>")",
         {"added_tokens[2].content", "\"b\""});
  refuse(R"({"SpecialToken": {"id": "<s>")", R"({"SpecialToken": {"id": "<?>")",
         {"SpecialToken.id", "\"<?>\""});
}

TEST(Folder, AddedTokensOfTheTokenizerConfig) {
  TempDir dir;
  tinyFolder(dir);
  std::string text = tinyTokenizer();
  std::string entry = R"(,
  {"id": 7, "content": "<|im_end|>", "special": true, "rstrip": true})";
  dir.write("tokenizer.json", text.replace(text.find(entry), entry.size(), ""));
  dir.write(
      "tokenizer_config.json",
      R"({"added_tokens_decoder": {"7": {"content": "<|im_end|>", "special": true}, "0": {"content": "<s>"},
                "40": {"content": "beyond"}}})");
  ModelFacts facts = loadModelFacts(dir.path);
  ASSERT_EQ(facts.tokenizer.added.size(), 3u);
  EXPECT_EQ(facts.tokenizer.added[2].id, 7);
  EXPECT_EQ(facts.tokenizer.tokens[7], "<|im_end|>");
  EXPECT_EQ(facts.warnings.size(), 1u);
  dir.write("tokenizer_config.json", R"({"added_tokens_decoder": {"seven": {"content": "x"}}})");
  expectError(dir.path, {"tokenizer_config.json: added_tokens_decoder.seven"});
}

// Llama 3.1 8B.
const char kLlama8B[] = R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
  "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "bos_token_id": 128000, "eos_token_id": 128001,
  "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 8192, "rope_type": "llama3"}})";

TEST(Folder, ConfigAlone) {
  TempDir dir;
  dir.write("config.json", kLlama8B);
  ModelFacts facts = loadModelFacts(dir.path, {.weightsOptional = true});
  EXPECT_TRUE(facts.synthetic);
  EXPECT_EQ(facts.tensors.size(), 3u + 9 * 32);
  EXPECT_TRUE(facts.tokenizer.tokens.empty());
  EXPECT_EQ(facts.rope.scaling, RopeFacts::Scaling::Llama3);
  EXPECT_EQ(facts.rope.originalContext, 8192);
  const TensorFact *down = facts.find("blk.31.ffn_down.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, (std::vector<int64_t>{4096, 14336}));
  EXPECT_EQ(down->type, DType::BF16);
  EXPECT_EQ(down->sourceName, "model.layers.31.mlp.down_proj.weight");
  uint64_t end = 0; // one after the other: every tensor has a span of its own
  for (const TensorFact &tensor : facts.tensors) {
    EXPECT_EQ(tensor.offset, end) << tensor.name;
    end += tensor.bytes;
  }
  EXPECT_EQ(end, 2 * uint64_t(8030261248)); // parameters of the model card
}

TEST(Folder, ConfigAloneStorage) {
  TempDir dir;
  dir.write("config.json", kLlama8B);
  ModelFacts facts = loadModelFacts(dir.path, {.weightsOptional = true, .storage = DType::Q4_0});
  EXPECT_EQ(facts.find("output.weight")->type, DType::Q4_0);
  EXPECT_EQ(facts.find("output.weight")->bytes, uint64_t(128256) * 4096 / 32 * 18);
  EXPECT_EQ(facts.find("output_norm.weight")->type, DType::F32);
}

// Rows that are no whole blocks of 256 are stored as llama.cpp's quantizer stores them.
TEST(Folder, ConfigAloneFallsBackToBlocksOf32) {
  for (auto [asked, instead] : {std::pair(DType::Q4_K, DType::Q5_0), {DType::Q5_K, DType::Q5_1}, {DType::Q6_K, DType::Q8_0},
                                {DType::Q2_K, DType::IQ4_NL}, {DType::Q3_K, DType::IQ4_NL}, {DType::IQ4_XS, DType::IQ4_NL}}) {
    TempDir dir;
    dir.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "num_attention_heads": 2, "hidden_size": 512,
                                 "intermediate_size": 96, "num_hidden_layers": 1, "vocab_size": 9})");
    ModelFacts facts = loadModelFacts(dir.path, {.weightsOptional = true, .storage = asked});
    EXPECT_EQ(facts.find("blk.0.ffn_up.weight")->type, asked); // 512 columns
    EXPECT_EQ(facts.find("blk.0.ffn_down.weight")->type, instead) << toString(asked);
    EXPECT_EQ(facts.find("blk.0.ffn_down.weight")->bytes, storageBytes(instead, 512 * 96));
    EXPECT_EQ(facts.find("output_norm.weight")->type, DType::F32);
  }
}

TEST(Folder, ConfigAloneIsForRandomWeights) {
  TempDir dir;
  dir.write("config.json", kLlama8B);
  expectError(dir.path, {"expected model.safetensors or model.safetensors.index.json, got neither (--weights=random:SEED needs none)"});
  dir.write("tokenizer.json", "{");
  expectError(dir.path, {"tokenizer.json"}, {.weightsOptional = true});
}

TEST(Folder, ConfigAloneUsesWeightsThatAreThere) {
  TempDir dir;
  tinyFolder(dir);
  ModelFacts facts = loadModelFacts(dir.path, {.weightsOptional = true, .storage = DType::Q8_0});
  EXPECT_FALSE(facts.synthetic);
  EXPECT_EQ(facts.files, (std::vector<std::string>{dir.file("model.safetensors")}));
  EXPECT_FALSE(facts.tokenizer.tokens.empty());
}

TEST(Folder, ConfigAloneRefusesWhatCannotBe) {
  TempDir dir;
  auto refuse = [&](const std::string &keys, const std::string &message, DType storage = DType::BF16) {
    dir.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "num_attention_heads": 2, )" + keys + "}");
    expectError(dir.path, {message}, {.weightsOptional = true, .storage = storage});
  };
  refuse(R"("hidden_size": 40, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 9)",
         "tensor \"model.embed_tokens.weight\": expected rows of a multiple of 32 values for Q4_0, got 40", DType::Q4_0);
  refuse(R"("hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2000000000, "vocab_size": 9)",
         "num_hidden_layers: expected at most 4096 without weight files, got 2000000000");
  refuse(R"("hidden_size": 2147483648, "intermediate_size": 2147483648, "num_hidden_layers": 4096, "vocab_size": 2147483648,
            "head_dim": 64)", "expected weights of less than 2^50 bytes, got more");
}

} // namespace
