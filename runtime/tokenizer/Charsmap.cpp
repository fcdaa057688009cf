#include "runtime/tokenizer/Charsmap.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/PrefixTable.h"
#include "runtime/tokenizer/Utf8.h"

#include <utf8proc.h>

#include <cstring>

using namespace llmc;

// A unit of darts-clone: bits 0-7 label, 8 has a leaf, 9 the offset is times 256,
// 10-30 offset; a leaf (bit 31) has its value in bits 0-30.
static bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
static uint32_t valueOf(uint32_t unit) { return unit & 0x7FFFFFFFu; }
static uint32_t labelOf(uint32_t unit) { return unit & 0x800000FFu; }
static uint32_t offsetOf(uint32_t unit) { return unit >> 10 << ((unit & 0x200u) >> 6); }

Charsmap::Charsmap(std::string_view blob) {
  uint32_t size = 0;
  if (blob.size() < 4)
    throw Error("charsmap: expected at least 4 bytes, got " + std::to_string(blob.size()));
  std::memcpy(&size, blob.data(), 4);
  if (size % 4 || size == 0 || size > blob.size() - 4)
    throw Error("charsmap: expected a trie of a multiple of 4 bytes within " + std::to_string(blob.size() - 4) +
                ", got " + std::to_string(size));
  units.resize(size / 4);
  std::memcpy(units.data(), blob.data() + 4, size);
  replacements = blob.substr(4 + size);
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t at = offsetOf(units[0]) ^ b;
    starts[b] = at < units.size() && labelOf(units[at]) == b;
  }
}

std::string_view Charsmap::replacementAt(uint32_t offset) const {
  std::string_view all = replacements;
  if (offset >= all.size())
    return {};
  return all.substr(offset, all.find('\0', offset) - offset);
}

std::optional<Charsmap::Rule> Charsmap::match(std::string_view text, bool longest) const {
  std::optional<Rule> best;
  uint32_t at = offsetOf(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units.size() || labelOf(units[at]) != byte)
      break;
    const uint32_t unit = units[at];
    at ^= offsetOf(unit);
    if (!hasLeaf(unit))
      continue;
    if (at >= units.size())
      break;
    best = Rule{i + 1, replacementAt(valueOf(units[at]))};
    if (!longest)
      break;
  }
  return best;
}

std::string Charsmap::byLongest(std::string_view text, const PrefixTable *whole) const {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    if (whole && !whole->empty())
      if (PrefixTable::Match match = whole->longest(text.substr(i)); match.id >= 0) {
        out.append(text.substr(i, match.length));
        i += match.length;
        continue;
      }
    if (starts[static_cast<unsigned char>(text[i])])
      if (auto rule = match(text.substr(i), true)) {
        out.append(rule->replacement);
        i += rule->length;
        continue;
      }
    size_t length = utf8::decode(text.substr(i)).length;
    out.append(text.substr(i, length));
    i += length;
  }
  return utf8::sanitize(out); // replacements come from a file, too
}

static bool isAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// The end of the grapheme cluster at the start of `text`.
static size_t graphemeLength(std::string_view text) {
  if (text.size() == 1 || (isAscii(text[0]) && isAscii(text[1]) && text[0] != '\r'))
    return 1;
  utf8::Decoded left = utf8::decode(text);
  size_t i = left.length;
  utf8proc_int32_t state = 0;
  while (i < text.size()) {
    utf8::Decoded right = utf8::decode(text.substr(i));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(left.codePoint),
                                         static_cast<utf8proc_int32_t>(right.codePoint), &state))
      break;
    i += right.length;
    left = right;
  }
  return i;
}

std::string Charsmap::byGrapheme(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    std::string_view grapheme = text.substr(i, graphemeLength(text.substr(i)));
    i += grapheme.size();
    if (grapheme.size() < 6)
      if (auto rule = match(grapheme, false)) {
        out.append(rule->replacement);
        continue;
      }
    for (size_t j = 0; j < grapheme.size();) {
      std::string_view character = grapheme.substr(j, utf8::decode(grapheme.substr(j)).length);
      auto rule = match(character, false);
      out.append(rule ? rule->replacement : character);
      j += character.size();
    }
  }
  return utf8::sanitize(out);
}
