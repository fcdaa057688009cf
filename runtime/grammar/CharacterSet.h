//===- CharacterSet.h - a set of Unicode characters -------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_GRAMMAR_CHARACTERSET_H
#define LLMC_RUNTIME_GRAMMAR_CHARACTERSET_H

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

/// Code points, surrogates never among them: UTF-8 has none.
class CharacterSet {
public:
  using Range = std::pair<uint32_t, uint32_t>; // first, last

  CharacterSet() = default;
  CharacterSet(std::initializer_list<Range> ranges) : CharacterSet(std::vector<Range>(ranges)) {}
  explicit CharacterSet(std::vector<Range> ranges);
  static CharacterSet all();
  /// Of ASCII text.
  static CharacterSet of(std::string_view characters);

  CharacterSet complement() const;
  CharacterSet operator|(const CharacterSet &other) const;
  CharacterSet operator&(const CharacterSet &other) const;
  bool contains(uint32_t c) const;
  bool empty() const { return ranges_.empty(); }
  /// Ascending, apart from each other.
  const std::vector<Range> &ranges() const { return ranges_; }

private:
  std::vector<Range> ranges_;
};

/// A run of up to four byte ranges: one way in which UTF-8 spells characters of a range.
struct ByteRanges {
  uint8_t length = 0;
  std::pair<uint8_t, uint8_t> bytes[4]; // first, last
};

/// Together they spell the set's characters, each in one way.
std::vector<ByteRanges> utf8Spellings(const CharacterSet &set);

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_CHARACTERSET_H
