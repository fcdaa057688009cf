#include "runtime/tokenizer/Normalizer.h"

#include "runtime/tokenizer/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

using namespace llmc;

/// Canonical ordering: each run of marks sorted by combining class, stably.
/// utf8proc_decompose does it by adjacent swaps, which is quadratic in the run.
static void orderMarks(std::vector<utf8proc_int32_t> &chars) {
  auto combining = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  std::vector<uint64_t> keys; // class, position in the run, character
  for (size_t i = 0; i < chars.size();) {
    keys.clear();
    size_t end = i;
    for (; end < chars.size() && combining(chars[end]) != 0; ++end)
      keys.push_back(static_cast<uint64_t>(combining(chars[end])) << 53 | static_cast<uint64_t>(end - i) << 21 |
                     static_cast<uint32_t>(chars[end]));
    std::sort(keys.begin(), keys.end());
    for (uint64_t key : keys)
      chars[i++] = static_cast<utf8proc_int32_t>(key & 0x1FFFFF);
    i = end + 1;
  }
}

std::string llmc::normalizeNFC(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; }))
    return std::string(text);
  std::vector<utf8proc_int32_t> chars;
  chars.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    utf8::Decoded d = utf8::decode(rest);
    rest.remove_prefix(d.length);
    utf8proc_int32_t parts[32]; // the longest canonical decomposition has 4
    int lastBoundary = 0;
    auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(d.codePoint), parts, 32,
                                     static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE),
                                     &lastBoundary);
    if (n <= 0 || n > 32)
      chars.push_back(static_cast<utf8proc_int32_t>(d.codePoint));
    else
      chars.insert(chars.end(), parts, parts + n);
  }
  orderMarks(chars);
  auto n = utf8proc_normalize_utf32(chars.data(), static_cast<utf8proc_ssize_t>(chars.size()),
                                    static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    utf8::append(out, static_cast<uint32_t>(chars[i]));
  return out;
}

bool llmc::isUnicodeSpace(uint32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= '\t' && c <= '\r');
  if (c == 0x85)
    return true;
  auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool llmc::isUnicodeWord(uint32_t c) {
  if (c == 0x200C || c == 0x200D)
    return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    return false;
  }
}
