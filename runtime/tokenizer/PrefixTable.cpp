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
  std::vector<uint64_t> hashes;
  hashes.reserve(texts.size());
  for (const auto &entry : texts)
    hashes.push_back(addPrefixes(entry.first));
  constexpr size_t kAhead = 16; // the table does not fit in the cache: ask for slots before they are needed
  for (size_t e = 0; e < texts.size(); ++e) {
    if (e + kAhead < texts.size())
      __builtin_prefetch(&slots[hashes[e + kAhead] & slotMask]);
    const auto hash = static_cast<uint32_t>(hashes[e] >> 32);
    size_t i = hashes[e] & slotMask;
    while (slots[i].entry >= 0 &&
           (slots[i].hash != hash || texts[static_cast<size_t>(slots[i].entry)].first != texts[e].first))
      i = (i + 1) & slotMask;
    slots[i] = {hash, static_cast<int32_t>(e)};
  }
}

/// Marks the proper prefixes of an entry; returns its hash.
uint64_t PrefixTable::addPrefixes(std::string_view text) {
  uint64_t hash = kStart;
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++characters) {
    if (i) {
      size_t bit = hash >> 20 & bitMask;
      bits[bit >> 6] |= uint64_t(1) << (bit & 63);
    }
    utf8::Decoded d = utf8::decode(text.substr(i));
    hash = grow(hash, d.codePoint);
    i += d.length;
  }
  longestCharacters = std::max(longestCharacters, characters);
  return hash;
}
