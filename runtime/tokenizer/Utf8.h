//===- Utf8.h - decoding and encoding single characters ---------*- C++ -*-===//
//
// Invalid input follows the WHATWG / Unicode "maximal subpart" practice, which
// Python's errors="replace" and Rust's from_utf8_lossy share: each maximal
// prefix of a well-formed sequence counts as one U+FFFD.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_UTF8_H
#define LLMC_RUNTIME_TOKENIZER_UTF8_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace llmc::utf8 {

inline constexpr uint32_t kReplacement = 0xFFFD;

enum class Status : uint8_t { Ok, Invalid, Incomplete };

struct Decoded {
  uint32_t codePoint; // kReplacement unless Ok
  uint32_t length;    // bytes used, at least 1
  Status status;      // Incomplete: text ends inside a so far well-formed character
};

/// Decodes the character at the start of `text`, which must not be empty.
inline Decoded decode(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80)
    return {lead, 1, Status::Ok};
  unsigned need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4)
    return {kReplacement, 1, Status::Invalid};
  // Unicode 15, table 3-7: only the second byte has a narrower range.
  unsigned low = 0x80, high = 0xBF;
  switch (lead) {
  case 0xE0: low = 0xA0; break;
  case 0xED: high = 0x9F; break;
  case 0xF0: low = 0x90; break;
  case 0xF4: high = 0x8F; break;
  default: break;
  }
  uint32_t codePoint = lead & (0x3Fu >> need);
  for (unsigned i = 1; i <= need; ++i) {
    if (i >= text.size())
      return {kReplacement, i, Status::Incomplete};
    if (byte(i) < low || byte(i) > high)
      return {kReplacement, i, Status::Invalid};
    codePoint = codePoint << 6 | (byte(i) & 0x3F);
    low = 0x80, high = 0xBF;
  }
  return {codePoint, need + 1, Status::Ok};
}

inline void append(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

inline bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Byte offset of the first malformed sequence; text.size() if there is none.
inline size_t firstInvalid(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t word;
    if (i + 8 <= text.size() && (std::memcpy(&word, text.data() + i, 8), !(word & 0x8080808080808080ull))) {
      i += 8;
      continue;
    }
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    Decoded d = decode(text.substr(i));
    if (d.status != Status::Ok)
      return i;
    i += d.length;
  }
  return i;
}

/// `text` with every malformed sequence replaced by U+FFFD.
inline std::string sanitize(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  while (!text.empty()) {
    size_t good = firstInvalid(text);
    out.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty())
      break;
    text.remove_prefix(decode(text).length);
    append(out, kReplacement);
  }
  return out;
}

} // namespace llmc::utf8

#endif // LLMC_RUNTIME_TOKENIZER_UTF8_H
