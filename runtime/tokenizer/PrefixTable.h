//===- PrefixTable.h - all dictionary entries that start a text -*- C++ -*-===//
//
// A trie without nodes: a hash that grows character by character finds entries,
// and one bit for the hash of every proper prefix of an entry says whether to go
// on. Building it is one pass over the entries. A wrong bit only costs a step;
// entries are compared. Looking at a position takes at most as many steps as the
// longest entry has characters.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_PREFIXTABLE_H
#define LLMC_RUNTIME_TOKENIZER_PREFIXTABLE_H

#include "runtime/tokenizer/Utf8.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace llmc {

class PrefixTable {
public:
  struct Match {
    int32_t id = -1;
    size_t length = 0; // bytes
  };

  PrefixTable() = default;
  /// The texts must outlive the table; of equal ones the last counts, as in the reference.
  explicit PrefixTable(const std::vector<std::pair<std::string_view, int32_t>> &entries);

  bool empty() const { return slots.empty(); }

  /// Calls found(id, length) for each entry that `text` starts with, the shortest first.
  template <typename Found> void prefixes(std::string_view text, Found &&found) const {
    prefixes(text, kStart, {}, found);
  }
  /// The same for entries that are `before` and then a start of `text`, given the hash of
  /// `before` by hashOf; lengths do not count it.
  template <typename Found>
  void prefixes(std::string_view text, uint64_t hash, std::string_view before, Found &&found) const {
    size_t i = 0, characters = 0;
    while (i < text.size() && !slots.empty()) {
      auto lead = static_cast<unsigned char>(text[i]);
      if (lead < 0x80) {
        hash = grow(hash, lead);
        ++i;
      } else {
        utf8::Decoded d = utf8::decode(text.substr(i));
        hash = grow(hash, d.codePoint);
        i += d.length;
      }
      if (int32_t id = find(hash, before, text.substr(0, i)); id >= 0)
        found(id, i);
      if (++characters >= longestCharacters || !goesOn(hash))
        return;
    }
  }
  Match longest(std::string_view text) const {
    Match best;
    prefixes(text, [&](int32_t id, size_t length) { best = {id, length}; });
    return best;
  }

  static uint64_t hashOf(std::string_view text);

private:
  static constexpr uint64_t kStart = 0x243F6A8885A308D3ull;
  static uint64_t grow(uint64_t hash, uint32_t character) {
    uint64_t h = (hash ^ character) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 32;
  }
  bool goesOn(uint64_t hash) const {
    size_t bit = hash >> 20 & bitMask;
    return bits[bit >> 6] >> (bit & 63) & 1;
  }
  /// The entry that is `before` and `text`, whose hash that is.
  int32_t find(uint64_t hash, std::string_view before, std::string_view text) const {
    for (size_t i = hash & slotMask; slots[i].entry >= 0; i = (i + 1) & slotMask)
      if (slots[i].hash == static_cast<uint32_t>(hash >> 32)) {
        const auto &[entry, id] = texts[static_cast<size_t>(slots[i].entry)];
        if (entry.size() == before.size() + text.size() && entry.starts_with(before) && entry.ends_with(text))
          return id;
      }
    return -1;
  }

  uint64_t addPrefixes(std::string_view text);

  struct Slot {
    uint32_t hash = 0;
    int32_t entry = -1;
  };
  std::vector<std::pair<std::string_view, int32_t>> texts;
  std::vector<Slot> slots;
  std::vector<uint64_t> bits;
  size_t slotMask = 0, bitMask = 0, longestCharacters = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_PREFIXTABLE_H
