//===- TestModels.cpp -----------------------------------------------------===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace llmc;
using namespace llmc::test;
namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "llmc-frontend-XXXXXX").string();
  path = ::mkdtemp(pattern.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::string TempDir::write(const std::string &name, const std::string &bytes) const {
  fs::create_directories(fs::path(file(name)).parent_path());
  std::ofstream(file(name), std::ios::binary) << bytes;
  return file(name);
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

void GGUFWriter::raw(const std::string &key, uint32_t type, const std::string &value) {
  std::string entry = bytesOf(type) + value;
  for (auto &pair : pairs)
    if (pair.first == key) {
      pair.second = entry;
      return;
    }
  pairs.emplace_back(key, entry);
}

void GGUFWriter::strings(const std::string &key, const std::vector<std::string> &values) {
  std::string bytes = bytesOf<uint32_t>(8) + bytesOf<uint64_t>(values.size());
  for (const std::string &value : values)
    bytes += ggufString(value);
  raw(key, 9, bytes);
}

void GGUFWriter::i32s(const std::string &key, const std::vector<int32_t> &values) {
  std::string bytes = bytesOf<uint32_t>(5) + bytesOf<uint64_t>(values.size());
  for (int32_t value : values)
    bytes += bytesOf(value);
  raw(key, 9, bytes);
}

void GGUFWriter::remove(const std::string &key) {
  std::erase_if(pairs, [&](const auto &pair) { return pair.first == key; });
}

GGUFWriter::Tensor &GGUFWriter::tensor(const std::string &name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const Tensor &tensor) { return tensor.name == name; });
}

void GGUFWriter::removeTensor(const std::string &name) {
  std::erase_if(tensors, [&](const Tensor &tensor) { return tensor.name == name; });
}

std::string GGUFWriter::header() const {
  std::string out =
      "GGUF" + bytesOf(version) + bytesOf<uint64_t>(tensors.size()) + bytesOf<uint64_t>(pairs.size());
  for (const auto &[key, value] : pairs)
    out += ggufString(key) + value;
  uint64_t offset = 0;
  for (const Tensor &tensor : tensors) {
    out += ggufString(tensor.name) + bytesOf<uint32_t>(static_cast<uint32_t>(tensor.dims.size()));
    for (uint64_t extent : tensor.dims)
      out += bytesOf(extent);
    out += bytesOf(tensor.type) + bytesOf(offset);
    offset += (tensor.data.size() + alignment - 1) / alignment * alignment;
  }
  return out;
}

std::string GGUFWriter::build() const {
  std::string out = header();
  auto pad = [&] { out.resize((out.size() + alignment - 1) / alignment * alignment); };
  pad();
  for (const Tensor &tensor : tensors) {
    pad();
    out += tensor.data;
  }
  return out;
}

static const std::vector<std::string> tinyTokens = {"<s>", "</s>", "a",          "b", "ab",
                                                    "Ġ",   "Ġa",   "<|im_end|>", "1"};

