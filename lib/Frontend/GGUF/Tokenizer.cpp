//===- Tokenizer.cpp - tokenizer.ggml.* to TokenizerData ------------------===//
//
// GGUF keeps less than tokenizer.json: the pre-tokeniser is a name, the flags of
// added tokens (strip, single word) are gone, and the ids that end a turn are
// partly implied by their spelling. The rules for what is implied are llama.cpp's
// (src/llama-vocab.cpp), which wrote the files.
//
//===----------------------------------------------------------------------===//
#include "GGUF.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <unordered_set>

using namespace llmc;
using namespace llmc::gguf;

namespace {

enum TokenType : int64_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

bool endsTurn(const std::string &spelling) {
  static const std::unordered_set<std::string> known = {
      "<|eot_id|>", "<|im_end|>", "<|end|>",         "<end_of_turn>",      "<|endoftext|>",
      "<|eom_id|>", "<EOT>",      "<|end_of_text|>", "<end_of_utterance>", "</s>"};
  return known.count(spelling) > 0;
}

bool isLlama3(const std::string &pre) { return pre == "llama3" || pre == "llama-v3" || pre == "llama-bpe"; }

class TokenizerReader {
public:
  explicit TokenizerReader(const Metadata &metadata) : metadata(metadata) {}

  TokenizerData run() {
    const std::string *model = metadata.string("tokenizer.ggml.model");
    if (!model)
      metadata.fail("tokenizer.ggml.model", "expected \"gpt2\" (byte-level BPE), got no such key");
    if (*model != "gpt2")
      metadata.fail("tokenizer.ggml.model", "expected \"gpt2\" (byte-level BPE), got " + quote(*model));
    readTokens();
    readMerges();
    readPreTokenizer();
    readAddedTokens();
    readSpecialIds();
    return std::move(out);
  }

private:
  void readTokens() {
    const auto *tokens = metadata.strings("tokenizer.ggml.tokens");
    if (!tokens || tokens->empty())
      metadata.fail("tokenizer.ggml.tokens", "expected an array of strings, got none");
    for (size_t i = 0; i < tokens->size(); ++i)
      if (!isValidUtf8((*tokens)[i]))
        metadata.fail("tokenizer.ggml.tokens",
                      "token " + std::to_string(i) + ": expected UTF-8, got " + quote((*tokens)[i]));
    out.tokens = *tokens;
    metadata.checkArray("tokenizer.ggml.scores", ValueType::F32);
  }

  void readMerges() {
    const auto *merges = metadata.strings("tokenizer.ggml.merges");
    if (!merges)
      metadata.fail("tokenizer.ggml.merges", "expected an array of strings, got no such key");
    out.merges.reserve(merges->size());
    for (size_t i = 0; i < merges->size(); ++i) {
      const std::string &merge = (*merges)[i];
      size_t space = merge.find(' ');
      if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos)
        metadata.fail("tokenizer.ggml.merges", "merge " + std::to_string(i) +
                                                   ": expected two parts with one space between, got " +
                                                   quote(merge));
      out.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
    }
  }

  void readPreTokenizer() {
    const std::string *pre = metadata.string("tokenizer.ggml.pre");
    if (!pre)
      metadata.fail("tokenizer.ggml.pre", "expected the name of a pre-tokenizer, got no such key");
    try {
      out.splitPatterns = splitPatternsForGGUF(*pre);
    } catch (const Error &error) {
      metadata.fail("tokenizer.ggml.pre", error.what());
    }
    out.ignoreMerges = out.addBos = isLlama3(*pre);
    out.nfc = *pre == "qwen2"; // the normaliser of Qwen2's tokenizer.json
    out.addPrefixSpace = metadata.boolean("tokenizer.ggml.add_space_prefix").value_or(false);
    out.addBos = metadata.boolean("tokenizer.ggml.add_bos_token").value_or(out.addBos);
    out.addEos = metadata.boolean("tokenizer.ggml.add_eos_token").value_or(false);
  }

  void readAddedTokens() {
    auto types = metadata.integers32("tokenizer.ggml.token_type");
    if (!types)
      return;
    if (types->size() != out.tokens.size())
      metadata.fail("tokenizer.ggml.token_type", "expected " + std::to_string(out.tokens.size()) +
                                                     " entries (one a token), got " +
                                                     std::to_string(types->size()));
    for (size_t i = 0; i < types->size(); ++i) {
      int64_t type = (*types)[i];
      if (type < 0 || type > Byte) // 0: undefined, in files of old converters
        metadata.fail("tokenizer.ggml.token_type", "token " + std::to_string(i) +
                                                       ": expected a type from 0 to 6, got " +
                                                       std::to_string(type));
      bool special = type == Control || type == Unknown;
      if ((!special && type != UserDefined) || out.tokens[i].empty())
        continue;
      AddedToken token;
      token.id = static_cast<int32_t>(i);
      token.content = out.tokens[i];
      token.special = special;
      out.added.push_back(token);
    }
  }

  int32_t tokenId(const std::string &key) const {
    auto id = metadata.integer(key);
    if (!id || *id == -1 || *id == 0xffffffff) // both mean none
      return -1;
    if (*id < 0 || static_cast<uint64_t>(*id) >= out.tokens.size())
      metadata.fail(key, "expected a token id below " + std::to_string(out.tokens.size()) + ", got " +
                             std::to_string(*id));
    return static_cast<int32_t>(*id);
  }

  void readSpecialIds() {
    out.bosId = tokenId("tokenizer.ggml.bos_token_id");
    out.padId = tokenId("tokenizer.ggml.padding_token_id");
    // tokenizer.ggml.unknown_token_id is not the BPE model's own unknown token (SmolLM2 has <|endoftext|> there): bytes
    // that no token spells are dropped, as the reference does.
    auto add = [&](int32_t id) {
      if (id >= 0 && std::find(out.eosIds.begin(), out.eosIds.end(), id) == out.eosIds.end())
        out.eosIds.push_back(id);
    };
    add(tokenId("tokenizer.ggml.eos_token_id"));
    add(tokenId("tokenizer.ggml.eot_token_id"));
    add(tokenId("tokenizer.ggml.eom_token_id"));
    for (const AddedToken &token : out.added)
      if (endsTurn(token.content))
        add(token.id);
    // Files without a bos token exist whose converter left the flag at its default.
    if (out.bosId < 0 && !metadata.find("tokenizer.ggml.add_bos_token"))
      out.addBos = false;
  }

  const Metadata &metadata;
  TokenizerData out;
};

} // namespace

TokenizerData gguf::readTokenizer(const Metadata &metadata) { return TokenizerReader(metadata).run(); }
