//===- Folder.cpp - a Hugging Face folder to ModelFacts -------------------===//
#include "../FactsChecks.h"
#include "HuggingFace.h"
#include "Links.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <filesystem>

using namespace llmc;
using namespace llmc::huggingface;
namespace fs = std::filesystem;

static bool exists(const std::string &path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

static std::optional<JsonDocument> readOptional(const std::string &path) {
  if (!exists(path))
    return std::nullopt;
  return JsonDocument::readFile(path);
}

/// generation_config.json's ids win over config.json's, as in transformers' generate().
static std::vector<int32_t> readEosIds(const JsonView &config,
                                       const std::optional<JsonDocument> &generation) {
  std::vector<int32_t> ids;
  if (generation)
    ids = readIds(generation->root(), "eos_token_id");
  return ids.empty() ? readIds(config, "eos_token_id") : ids;
}

static void readTokenizerFiles(const std::string &folder, const JsonView &config,
                               const std::optional<JsonDocument> &generation, ModelFacts &facts) {
  auto tokenizerConfig = readOptional(folder + "/tokenizer_config.json");
  std::optional<JsonView> configView;
  if (tokenizerConfig)
    configView = tokenizerConfig->root();
  facts.tokenizer = readTokenizerOf(folder, facts.vocab, configView, facts.warnings);
  TokenizerData &tokenizer = facts.tokenizer;
  for (int32_t id : readEosIds(config, generation))
    if (std::find(tokenizer.eosIds.begin(), tokenizer.eosIds.end(), id) == tokenizer.eosIds.end())
      tokenizer.eosIds.push_back(id);

  // Newer folders keep the template in a file of its own.
  if (std::string source = folder + "/chat_template.jinja"; exists(source)) {
    facts.chatTemplate = readTextFile(source);
    if (facts.chatTemplate.starts_with("\xef\xbb\xbf"))
      facts.chatTemplate.erase(0, 3);
    if (!isValidUtf8(facts.chatTemplate))
      throw Error(source + ": expected UTF-8 text, got other bytes");
  }
  if (configView)
    readTokenizerConfig(*configView, facts);

  auto firstId = [&](const char *key) {
    std::vector<int32_t> ids = readIds(config, key);
    return ids.empty() ? -1 : ids.front();
  };
  if (tokenizer.bosId < 0)
    tokenizer.bosId = firstId("bos_token_id");
  if (tokenizer.padId < 0)
    tokenizer.padId = firstId("pad_token_id");
  // Ids of the configuration may name unused rows of the embedding.
  int64_t last = std::max(tokenizer.bosId, tokenizer.padId);
  for (int32_t id : tokenizer.eosIds)
    last = std::max<int64_t>(last, id);
  if (last < facts.vocab && last >= static_cast<int64_t>(tokenizer.tokens.size()))
    growTokens(tokenizer, static_cast<size_t>(last) + 1);
  frontend::checkTokenizer(tokenizer, facts.vocab, folder);
}

ModelFacts huggingface::loadFolder(const std::string &given, const LoadOptions &options) {
  std::string folder = given;
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  std::string configPath = folder + "/config.json";
  if (!exists(configPath))
    throw Error(folder + ": expected a model folder with config.json, got a folder without it");
  checkSideFileLinks(folder);
  JsonDocument config = JsonDocument::readFile(configPath);
  ModelFacts facts;
  readConfig(config.root(), facts);
  if (facts.name.empty())
    facts.name = fs::path(folder).filename().string();
  facts.synthetic = options.weightsOptional && hasNoWeights(folder);
  if (facts.synthetic)
    makeTensors(configPath, facts.quantization.empty() ? options.storage : DType::E4M3, facts);
  else
    readTensors(folder, facts);

  // A tied head's own copy of the weight is not what transformers uses.
  if (facts.tiedHead)
    for (TensorFact &tensor : facts.tensors)
      if (tensor.name == "output.weight")
        tensor.name = tensor.sourceName;
  frontend::checkFacts(facts, {configPath, facts.files.size() == 1 ? facts.files.front() : folder,
                             [&](const std::string &name) { return fileName(name, facts.postNorms); }});
  auto generation = readOptional(folder + "/generation_config.json");
  if (facts.synthetic && !exists(folder + "/tokenizer.json"))
    return facts;
  readTokenizerFiles(folder, config.root(), generation, facts);
  return facts;
}
