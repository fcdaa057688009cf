//===- BytePairs.h - vocabulary and merges of a byte-level BPE --*- C++ -*-===//
//
// Byte pair encoding, Sennrich et al. 2016 (arXiv:1508.07909), over the bytes of
// GPT-2 (Radford et al. 2019). Of all neighbouring pairs the one with the lowest
// merge rank is joined, the leftmost first; a heap finds it, so that a piece of n
// bytes costs n log n.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_BYTEPAIRS_H
#define LLMC_RUNTIME_TOKENIZER_BYTEPAIRS_H

#include "runtime/tokenizer/TokenizerData.h"

#include <array>

namespace llmc {

/// Bytes that `spelling` stands for in the byte-level alphabet (GPT-2's
/// bytes_to_unicode), appended to `bytes`; false, with nothing appended, when it
/// has a character outside the alphabet.
bool appendAlphabetBytes(std::string_view spelling, std::string &bytes);
/// The inverse.
std::string toAlphabet(std::string_view bytes);

/// A merge by ids, in rank order.
struct MergeIds {
  int32_t left, right, merged; // -1: not in the vocabulary
};

class BytePairs {
public:
  BytePairs() = default;
  /// Throws Error naming a merge whose parts or result are not tokens.
  explicit BytePairs(const TokenizerData &data);
  /// The same with the merges given by ids, data.merges being unused: no spelling
  /// is looked up, which is most of the time otherwise.
  BytePairs(const TokenizerData &data, const std::vector<MergeIds> &merges);

  /// data.merges by ids.
  static std::vector<MergeIds> resolve(const TokenizerData &data);

  /// Appends the ids of one pre-tokenised piece. Bytes that no token spells give
  /// unkId or nothing (TokenizerData::unkId).
  void encode(std::string_view piece, std::vector<int32_t> &ids) const;
  /// Bytes of a token; of an added token its UTF-8 content; empty out of range.
  std::string_view bytesOf(int32_t id) const;
  /// The vocabulary's token that is exactly `bytes`; -1: none.
  int32_t idOfBytes(std::string_view bytes) const;
  size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }

private:
  struct Merge {
    uint64_t pair = ~0ull; // left id, right id
    uint32_t rank = 0;
    int32_t merged = -1;
  };
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };
  void buildVocabulary(const TokenizerData &data);
  std::vector<MergeIds> resolveMerges(const TokenizerData &data) const;
  void buildMerges(const std::vector<MergeIds> &ids);
  void indexBytes();
  void insertToken(int32_t id);
  const Merge *findMerge(int32_t left, int32_t right) const;

  std::string arena;             // bytes of all tokens
  std::vector<uint32_t> offsets; // size() + 1
  std::vector<Slot> slots;       // open addressing, a power of two
  std::vector<Merge> merges;     // open addressing, a power of two
  std::array<int32_t, 256> byteIds{};
  int32_t unkId = -1;
  bool fuseUnk = false, ignoreMerges = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_BYTEPAIRS_H