GGUFWriter llmc::test::tinyGGUF(const Tiny &model) {
  GGUFWriter out;
  auto key = [&](const char *suffix) { return model.architecture + "." + suffix; };
  out.string("general.architecture", model.architecture);
  out.string("general.name", "tiny");
  auto u32 = [&](const char *suffix, int64_t value) { out.u32(key(suffix), static_cast<uint32_t>(value)); };
  u32("block_count", model.layers);
  u32("context_length", 128);
  u32("embedding_length", model.hidden);
  u32("feed_forward_length", model.ffn);
  u32("attention.head_count", model.heads);
  u32("attention.head_count_kv", model.kvHeads);
  if (model.headDim * model.heads != model.hidden) {
    u32("attention.key_length", model.headDim);
    u32("attention.value_length", model.headDim);
  }
  out.f32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  out.string("tokenizer.ggml.model", "gpt2");
  out.string("tokenizer.ggml.pre", "gpt-2");
  out.strings("tokenizer.ggml.tokens", tinyTokens);
  out.i32s("tokenizer.ggml.token_type", {3, 3, 1, 1, 1, 1, 1, 3, 4});
  out.strings("tokenizer.ggml.merges", {"a b", "Ġ a"});
  out.u32("tokenizer.ggml.bos_token_id", 0);
  out.u32("tokenizer.ggml.eos_token_id", 1);
  for (const StoredTensor &tensor : tinyTensors(model)) {
    // Canonical names are GGUF's; the Hugging Face ones are mapped here by hand.
    std::string name = tensor.name;
    auto replace = [&](const std::string &from, const std::string &to) {
      if (size_t at = name.find(from); at != std::string::npos)
        name.replace(at, from.size(), to);
    };
    replace("model.embed_tokens", "token_embd");
    replace("model.layers.", "blk.");
    replace("input_layernorm", "attn_norm");
    replace("post_attention_layernorm", "ffn_norm");
    replace("self_attn.o_proj", "attn_output");
    for (const char *part : {"q", "k", "v"})
      replace(std::string("self_attn.") + part + "_proj", std::string("attn_") + part);
    for (const char *part : {"gate", "up", "down"})
      replace(std::string("mlp.") + part + "_proj", std::string("ffn_") + part);
    replace("model.norm", "output_norm");
    replace("lm_head", "output");
    GGUFWriter::Tensor stored{name, {}, 0, {}};
    size_t values = 1;
    for (int64_t extent : tensor.shape) {
      stored.dims.insert(stored.dims.begin(), static_cast<uint64_t>(extent));
      values *= static_cast<size_t>(extent);
    }
    stored.data.assign(values * 4, '\0');
    out.tensors.push_back(stored);
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Hugging Face
//===----------------------------------------------------------------------===//

std::vector<StoredTensor> llmc::test::tinyTensors(const Tiny &model, const std::string &dtype) {
  std::vector<StoredTensor> out;
  auto add = [&](const std::string &name, std::vector<int64_t> shape) {
    out.push_back({name, dtype, shape});
  };
  int64_t q = model.heads * model.headDim, kv = model.kvHeads * model.headDim;
  add("model.embed_tokens.weight", {Tiny::vocab, model.hidden});
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string block = "model.layers." + std::to_string(layer) + ".";
    add(block + "input_layernorm.weight", {model.hidden});
    add(block + "self_attn.q_proj.weight", {q, model.hidden});
    add(block + "self_attn.k_proj.weight", {kv, model.hidden});
    add(block + "self_attn.v_proj.weight", {kv, model.hidden});
    if (model.bias) {
      add(block + "self_attn.q_proj.bias", {q});
      add(block + "self_attn.k_proj.bias", {kv});
      add(block + "self_attn.v_proj.bias", {kv});
    }
    add(block + "self_attn.o_proj.weight", {model.hidden, q});
    add(block + "post_attention_layernorm.weight", {model.hidden});
    add(block + "mlp.gate_proj.weight", {model.ffn, model.hidden});
    add(block + "mlp.up_proj.weight", {model.ffn, model.hidden});
    add(block + "mlp.down_proj.weight", {model.hidden, model.ffn});
  }
  add("model.norm.weight", {model.hidden});
  if (!model.tied)
    add("lm_head.weight", {Tiny::vocab, model.hidden});
  return out;
}

std::string llmc::test::safetensorsRaw(const std::string &json, size_t dataBytes) {
  return bytesOf<uint64_t>(json.size()) + json + std::string(dataBytes, '\0');
}

std::string llmc::test::safetensors(const std::vector<StoredTensor> &tensors) {
  std::string json = "{\"__metadata__\":{\"format\":\"pt\"}";
  size_t offset = 0;
  for (const StoredTensor &tensor : tensors) {
    size_t bytes = tensor.dtype == "F32" ? 4 : tensor.dtype == "I64" || tensor.dtype == "F64" ? 8 : tensor.dtype == "F8_E4M3" ? 1 : 2;
    std::string shape;
    for (int64_t extent : tensor.shape) {
      bytes *= static_cast<size_t>(extent);
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    json += ",\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" + shape +
            "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(offset + bytes) + "]}";
    offset += bytes;
  }
  return safetensorsRaw(json + "}", offset);
}

std::string llmc::test::tinyConfig(const Tiny &model, const std::string &more) {
  std::map<std::string, std::string> classes = {
      {"llama", "LlamaForCausalLM"}, {"mistral", "MistralForCausalLM"}, {"qwen2", "Qwen2ForCausalLM"}};
  std::string headDim = model.headDim * model.heads == model.hidden
                            ? ""
                            : "\"head_dim\": " + std::to_string(model.headDim) + ",\n";
  return "{\n\"architectures\": [\"" + classes[model.architecture] +
         "\"],\n\"hidden_size\": " + std::to_string(model.hidden) +
         ",\n\"num_hidden_layers\": " + std::to_string(model.layers) +
         ",\n\"num_attention_heads\": " + std::to_string(model.heads) +
         ",\n\"num_key_value_heads\": " + std::to_string(model.kvHeads) + ",\n" + headDim +
         "\"intermediate_size\": " + std::to_string(model.ffn) +
         ",\n\"vocab_size\": " + std::to_string(Tiny::vocab) + ",\n\"max_position_embeddings\": 128,\n" +
         more + (more.empty() ? "" : ",\n") + "\"tie_word_embeddings\": " + (model.tied ? "true" : "false") +
         ",\n\"bos_token_id\": 0,\n\"eos_token_id\": 1\n}\n";
}

std::string llmc::test::tinyTokenizer() {
  return R"({
"version": "1.0",
"added_tokens": [
  {"id": 0, "content": "<s>", "special": true, "lstrip": false, "rstrip": false, "single_word": false, "normalized": false},
  {"id": 1, "content": "</s>", "special": true},
  {"id": 7, "content": "<|im_end|>", "special": true, "rstrip": true}
],
"normalizer": {"type": "NFC"},
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": false},
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": false},
  {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}]},
"decoder": {"type": "ByteLevel"},
"model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "ignore_merges": true,
  "vocab": {"a": 2, "b": 3, "ab": 4, "Ġ": 5, "Ġa": 6, "1": 8},
  "merges": ["a b", "Ġ a"]}
}
)";
}

std::string llmc::test::tinyFolder(const TempDir &dir, const Tiny &model, const std::string &moreConfig) {
  dir.write("config.json", tinyConfig(model, moreConfig));
  dir.write("model.safetensors", safetensors(tinyTensors(model)));
  dir.write("tokenizer.json", tinyTokenizer());
  return dir.path;
}

void llmc::test::expectError(const std::string &path, const std::vector<std::string> &parts,
                             const LoadOptions &options) {
  try {
    loadModelFacts(path, options);
    ADD_FAILURE() << path << ": expected an error, got none";
  } catch (const Error &error) {
    for (const std::string &part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "expected \"" << part << "\" in: " << error.what();
  }
}
