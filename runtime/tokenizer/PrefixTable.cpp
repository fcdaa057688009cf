#include "runtime/tokenizer/PrefixTable.h"

#include <algorithm>
#include <bit>

using namespace llmc;

uint64_t PrefixTable::hashOf(std::string_view text) {
  uint64_t hash = kStart;
  while (!text.empty()) {
    utf8::Decoded d = utf8::decode(text);
    hash = grow(hash, d.codePoint);
    text.remove_prefix(d.length);
  }
  return hash;
}

PrefixTable::PrefixTable(const std::vector<std::pair<std::string_view, int32_t>> &entries) : texts(entries) {
  if (texts.empty())
    return;
  slots.resize(std::bit_ceil(std::max<size_t>(16, texts.size() * 2)));
  slotMask = slots.size() - 1;
  bits.resize(std::bit_ceil(std::max<size_t>(16, texts.size() / 4)));
  bitMask = bits.size() * 64 - 1;
  for (size_t e = 0; e < texts.size(); ++e) {
    std::string_view text = texts[e].first;
    uint64_t hash = kStart;
    size_t characters = 0;
    for (size_t i = 0; i < text.size();) {
      if (i) { // a proper prefix
        size_t bit = hash >> 20 & bitMask;
        bits[bit >> 6] |= uint64_t(1) << (bit & 63);
      }
      utf8::Decoded d = utf8::decode(text.substr(i));
      hash = grow(hash, d.codePoint);
      i += d.length;
      ++characters;
    }
    longestCharacters = std::max(longestCharacters, characters);
    size_t i = hash & slotMask;
    while (slots[i].entry >= 0 && texts[static_cast<size_t>(slots[i].entry)].first != text)
      i = (i + 1) & slotMask;
    slots[i] = {static_cast<uint32_t>(hash >> 32), static_cast<int32_t>(e)};
  }
}
