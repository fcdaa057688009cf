//===- Characters.h - classes of characters ---------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_CHARACTERS_H
#define LLMC_RUNTIME_TOKENIZER_CHARACTERS_H

#include <atomic>
#include <cstdint>

namespace llmc {

enum CharacterClass : uint8_t {
  kLetter = 1,        // L
  kNumber = 2,        // N: Nd, Nl, No
  kSpace = 4,         // White_Space, `\s` of the reference's regular expressions
  kPunctuation = 8,   // P and all of ASCII's
  kWord = 16,         // `\w`: Alphabetic, M, Nd, Pc, Join_Control
};

namespace detail {
extern std::atomic<const uint8_t *> characterPages[0x1100];
const uint8_t *makeCharacterPage(uint32_t page);
} // namespace detail

/// The classes of a code point up to U+10FFFF; tables are made as they are needed.
inline uint8_t classesOf(uint32_t c) {
  const uint8_t *page = detail::characterPages[c >> 8].load(std::memory_order_acquire);
  if (!page)
    page = detail::makeCharacterPage(c >> 8);
  return page[c & 0xFF];
}

inline bool isUnicodeSpace(uint32_t c) { return classesOf(c) & kSpace; }
inline bool isUnicodeWord(uint32_t c) { return classesOf(c) & kWord; }

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_CHARACTERS_H
