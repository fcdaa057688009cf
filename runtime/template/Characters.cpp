#include "runtime/template/Characters.h"

#include <algorithm>
#include <cstdlib>
#include <utf8proc.h>
#include <utility>
#include <vector>

#include "runtime/template/CharacterTables.inc"
#include "runtime/tokenizer/CodePointRanges.h"

using namespace llmc;
using namespace llmc::jinja;

static utf8proc_category_t category(uint32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool jinja::isSpace(uint32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  if (c == 0x85)
    return true;
  auto k = category(c);
  return k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL || k == UTF8PROC_CATEGORY_ZP;
}

bool jinja::isPrintable(uint32_t c) {
  if (c == ' ')
    return true;
  switch (category(c)) {
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_ZS:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return false;
  default:
    return true;
  }
}

bool jinja::isAlpha(uint32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool jinja::isDecimal(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool jinja::isDigit(uint32_t c) { return isDecimal(c) || llmc::isAmong(kOtherDigits, c); }
bool jinja::isNumeric(uint32_t c) {
  auto k = category(c);
  return (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) || llmc::isAmong(kOtherNumerics, c);
}
bool jinja::isAlnum(uint32_t c) { return isAlpha(c) || isNumeric(c); }
bool jinja::isUpper(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || llmc::isAmong(kOtherUppercase, c); }
bool jinja::isLower(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || llmc::isAmong(kOtherLowercase, c);
}
bool jinja::isTitle(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool jinja::isWord(uint32_t c) { return c == '_' || isAlnum(c); }

unsigned jinja::digitValue(uint32_t c) {
  if (c < 0x80)
    return c - '0';
  if (c >= 0x1D7CE && c <= 0x1D7FF) // five sets in a row
    return (c - 0x1D7CE) % 10;
  uint32_t first = c;
  while (isDecimal(first - 1))
    --first;
  return (c - first) % 10;
}

template <size_t n> static bool appendMapped(std::string &out, const std::pair<uint32_t, const char *> (&table)[n], uint32_t c) {
  auto found = std::lower_bound(std::begin(table), std::end(table), c, [](const auto &entry, uint32_t x) { return entry.first < x; });
  if (found == std::end(table) || found->first != c)
    return false;
  out += found->second;
  return true;
}

static void appendUpper(std::string &out, uint32_t c) {
  if (c < 0x80)
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  else if (!appendMapped(out, kUpper, c))
    utf8::append(out, static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

static void appendTitle(std::string &out, uint32_t c) {
  if (!appendMapped(out, kTitle, c))
    utf8::append(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

/// Characters that the rule of the final sigma looks through.
static bool isCaseIgnorable(uint32_t c) {
  switch (category(c)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK:
    return true;
  default:
    return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x387 || c == 0x55F || c == 0x5F4 || c == 0x2018 ||
           c == 0x2019 || c == 0x2024 || c == 0x2027 || c == 0xFE13 || c == 0xFE52 || c == 0xFE55 || c == 0xFF07 ||
           c == 0xFF0E || c == 0xFF1A;
  }
}

namespace {
/// A text with the characters around each.
class Lowering {
public:
  explicit Lowering(std::string_view text) {
    forEachCharacter(text, [&](uint32_t c, std::string_view) { all.push_back(c); });
  }

  size_t size() const { return all.size(); }
  uint32_t operator[](size_t i) const { return all[i]; }

  void append(std::string &out, size_t i) const {
    const uint32_t c = all[i];
    if (c < 0x80)
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else if (c == 0x130) // the one that becomes two characters
      out += "i\u0307";
    else if (c == 0x3A3)
      out += isFinalSigma(i) ? "\u03c2" : "\u03c3";
    else
      utf8::append(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }

private:
  bool isFinalSigma(size_t i) const {
    size_t j = i;
    while (j > 0 && isCaseIgnorable(all[j - 1]))
      --j;
    if (j == 0 || !isCased(all[j - 1]))
      return false;
    for (j = i + 1; j < all.size() && isCaseIgnorable(all[j]);)
      ++j;
    return j == all.size() || !isCased(all[j]);
  }

  std::vector<uint32_t> all;
};
} // namespace

std::string jinja::upper(std::string_view text) {
  std::string out;
  forEachCharacter(text, [&](uint32_t c, std::string_view) { appendUpper(out, c); });
  return out;
}

std::string jinja::lower(std::string_view text) {
  std::string out;
  const Lowering all(text);
  for (size_t i = 0; i < all.size(); ++i)
    all.append(out, i);
  return out;
}

std::string jinja::capitalize(std::string_view text) {
  std::string out;
  const Lowering all(text);
  for (size_t i = 0; i < all.size(); ++i)
    if (i)
      all.append(out, i);
    else
      appendTitle(out, all[i]);
  return out;
}

std::string jinja::titleCase(std::string_view text) {
  std::string out;
  const Lowering all(text);
  bool inWord = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (inWord)
      all.append(out, i);
    else
      appendTitle(out, all[i]);
    inWord = isCased(all[i]);
  }
  return out;
}

std::string jinja::swapCase(std::string_view text) {
  std::string out;
  const Lowering all(text);
  for (size_t i = 0; i < all.size(); ++i)
    if (isUpper(all[i]))
      all.append(out, i);
    else if (isLower(all[i]))
      appendUpper(out, all[i]);
    else
      utf8::append(out, all[i]);
  return out;
}

std::string jinja::caseFold(std::string_view text) {
  std::string out;
  forEachCharacter(text, [&](uint32_t c, std::string_view) {
    utf8proc_int32_t folded[8];
    int lastClass = 0;
    auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &lastClass);
    for (utf8proc_ssize_t i = 0; i < n && i < 8; ++i)
      utf8::append(out, static_cast<uint32_t>(folded[i]));
  });
  return out;
}

size_t jinja::countCharacters(std::string_view text) {
  size_t n = 0;
  for (char c : text)
    n += !utf8::isContinuation(c);
  return n;
}

size_t jinja::offsetOf(std::string_view text, size_t character) {
  size_t i = 0;
  for (; i < text.size(); ++i)
    if (!utf8::isContinuation(text[i]) && character-- == 0)
      break;
  return i;
}

std::string_view jinja::strip(std::string_view text, const std::string *characters, bool left, bool right) {
  auto removable = [&](std::string_view one) {
    return characters ? characters->find(one) != std::string::npos : isSpace(utf8::decode(one).codePoint);
  };
  while (left && !text.empty()) {
    size_t n = utf8::decode(text).length;
    if (!removable(text.substr(0, n)))
      break;
    text.remove_prefix(n);
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && utf8::isContinuation(text[start]))
      --start;
    if (!removable(text.substr(start)))
      break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}
