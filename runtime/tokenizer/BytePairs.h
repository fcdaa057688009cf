//===- BytePairs.h - byte pair encoding by merges ---------------*- C++ -*-===//
//
// Byte pair encoding, Sennrich et al. 2016 (arXiv:1508.07909), over the bytes of
// GPT-2 (Radford et al. 2019) or over characters. Of all neighbouring pairs the
// one with the lowest merge rank is joined, the leftmost first. Short pieces are
// scanned, in long ones a heap finds it, so that a piece of n symbols costs n log n.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_BYTEPAIRS_H
#define LLMC_RUNTIME_TOKENIZER_BYTEPAIRS_H

#include "runtime/tokenizer/TokenModel.h"

#include <optional>
#include <unordered_map>

namespace llmc {

class BytePairs final : public TokenModel {
public:
  /// Throws Error for a merge whose ids are not tokens.
  BytePairs(const TokenizerData &data, const Vocabulary &vocabulary, std::vector<MergeIds> merges);

  /// data.merges by ids; -1 for what the vocabulary lacks.
  static std::vector<MergeIds> resolve(const TokenizerData &data, const Vocabulary &vocabulary);
  /// The same; throws Error naming a merge whose parts or result are not tokens.
  static std::vector<MergeIds> resolveAll(const TokenizerData &data, const Vocabulary &vocabulary);

  void encode(std::string_view piece, std::vector<int32_t> &ids) const override;
  size_t independentPrefix(std::string_view piece) const override;
  int32_t fusedUnknown() const override { return fuseUnk ? unkId : -1; }

private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t rankOf(int32_t left, int32_t right) const; // kNone: they do not merge
  void buildTable();
  void indexCharacters();
  void byteSymbols(std::string_view piece, std::vector<int32_t> &symbols) const;
  void characterSymbols(std::string_view piece, std::vector<int32_t> &symbols) const;
  int32_t characterId(std::string_view character, bool first, bool last) const;
  void mergeShort(int32_t *symbols, size_t count, std::vector<int32_t> &ids) const;
  void mergeLong(const std::vector<int32_t> &symbols, std::vector<int32_t> &ids) const;
  void emit(int32_t id, std::vector<int32_t> &ids) const;

  const Vocabulary &vocabulary;
  std::vector<MergeIds> merges; // by rank
  std::vector<uint32_t> table;  // ranks, open addressing, a power of two
  std::array<int32_t, 256> byteIds{};
  ByteTokens byteTokens;
  std::optional<JoinablePairs> joinable;
  /// Hidden tokens that merges make, to the parts that they are taken apart into again.
  std::unordered_map<int32_t, std::pair<int32_t, int32_t>> partsOfHidden;
  std::string continuingPrefix, endOfWordSuffix;
  int32_t unkId;
  bool fuseUnk, ignoreMerges, byteFallback;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_BYTEPAIRS_H
