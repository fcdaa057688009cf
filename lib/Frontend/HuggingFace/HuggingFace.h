//===- HuggingFace.h - reading a Hugging Face model folder ------*- C++ -*-===//
//
// A folder as `save_pretrained` and the hub write it: config.json,
// generation_config.json, model.safetensors or shards with an index,
// tokenizer.json, tokenizer_config.json, chat_template.jinja.
//
// The pieces below take parsed text, so that tests and fuzzers reach them without
// files.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_FRONTEND_HUGGINGFACE_HUGGINGFACE_H
#define LLMC_LIB_FRONTEND_HUGGINGFACE_HUGGINGFACE_H

#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/File.h"
#include "llmc/Support/Json.h"

#include <map>
#include <set>

namespace llmc::huggingface {

/// config.json (Config.cpp): architecture, geometry, rope, flags, special ids.
void readConfig(const JsonView &config, ModelFacts &facts);
/// What single families have beside Llama (FamilyConfig.cpp): windows, norms, caps, sinks, multipliers. Needs the geometry.
void readFamilyFacts(const JsonView &config, ModelFacts &facts);
/// eos ids: a number or a list; nothing when the key is absent.
std::vector<int32_t> readIds(const JsonView &config, std::string_view key);

/// rope_parameters (new), rope_scaling and rope_theta (old) (Rope.cpp). Needs headDim.
void readRope(const JsonView &config, ModelFacts &facts);

/// quantization_config (Quantization.cpp): nothing, or e4m3 weights with a scale per tensor or row.
void readQuantization(const JsonView &config, ModelFacts &facts);
/// Gives E4M3 tensors their scales, which are no tensors of the model any more.
void attachScales(ModelFacts &facts);

/// Header of one safetensors file (Safetensors.cpp). Names are the file's; spans are
/// checked against the file. Types outside DType are kept in `otherTypes` by name.
struct SafetensorsHeader {
  std::vector<TensorFact> tensors;
  std::map<std::string, std::string> otherTypes; // name -> "I64", not in `tensors`
};
SafetensorsHeader readSafetensors(const InputFile &file);

/// model.safetensors.index.json: tensor -> shard, shard names checked (Shards.cpp).
std::map<std::string, std::string> readIndex(const JsonView &index);
/// All tensors of the folder under their canonical names, files appended to `facts.files`.
void readTensors(const std::string &folder, ModelFacts &facts);

/// True when the folder has neither model.safetensors nor an index of shards.
bool hasNoWeights(const std::string &folder);
/// The tensors of a folder without weights (Synthetic.cpp): one after the other in a file that does not exist, in
/// place of which `facts.files` has config.json. Throws Error naming a matrix whose rows do not fit the storage.
void makeTensors(const std::string &configPath, DType storage, ModelFacts &facts);

/// File name <-> canonical name (Names.cpp). Unknown tensors of a layer become
/// "blk.N.<rest>"; other unknown names stay. `postNorms` as in ModelFacts: layer norms are called otherwise there.
std::string canonicalName(const std::string &name, bool postNorms);
std::string fileName(const std::string &canonical, bool postNorms);

/// tokenizer.json (TokenizerJson.cpp).
TokenizerData readTokenizer(const JsonView &json, int64_t vocab, std::vector<std::string> &warnings);
/// tokenizer_config.json: special tokens, added tokens, chat template (TokenizerConfig.cpp).
void readTokenizerConfig(const JsonView &json, ModelFacts &facts);
/// Lines "left right" of a merges.txt; throws Error naming `file` and the line (TokenizerFiles.cpp).
std::vector<std::pair<std::string, std::string>> readMergesText(std::string_view text, const std::string &file);
/// The folder's tokenizer.json, else tokenizer.model, else vocab.json and merges.txt; `config`
/// is tokenizer_config.json, which is applied by readTokenizerConfig, not here.
TokenizerData readTokenizerOf(const std::string &folder, int64_t vocab, const std::optional<JsonView> &config,
                              std::vector<std::string> &warnings);
/// A tokenizer without its model: a tokenizer.json, a tokenizer.model, or a folder as above.
TokenizerData loadTokenizer(const std::string &path, std::vector<std::string> &warnings);
/// At least `count` tokens, the new ones without text.
void growTokens(TokenizerData &data, size_t count);

/// The whole folder, checked (Folder.cpp).
ModelFacts loadFolder(const std::string &path, const LoadOptions &options = {});

} // namespace llmc::huggingface

#endif // LLMC_LIB_FRONTEND_HUGGINGFACE_HUGGINGFACE_H
