//===- CharacterSet.cpp ---------------------------------------------------===//
#include "runtime/grammar/CharacterSet.h"

#include <algorithm>

namespace llmc {

namespace {

constexpr uint32_t kLast = 0x10FFFF, kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

std::vector<CharacterSet::Range> withoutSurrogates(const std::vector<CharacterSet::Range> &ranges) {
  std::vector<CharacterSet::Range> out;
  for (auto [first, last] : ranges) {
    last = std::min(last, kLast);
    if (first < kFirstSurrogate)
      out.push_back({first, std::min(last, kFirstSurrogate - 1)});
    if (last > kLastSurrogate)
      out.push_back({std::max(first, kLastSurrogate + 1), last});
  }
  return out;
}

} // namespace

CharacterSet::CharacterSet(std::vector<Range> ranges) {
  std::erase_if(ranges, [](Range r) { return r.first > r.second; });
  ranges = withoutSurrogates(ranges);
  std::sort(ranges.begin(), ranges.end());
  for (Range range : ranges)
    if (range.first > range.second)
      continue;
    else if (!ranges_.empty() && range.first <= ranges_.back().second + 1)
      ranges_.back().second = std::max(ranges_.back().second, range.second);
    else
      ranges_.push_back(range);
}

CharacterSet CharacterSet::all() { return {{0, kLast}}; }

CharacterSet CharacterSet::of(std::string_view characters) {
  std::vector<Range> ranges;
  for (unsigned char c : characters)
    ranges.push_back({c, c});
  return CharacterSet(std::move(ranges));
}

CharacterSet CharacterSet::complement() const {
  std::vector<Range> out;
  uint32_t next = 0;
  for (auto [first, last] : ranges_) {
    if (first > next)
      out.push_back({next, first - 1});
    next = last + 1;
  }
  if (next <= kLast)
    out.push_back({next, kLast});
  return CharacterSet(std::move(out));
}

CharacterSet CharacterSet::operator|(const CharacterSet &other) const {
  std::vector<Range> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CharacterSet(std::move(both));
}

CharacterSet CharacterSet::operator&(const CharacterSet &other) const {
  return (complement() | other.complement()).complement();
}

bool CharacterSet::contains(uint32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [c](Range r) { return r.first <= c && c <= r.second; });
}

//===----------------------------------------------------------------------===//
// UTF-8
//===----------------------------------------------------------------------===//

namespace {

// Last characters of one, two, three and four bytes.
constexpr uint32_t kLastOf[] = {0x7F, 0x7FF, 0xFFFF, kLast};

void encode(uint32_t c, unsigned length, uint8_t *out) {
  constexpr uint8_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  for (unsigned i = length; i-- > 1; c >>= 6)
    out[i] = uint8_t(0x80 | (c & 0x3F));
  out[0] = uint8_t(kLead[length - 1] | c);
}

// Of characters with as many bytes: cut where the bytes behind one do not run from first to last
// (as in RE2's and Rust's utf8-ranges).
void spell(uint32_t first, uint32_t last, unsigned length, std::vector<ByteRanges> &out) {
  for (unsigned i = 1; i < length; ++i) {
    const uint32_t low = (1u << (6 * i)) - 1; // the last i bytes
    if ((first & ~low) == (last & ~low))
      continue;
    if (first & low) {
      spell(first, first | low, length, out);
      return spell((first | low) + 1, last, length, out);
    }
    if ((last & low) != low) {
      spell(first, (last & ~low) - 1, length, out);
      return spell(last & ~low, last, length, out);
    }
  }
  uint8_t low[4], high[4];
  encode(first, length, low);
  encode(last, length, high);
  ByteRanges &ranges = out.emplace_back();
  ranges.length = uint8_t(length);
  for (unsigned i = 0; i < length; ++i)
    ranges.bytes[i] = {low[i], high[i]};
}

} // namespace

std::vector<ByteRanges> utf8Spellings(const CharacterSet &set) {
  std::vector<ByteRanges> out;
  for (auto [first, last] : set.ranges()) {
    uint32_t from = first;
    for (unsigned length = 1; length <= 4 && from <= last; ++length)
      if (from <= kLastOf[length - 1]) {
        spell(from, std::min(last, kLastOf[length - 1]), length, out);
        from = kLastOf[length - 1] + 1;
      }
  }
  return out;
}

} // namespace llmc
