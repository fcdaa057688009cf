#include "runtime/tokenizer/FastSplit.h"

#include "runtime/tokenizer/Characters.h"
#include "runtime/tokenizer/Utf8.h"

#include <array>

using namespace llmc;

const char *const llmc::kGPT2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
static constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
static constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

FastPattern llmc::recognisePattern(std::string_view pattern) {
  if (pattern == kGPT2Pattern)
    return FastPattern::GPT2;
  if (pattern == kLlama3Pattern)
    return FastPattern::Llama3;
  return pattern == kQwen2Pattern ? FastPattern::Qwen2 : FastPattern::None;
}

namespace {
enum Class : uint8_t { Letter, Number, Space, Other };

constexpr std::array<Class, 128> makeAscii() {
  std::array<Class, 128> table{};
  for (int c = 0; c < 128; ++c)
    table[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? Letter
               : c >= '0' && c <= '9'                           ? Number
               : c == ' ' || (c >= '\t' && c <= '\r')           ? Space
                                                                : Other;
  return table;
}
constexpr std::array<Class, 128> kAscii = makeAscii();

struct Character {
  Class kind;
  uint32_t length; // 0: the end of the text
};

class Scanner {
public:
  Scanner(std::string_view text) : text(text) {}

  Character at(size_t i) const {
    if (i >= text.size())
      return {Other, 0};
    auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80)
      return {kAscii[lead], 1};
    utf8::Decoded d = utf8::decode(text.substr(i));
    uint8_t classes = classesOf(d.codePoint);
    return {classes & kLetter ? Letter : classes & kNumber ? Number : classes & kSpace ? Space : Other, d.length};
  }
  bool is(size_t i, char c) const { return i < text.size() && text[i] == c; }
  bool newline(size_t i) const { return is(i, '\n') || is(i, '\r'); }

  /// The end of the run of `kind` that starts at i.
  size_t run(Class kind, size_t i) const {
    while (i < text.size()) {
      auto lead = static_cast<unsigned char>(text[i]);
      if (lead < 0x80) {
        if (kAscii[lead] != kind)
          return i;
        ++i;
        continue;
      }
      Character c = at(i);
      if (c.kind != kind)
        return i;
      i += c.length;
    }
    return i;
  }

  /// The end of a white space run at i by \s+(?!\S)|\s+: all but the last character, unless it
  /// is the only one or ends the text.
  size_t spaces(size_t i) const {
    size_t end = i, last = i;
    while (end < text.size()) {
      Character c = at(end);
      if (c.kind != Space)
        break;
      last = end;
      end += c.length;
    }
    return end == text.size() || last == i ? end : last;
  }

  /// 's|'t|'re|'ve|'m|'ll|'d behind the apostrophe at i; 0: none of them.
  size_t contraction(size_t i, bool anyCase) const {
    auto letter = [&](size_t j) {
      if (j >= text.size())
        return '\0';
      char c = text[j];
      return anyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    switch (letter(i + 1)) {
    case 's':
    case 't':
    case 'm':
    case 'd': return i + 2;
    case 'r':
    case 'v': return letter(i + 2) == 'e' ? i + 3 : 0;
    case 'l': return letter(i + 2) == 'l' ? i + 3 : 0;
    case '\xC5': return anyCase && is(i + 2, '\xBF') ? i + 3 : 0; // U+017F folds to s
    default: return 0;
    }
  }

private:
  std::string_view text;
};
} // namespace

static size_t endOfGPT2(const Scanner &scan, std::string_view text, size_t i) {
  if (text[i] == '\'')
    if (size_t end = scan.contraction(i, false))
      return end;
  Character c = scan.at(i);
  if (c.kind != Space)
    return scan.run(c.kind, i + c.length);
  if (text[i] == ' ')
    if (Character next = scan.at(i + 1); next.length && next.kind != Space)
      return scan.run(next.kind, i + 1 + next.length);
  return scan.spaces(i);
}

/// Newlines belong to the punctuation before them.
static size_t endOfOther(const Scanner &scan, size_t i) {
  i = scan.run(Other, i);
  while (scan.newline(i))
    ++i;
  return i;
}

static size_t endOfLlama3(const Scanner &scan, std::string_view text, size_t i, int digits) {
  if (text[i] == '\'')
    if (size_t end = scan.contraction(i, true))
      return end;
  Character c = scan.at(i);
  if (c.kind == Letter)
    return scan.run(Letter, i + c.length);
  if (c.kind == Number) {
    size_t end = i + c.length;
    for (Character next; --digits > 0 && (next = scan.at(end)).length && next.kind == Number;)
      end += next.length;
    return end;
  }
  Character next = scan.at(i + c.length);
  if (next.length && next.kind == Letter && !scan.newline(i))
    return scan.run(Letter, i + c.length + next.length);
  if (c.kind == Other)
    return endOfOther(scan, i);
  if (text[i] == ' ' && next.length && next.kind == Other)
    return endOfOther(scan, i + 1);
  // White space: up to its last newline, else as in GPT-2.
  size_t lastNewline = 0;
  for (size_t j = i; (c = scan.at(j)).length && c.kind == Space; j += c.length)
    if (scan.newline(j))
      lastNewline = j + 1;
  return lastNewline ? lastNewline : scan.spaces(i);
}

size_t llmc::endOfPiece(FastPattern pattern, std::string_view text, size_t at) {
  Scanner scan(text);
  switch (pattern) {
  case FastPattern::GPT2: return endOfGPT2(scan, text, at);
  case FastPattern::Llama3: return endOfLlama3(scan, text, at, 3);
  case FastPattern::Qwen2: return endOfLlama3(scan, text, at, 1);
  case FastPattern::None: break;
  }
  return text.size();
}
