//===- Vocabulary.h - token spellings by id and ids by spelling -*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_VOCABULARY_H
#define LLMC_RUNTIME_TOKENIZER_VOCABULARY_H

#include "runtime/tokenizer/TokenizerData.h"

namespace llmc {

/// Bytes that `spelling` stands for in the byte-level alphabet (GPT-2's
/// bytes_to_unicode), appended to `bytes`; false, with nothing appended, when it
/// has a character outside the alphabet.
bool appendAlphabetBytes(std::string_view spelling, std::string &bytes);
/// The inverse.
std::string toAlphabet(std::string_view bytes);

/// The byte b of a token spelled "<0xHH>" (either case); -1: another token.
int byteOfSpelling(std::string_view spelling);

/// Mixes two words well enough for open addressing.
inline uint64_t mixWords(uint64_t a, uint64_t b) {
  auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xD6E8FEB86659FD93ull);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hashBytes(std::string_view bytes);

class Vocabulary {
public:
  Vocabulary() = default;
  /// Spellings become bytes where data.byteLevel(). Throws Error above 4 GiB of them.
  explicit Vocabulary(const TokenizerData &data);

  size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  /// Bytes of a token; of an added token its UTF-8 content; empty out of range.
  std::string_view bytesOf(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) + 1 >= offsets.size())
      return {};
    return std::string_view(arena).substr(offsets[id], offsets[id + 1] - offsets[id]);
  }
  /// The token that is exactly `bytes`; -1: none.
  int32_t idOf(std::string_view bytes) const;
  /// The same for a spelling as the front end gave it; throws nothing, -1: none.
  int32_t idOfSpelling(std::string_view spelling) const;

  /// Tokens that text never gives, however it is spelled: special ones of more than one
  /// character, and unknown, control and byte pieces. Only added-token matching and byte
  /// fallback give these.
  bool hidden(int32_t id) const { return hiddenIds[static_cast<size_t>(id)]; }
  bool isAdded(int32_t id) const { return addedIds[static_cast<size_t>(id)]; }
  bool byteLevel() const { return alphabet; }

private:
  void append(const TokenizerData &data);
  void insert(const std::vector<int32_t> &ids);
  void insert(int32_t id, uint32_t hash);

  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };
  std::string arena;             // bytes of all tokens
  std::vector<uint32_t> offsets; // size() + 1
  std::vector<Slot> slots;       // open addressing, a power of two
  std::vector<bool> hiddenIds, addedIds;
  bool alphabet = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_VOCABULARY_H
