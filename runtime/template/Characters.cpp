#include "runtime/template/Characters.h"

#include <utf8proc.h>

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
bool jinja::isDigit(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool jinja::isUpper(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool jinja::isLower(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool jinja::isWord(uint32_t c) {
  auto k = category(c);
  return c == '_' || isAlpha(c) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

static void appendUpper(std::string &out, uint32_t c) {
  if (c == 0xDF) // the one common letter whose upper case is two
    out += "SS";
  else
    utf8::append(out, static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}
static void appendLower(std::string &out, uint32_t c) {
  utf8::append(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::string jinja::upper(std::string_view text) {
  std::string out;
  forEachCharacter(text, [&](uint32_t c, std::string_view) { appendUpper(out, c); });
  return out;
}

std::string jinja::lower(std::string_view text) {
  std::string out;
  forEachCharacter(text, [&](uint32_t c, std::string_view) { appendLower(out, c); });
  return out;
}

std::string jinja::capitalize(std::string_view text) {
  std::string out;
  bool first = true;
  forEachCharacter(text, [&](uint32_t c, std::string_view) {
    if (first)
      utf8::append(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
    else
      appendLower(out, c);
    first = false;
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

std::string_view jinja::strip(std::string_view text, std::string_view characters, bool left, bool right) {
  auto removable = [&](std::string_view one) {
    return characters.empty() ? isSpace(utf8::decode(one).codePoint) : characters.find(one) != std::string_view::npos;
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
