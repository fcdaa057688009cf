//===- Text.cpp -----------------------------------------------------------===//
#include "llmc/Support/Text.h"

#include <cstdint>

using namespace llmc;

/// Length of the well-formed UTF-8 character at the start of `text`, 0 if there is none.
static size_t utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80)
    return 1;
  size_t length = lead >= 0xf0 && lead <= 0xf4  ? 4
                  : lead >= 0xe0 && lead < 0xf0 ? 3
                  : lead >= 0xc2 && lead < 0xe0 ? 2
                                                : 0;
  if (length == 0 || text.size() < length)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  bool beyond = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

bool llmc::isValidUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8Length(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

/// Appends `text` made safe; false if `limit` cut it.
static bool appendSafe(std::string &out, std::string_view text, size_t limit, bool inQuotes) {
  static const char digits[] = "0123456789abcdef";
  auto appendHex = [&](uint8_t byte) { out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]}; };
  size_t used = 0;
  while (!text.empty()) {
    size_t length = utf8Length(text), bytes = length ? length : 1;
    uint8_t lead = static_cast<uint8_t>(text[0]);
    if (used + bytes > limit)
      return false;
    // U+0080 to U+009F are control characters too.
    bool control = lead < 0x20 || lead == 0x7f || (lead == 0xc2 && length == 2 && static_cast<uint8_t>(text[1]) < 0xa0);
    if (length == 0 || control) {
      for (size_t i = 0; i < bytes; ++i)
        appendHex(static_cast<uint8_t>(text[i]));
    } else {
      if (inQuotes && (lead == '"' || lead == '\\'))
        out += '\\';
      out += text.substr(0, length);
    }
    used += bytes;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string llmc::quote(std::string_view text, size_t limit) {
  std::string out = "\"";
  return appendSafe(out, text, limit, true) ? out + "\"" : out + "\"...";
}

std::string llmc::printable(std::string_view text, size_t limit) {
  std::string out;
  return appendSafe(out, text, limit, false) ? out : out + "...";
}

std::string llmc::join(const std::vector<std::string> &parts, std::string_view separator) {
  std::string out;
  for (const std::string &part : parts) {
    if (&part != &parts.front())
      out += separator;
    out += part;
  }
  return out;
}
