//===- TokenModel.h - a piece of text to ids --------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_TOKENMODEL_H
#define LLMC_RUNTIME_TOKENIZER_TOKENMODEL_H

#include "runtime/tokenizer/Vocabulary.h"

#include <array>
#include <memory>

namespace llmc {

/// A merge by ids, in rank order.
struct MergeIds {
  int32_t left, right, merged; // -1: not in the vocabulary
};

/// The last stage of encoding. Immutable; several threads may call it.
class TokenModel {
public:
  virtual ~TokenModel() = default;

  /// Appends the ids of one pre-tokenised piece: bytes if the vocabulary is byte-level,
  /// else valid UTF-8; not empty. Near linear in the piece, stack use constant.
  virtual void encode(std::string_view piece, std::vector<int32_t> &ids) const = 0;

  /// Where a piece may be cut without changing its ids, but for a run of unknown ids
  /// across the cut, which joins to one if fusesUnknown(): a length above 0 and at most piece.size().
  virtual size_t independentPrefix(std::string_view piece) const { return piece.size(); }
  virtual int32_t fusedUnknown() const { return -1; }
};

/// What data.model says, over `vocabulary`, which must outlive it; `merges` are those of BPE.
/// Throws Error for inconsistent data.
std::unique_ptr<TokenModel> makeTokenModel(const TokenizerData &data, const Vocabulary &vocabulary,
                                           std::vector<MergeIds> merges);

/// Ids of <0xHH> tokens by byte; complete() if all are there.
class ByteTokens {
public:
  ByteTokens() { ids.fill(-1); }
  explicit ByteTokens(const Vocabulary &vocabulary);
  /// Appends a token for each byte of `text`; false, with nothing appended, if one is missing.
  bool append(std::string_view text, std::vector<int32_t> &out) const;

private:
  std::array<int32_t, 256> ids{};
};

/// Which characters stand next to each other in some token: between any other two no
/// token reaches across. Hashed, so it may say yes for a pair that does not.
class JoinablePairs {
public:
  void add(std::string_view token); // UTF-8
  bool contains(uint32_t left, uint32_t right) const {
    size_t bit = index(left, right);
    return bits[bit >> 6] >> (bit & 63) & 1;
  }
  /// The end of the first stretch of `text` after which nothing reaches across.
  size_t stretch(std::string_view text) const;

private:
  static constexpr size_t kBits = 1u << 20;
  static size_t index(uint32_t left, uint32_t right) {
    return static_cast<size_t>(((static_cast<uint64_t>(left) << 21 | right) * 0x9E3779B97F4A7C15ull) >> 44);
  }
  std::vector<uint64_t> bits = std::vector<uint64_t>(kBits / 64);
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_TOKENMODEL_H
