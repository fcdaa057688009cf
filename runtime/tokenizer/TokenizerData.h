//===- TokenizerData.h - a tokenizer as plain data --------------*- C++ -*-===//
//
// What the front ends read from tokenizer.json or GGUF metadata, and what the
// package carries (serialised by TokenizerData.cpp). The runtime builds its
// Tokenizer from it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_TOKENIZERDATA_H
#define LLMC_RUNTIME_TOKENIZER_TOKENIZERDATA_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

/// A token that is cut out of the text before the pre-tokeniser runs.
struct AddedToken {
  int32_t id = -1;
  std::string content; // UTF-8
  bool special = false, lstrip = false, rstrip = false, singleWord = false, normalized = false;
};

struct TokenizerData {
  enum class Model : uint32_t { ByteLevelBPE = 1 } model = Model::ByteLevelBPE;
  /// Token spelling by id, in the byte-level alphabet (GPT-2 bytes_to_unicode),
  /// added tokens in plain UTF-8. Unused ids are empty.
  std::vector<std::string> tokens;
  /// Merges in rank order, as spellings.
  std::vector<std::pair<std::string, std::string>> merges;
  /// Pre-tokeniser: split patterns applied in order (PCRE2 syntax; isolated), as
  /// tokenizer.json's Sequence of Split/Digits/ByteLevel says. GGUF gives them by name.
  std::vector<std::string> splitPatterns;
  bool nfc = false;            // normaliser
  bool ignoreMerges = false;   // a piece that is a token is taken whole
  bool addPrefixSpace = false;
  std::vector<AddedToken> added;
  int32_t bosId = -1, padId = -1;
  /// The BPE model's own unknown token (tokenizer.json: model.unk_token), for bytes
  /// that the vocabulary lacks; -1: such bytes are dropped, as HF tokenizers does.
  int32_t unkId = -1;
  bool fuseUnk = false; // a run of unknown bytes gives one unkId (model.fuse_unk)
  bool addBos = false, addEos = false;
  std::vector<int32_t> eosIds; // every id that ends a turn or the text

  std::string serialize() const; // throws Error for a merge of what are no tokens
  static TokenizerData deserialize(std::string_view bytes); // throws Error
};

/// Patterns of a GGUF `tokenizer.ggml.pre` name ("smollm", "llama-bpe", "qwen2", "gpt-2", ...);
/// throws Error listing the known ones.
std::vector<std::string> splitPatternsForGGUF(const std::string &pre);

/// The same, and what else the name implies: sets splitPatterns, ignoreMerges (Llama 3) and nfc (Qwen 2).
void applyPreTokenizerForGGUF(const std::string &pre, TokenizerData &data);

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_TOKENIZERDATA_H
