//===- TokenTrie.h - a vocabulary by its bytes ------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_GRAMMAR_TOKENTRIE_H
#define LLMC_RUNTIME_GRAMMAR_TOKENTRIE_H

#include "runtime/tokenizer/Tokenizer.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// Some bytes, four to a bit: two sketches without a common bit have no common byte.
using ByteSketch = uint64_t;
inline ByteSketch sketchOf(uint8_t byte) { return ByteSketch(1) << (byte >> 2); }

/// Tokens as a tree of bytes, in preorder: a walk goes on at the next node, or behind the subtree.
class TokenTrie {
public:
  struct Node {
    uint8_t byte, depth;  // depth: bytes up to here
    uint32_t end;         // node behind the subtree
    uint32_t firstToken;  // its tokens end where the next node's begin
  };
  struct Token {
    std::string_view bytes;
    int32_t id;
  };

  TokenTrie() : nodes_{{0, 0, 1, 0}, {}}, next_{0} {}
  /// Bytes of each: 1 to 255.
  explicit TokenTrie(std::vector<Token> tokens);

  /// Node 0 is the root.
  uint32_t size() const { return uint32_t(nodes_.size()) - 1; }
  const Node &node(uint32_t n) const { return nodes_[n]; }
  std::span<const int32_t> tokens(uint32_t n) const {
    return std::span(tokens_).subspan(nodes_[n].firstToken, nodes_[n + 1].firstToken - nodes_[n].firstToken);
  }
  bool isLeaf(uint32_t n) const { return nodes_[n].end == n + 1; }
  /// Of the bytes that the nodes right below have.
  ByteSketch nextBytes(uint32_t n) const { return next_[n]; }

private:
  std::vector<Node> nodes_; // and one behind the last
  std::vector<ByteSketch> next_;
  std::vector<int32_t> tokens_;
};

/// The tokens that an answer may have under a grammar, by the bytes that each adds to its text.
class GrammarTokens {
public:
  static constexpr size_t kShort = 16, kLongest = 255; // bytes

  /// `tokenizer` is not needed later. Special tokens, and those that add nothing, are not in it; but for `marks`, special tokens that are
  /// their spelling in the text.
  explicit GrammarTokens(const Tokenizer &tokenizer, std::span<const int32_t> marks = {});
  /// For tests: spellings by id.
  explicit GrammarTokens(std::vector<std::string> bytes);

  size_t vocabulary() const { return inner_.size(); }
  /// Empty for a token that may not come. `first`: of the answer's first token, which may lose a space.
  std::string_view bytes(int32_t id, bool first) const;
  enum Length { Short, Long };
  /// Of tokens of at most kShort bytes, and of the others.
  const TokenTrie &trie(Length length, bool first) const { return tries_[first && differs_ ? 2 + length : length]; }
  /// The first token has bytes of its own.
  bool firstDiffers() const { return differs_; }

private:
  void build();

  std::vector<std::string> inner_, first_;
  bool differs_ = false;
  TokenTrie tries_[4];
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_TOKENTRIE_H
