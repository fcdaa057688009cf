//===- TokenizerFiles.cpp - which of a folder's files is the tokenizer ----===//
//
// tokenizer.json says all; else SentencePiece's tokenizer.model; else GPT-2's
// vocab.json and merges.txt, where the pre-tokenizer is implied by the class that
// tokenizer_config.json names.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "SentencePieceModel.h"
#include "TokenizerSteps.h"
#include "llmc/Support/Text.h"

#include <filesystem>

using namespace llmc;
using namespace llmc::huggingface;

static bool exists(const std::string &path) {
  std::error_code failure;
  return std::filesystem::exists(path, failure);
}

/// A tokenizer of more bytes than this is refused before it is read.
static constexpr uint64_t maxFileBytes = uint64_t(256) << 20;

static SentencePieceModel readModelFile(const std::string &path) {
  InputFile file = InputFile::open(path);
  if (file.size() > maxFileBytes)
    throw Error(path + ": expected at most " + std::to_string(maxFileBytes) + " bytes, got " +
                std::to_string(file.size()));
  std::string bytes(file.size(), '\0');
  file.read(0, bytes.data(), bytes.size());
  return SentencePieceModel::parse(bytes, path);
}

std::vector<std::pair<std::string, std::string>> huggingface::readMergesText(std::string_view text,
                                                                             const std::string &file) {
  std::vector<std::pair<std::string, std::string>> merges;
  if (text.starts_with("\xef\xbb\xbf"))
    text.remove_prefix(3);
  for (size_t line = 1; !text.empty(); ++line) {
    size_t end = text.find('\n');
    std::string_view merge = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (merge.ends_with('\r')) // no part has one: it is not in the byte-level alphabet
      merge.remove_suffix(1);
    if (merge.empty() || (line == 1 && merge.starts_with("#version")))
      continue;
    size_t space = merge.find(' ');
    if (space == merge.npos || space == 0 || space + 1 == merge.size() || merge.find(' ', space + 1) != merge.npos)
      throw Error(file + ": line " + std::to_string(line) + ": expected two parts with one space between, got " +
                  quote(merge));
    merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return merges;
}

/// What the classes of `transformers` with these two files do before BPE; "Fast" is taken off.
static std::string preTokenizerOf(const std::optional<JsonView> &config) {
  auto view = config ? config->find("tokenizer_class") : std::nullopt;
  std::string name = view ? view->string() : "GPT2Tokenizer";
  if (name.ends_with("Fast"))
    name.resize(name.size() - 4);
  if (name == "Qwen2Tokenizer")
    return "qwen2";
  if (name == "GPT2Tokenizer" || name == "CodeGenTokenizer" || name == "GPTNeoXTokenizer")
    return "gpt-2";
  throw view->expected("GPT2Tokenizer, CodeGenTokenizer, GPTNeoXTokenizer or Qwen2Tokenizer, since there is no "
                       "tokenizer.json");
}

static TokenizerData readVocabularyAndMerges(const std::string &folder, int64_t vocab,
                                             const std::optional<JsonView> &config) {
  TokenizerData out;
  applyPreTokenizerForGGUF(preTokenizerOf(config), out);
  out.addPrefixSpace = config && flagOf(*config, "add_prefix_space", false);
  JsonDocument document = JsonDocument::readFile(folder + "/vocab.json");
  JsonView root = document.root();
  for (const JsonMember &member : root.object()) {
    JsonView view = root.at(member);
    int64_t id = view.integer();
    if (id < 0 || id >= vocab)
      throw view.expected("a token id below the vocabulary size " + std::to_string(vocab));
    if (static_cast<size_t>(id) >= out.tokens.size())
      out.tokens.resize(static_cast<size_t>(id) + 1);
    std::string &spelling = out.tokens[static_cast<size_t>(id)];
    if (!spelling.empty())
      throw view.error("expected an id of its own, got that of " + quote(spelling));
    spelling = member.key;
  }
  std::string path = folder + "/merges.txt";
  out.merges = readMergesText(readTextFile(path), path);
  return out;
}

/// added_tokens.json {"spelling": id} of folders older than added_tokens_decoder.
static void readOldAddedTokens(const std::string &path, int64_t vocab, TokenizerData &out) {
  JsonDocument document = JsonDocument::readFile(path);
  JsonView root = document.root();
  for (const JsonMember &member : root.object()) {
    JsonView view = root.at(member);
    int64_t id = view.integer();
    if (id < 0 || id >= vocab || member.key.empty())
      throw view.expected("text with a token id below the vocabulary size " + std::to_string(vocab));
    const auto index = static_cast<size_t>(id);
    growTokens(out, index + 1);
    if (!out.tokens[index].empty() && out.tokens[index] != member.key)
      throw view.error("expected " + quote(out.tokens[index]) + ", the token of that id, got " + quote(member.key));
    out.tokens[index] = member.key;
    out.added.push_back({.id = static_cast<int32_t>(id), .content = member.key});
  }
}

TokenizerData huggingface::readTokenizerOf(const std::string &folder, int64_t vocab,
                                           const std::optional<JsonView> &config,
                                           std::vector<std::string> &warnings) {
  if (std::string path = folder + "/tokenizer.json"; exists(path)) {
    JsonDocument document = JsonDocument::readFile(path);
    return readTokenizer(document.root(), vocab, warnings);
  }
  TokenizerData out;
  if (std::string path = folder + "/tokenizer.model"; exists(path))
    out = readSentencePiece(readModelFile(path), !config || flagOf(*config, "legacy", true), path);
  else if (exists(folder + "/vocab.json") && exists(folder + "/merges.txt"))
    out = readVocabularyAndMerges(folder, vocab, config);
  else
    throw Error(folder + ": expected tokenizer.json, tokenizer.model or vocab.json with merges.txt, got none of them");
  if (std::string path = folder + "/added_tokens.json"; exists(path))
    readOldAddedTokens(path, vocab, out);
  return out;
}

void huggingface::growTokens(TokenizerData &data, size_t count) {
  if (data.tokens.size() >= count)
    return;
  data.tokens.resize(count);
  if (!data.scores.empty()) { // both are by id; text spells none of these
    data.scores.resize(count);
    data.kinds.resize(count, PieceKind::Control);
  }
}

TokenizerData huggingface::loadTokenizer(const std::string &path, std::vector<std::string> &warnings) {
  constexpr int64_t anyVocab = 1 << 22; // no model's tokenizer has more
  if (path.ends_with(".model"))
    return readSentencePiece(readModelFile(path), true, path);
  if (path.ends_with(".json")) {
    JsonDocument document = JsonDocument::readFile(path);
    return readTokenizer(document.root(), anyVocab, warnings);
  }
  std::optional<JsonDocument> config;
  if (std::string side = path + "/tokenizer_config.json"; exists(side))
    config = JsonDocument::readFile(side);
  ModelFacts facts;
  facts.vocab = anyVocab;
  facts.tokenizer =
      readTokenizerOf(path, anyVocab, config ? std::optional(config->root()) : std::nullopt, facts.warnings);
  if (config)
    readTokenizerConfig(config->root(), facts);
  warnings = std::move(facts.warnings);
  return facts.tokenizer;
}
