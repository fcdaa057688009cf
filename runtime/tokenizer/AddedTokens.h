//===- AddedTokens.h - tokens cut out before pre-tokenising -----*- C++ -*-===//
//
// The rules of HF tokenizers' AddedVocabulary: leftmost longest match; tokens
// with normalized=false are found in the raw text, the others in the normalised
// text between them; lstrip and rstrip take the white space beside the token
// into it; a single_word token does not match beside a word character.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_ADDEDTOKENS_H
#define LLMC_RUNTIME_TOKENIZER_ADDEDTOKENS_H

#include "runtime/tokenizer/TokenizerData.h"

#include <array>
#include <span>

namespace llmc {

/// A stretch of text, or one token that replaces it.
struct TextSegment {
  int32_t id; // -1: plain text
  std::string_view text;
};

/// Bytes from begin to end of a text.
struct TextRange {
  size_t begin, end;
};

class AddedTokens {
public:
  AddedTokens() = default;
  /// `tokens` are those of one kind, raw or normalised; empty contents are skipped.
  explicit AddedTokens(const std::vector<AddedToken> &tokens);

  /// Cuts `text`. A special token is one only where it lies within one of `special`, in
  /// order and apart; elsewhere it stays text. Time is linear in the text for a given set of tokens.
  std::vector<TextSegment> cut(std::string_view text, std::span<const TextRange> special) const;
  bool empty() const { return tokens.empty(); }
  bool hasSpecial() const { return anySpecial; }

private:
  struct Node {
    int32_t token = -1; // index into tokens
    std::vector<std::pair<unsigned char, uint32_t>> next; // few children
  };
  struct Match {
    int32_t token = -1;
    size_t length = 0;
  };
  void insert(const AddedToken &token);
  Match longestAt(std::string_view text) const;
  /// The first match at or after `from` that counts; `begin` and `end` of the token alone.
  const AddedToken *find(std::string_view text, size_t from, std::span<const TextRange> special, size_t &begin,
                         size_t &end) const;

  std::vector<AddedToken> tokens;
  std::vector<Node> nodes;
  std::array<uint32_t, 256> roots{}; // the node of a first byte; 0: none
  bool anySpecial = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_ADDEDTOKENS_H
