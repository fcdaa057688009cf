//===- TokenTrie.cpp ------------------------------------------------------===//
#include "runtime/grammar/TokenTrie.h"
#include "runtime/grammar/OutputBytes.h"

#include <algorithm>

namespace llmc {

/// The first bytes, so that most comparisons are of numbers.
static uint64_t beginOf(std::string_view bytes) {
  uint64_t begin = 0;
  for (size_t i = 0; i < 8; ++i)
    begin = begin << 8 | (i < bytes.size() ? uint8_t(bytes[i]) : 0);
  return begin;
}

static void sort(std::vector<TokenTrie::Token> &tokens) {
  std::vector<std::pair<uint64_t, TokenTrie::Token>> keyed;
  keyed.reserve(tokens.size());
  for (const TokenTrie::Token &token : tokens)
    keyed.emplace_back(beginOf(token.bytes), token);
  std::sort(keyed.begin(), keyed.end(), [](const auto &x, const auto &y) {
    const TokenTrie::Token &a = x.second, &b = y.second;
    return x.first != y.first ? x.first < y.first : a.bytes != b.bytes ? a.bytes < b.bytes : a.id < b.id;
  });
  std::transform(keyed.begin(), keyed.end(), tokens.begin(), [](const auto &one) { return one.second; });
}

TokenTrie::TokenTrie(std::vector<Token> tokens) {
  sort(tokens);
  nodes_.reserve(2 * tokens.size() + 2);
  std::vector<uint32_t> path{0}; // nodes from the root to the token before
  nodes_.push_back({0, 0, 0, 0});
  next_.push_back(0);
  auto close = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back())
      nodes_[path.back()].end = uint32_t(nodes_.size());
  };
  std::string_view before;
  for (const Token &token : tokens) {
    const auto [differs, ignored] = std::mismatch(token.bytes.begin(), token.bytes.end(), before.begin(), before.end());
    close(size_t(differs - token.bytes.begin()));
    for (size_t i = path.size() - 1; i < token.bytes.size(); ++i) {
      next_[path.back()] |= sketchOf(uint8_t(token.bytes[i]));
      path.push_back(uint32_t(nodes_.size()));
      next_.push_back(0);
      nodes_.push_back({uint8_t(token.bytes[i]), uint8_t(i + 1), 0, uint32_t(tokens_.size())});
    }
    tokens_.push_back(token.id);
    before = token.bytes;
  }
  close(0);
  nodes_[0].end = uint32_t(nodes_.size());
  nodes_.push_back({0, 0, 0, uint32_t(tokens_.size())});
}

GrammarTokens::GrammarTokens(const Tokenizer &tokenizer, std::span<const int32_t> marks) {
  const auto count = int32_t(tokenizer.size());
  inner_.resize(size_t(count));
  first_.resize(tokenizer.decodesBytes() ? 0 : size_t(count));
  const OutputBytes bytes(tokenizer);
  for (int32_t id = 0; id < count; ++id)
    if (!tokenizer.isSpecial(id) && !tokenizer.isEos(id)) {
      inner_[size_t(id)] = bytes.of(id);
      if (!tokenizer.decodesBytes()) // else the first token is as any
        first_[size_t(id)] = bytes.ofFirst(id);
    }
  for (int32_t id : marks)
    if (id >= 0 && id < count && !tokenizer.isEos(id)) {
      inner_[size_t(id)] = tokenizer.tokenBytes(id);
      if (!first_.empty())
        first_[size_t(id)] = inner_[size_t(id)];
    }
  build();
}

GrammarTokens::GrammarTokens(std::vector<std::string> bytes) : inner_(std::move(bytes)), first_(inner_) { build(); }

void GrammarTokens::build() {
  for (std::vector<std::string> *spellings : {&inner_, &first_})
    for (std::string &s : *spellings)
      if (s.size() > kLongest)
        s.clear();
  differs_ = !first_.empty() && inner_ != first_;
  if (!differs_)
    first_ = {};
  for (int t = 0; t < (differs_ ? 4 : 2); ++t) {
    const std::vector<std::string> &spellings = t >= 2 ? first_ : inner_;
    std::vector<TokenTrie::Token> tokens;
    for (size_t id = 0; id < spellings.size(); ++id)
      if (const size_t length = spellings[id].size(); length && (length > kShort) == (t % 2 == Long))
        tokens.push_back({spellings[id], int32_t(id)});
    tries_[t] = TokenTrie(std::move(tokens));
  }
}

std::string_view GrammarTokens::bytes(int32_t id, bool first) const {
  if (id < 0 || size_t(id) >= inner_.size())
    return {};
  return first && differs_ ? first_[size_t(id)] : inner_[size_t(id)];
}

} // namespace llmc
