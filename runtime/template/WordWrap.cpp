#include "runtime/template/WordWrap.h"

#include "runtime/template/Characters.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

using Text = std::u32string;

// The classes of textwrap's regular expression.
static bool isBlank(char32_t c) { return c == ' ' || (c >= 9 && c <= 13); }
static bool isWordCharacter(char32_t c) { return isWord(static_cast<uint32_t>(c)); }
static bool isLetter(char32_t c) {
  return isWordCharacter(c) && !isDecimal(static_cast<uint32_t>(c));
}
static bool isWordOrPunctuation(char32_t c) {
  return isWordCharacter(c) || c == '!' || c == '"' || c == '\'' || c == '&' || c == '.' || c == ',' || c == '?';
}

namespace {
/// Cuts text where a line may end: after white space, hyphens within words, and
/// around long dashes.
class Chunks {
public:
  Chunks(const Text &text, bool hyphens) : text(text), hyphens(hyphens) {}

  std::vector<Text> run() {
    std::vector<Text> out;
    for (size_t at = 0; at < text.size();) {
      size_t end = hyphens ? next(at) : nextSimple(at);
      out.push_back(text.substr(at, end - at));
      at = end;
    }
    return out;
  }

private:
  char32_t at(size_t i) const { return i < text.size() ? text[i] : U'\0'; }
  size_t skip(size_t i, bool blank) const {
    while (i < text.size() && isBlank(text[i]) == blank)
      ++i;
    return i;
  }
  size_t nextSimple(size_t i) const { return skip(i, isBlank(text[i])); }
  size_t dashes(size_t i) const {
    size_t end = i;
    while (at(end) == U'-')
      ++end;
    return end;
  }
  /// A dash of two or more hyphens with a word behind it.
  bool isDash(size_t i) const {
    size_t end = dashes(i);
    return end - i >= 2 && end < text.size() && isWordCharacter(text[end]);
  }

  size_t next(size_t i) const {
    if (isBlank(text[i]))
      return skip(i, true);
    if (i > 0 && isWordOrPunctuation(text[i - 1]) && isDash(i))
      return dashes(i);
    for (size_t end = i + 1;; ++end) {
      if (hyphenated(end))
        return end + 1;
      if (end >= text.size() || isBlank(text[end]))
        return end;
      if (isWordOrPunctuation(text[end - 1]) && isDash(end))
        return end;
    }
  }

  /// A hyphen at `i` after two letters (or a letter, a hyphen and a letter or
  /// mark), with letters behind it.
  bool hyphenated(size_t i) const {
    if (at(i) != U'-')
      return false;
    const bool before = (i >= 2 && isLetter(text[i - 1]) && isLetter(text[i - 2])) ||
                        (i >= 3 && isWordOrPunctuation(text[i - 1]) && text[i - 2] == U'-' && isLetter(text[i - 3]));
    const size_t behind = i + 1;
    return before && behind < text.size() && isLetter(text[behind]) &&
           (isLetter(at(behind + 1)) || (at(behind + 1) == U'-' && isLetter(at(behind + 2))));
  }

  const Text &text;
  const bool hyphens;
};

class Wrapper {
public:
  Wrapper(std::vector<Text> given, const WordWrap &options) : chunks(std::move(given)), options(options) {
    std::reverse(chunks.begin(), chunks.end()); // taken from the end
  }

  std::vector<Text> run() {
    while (!chunks.empty()) {
      if (!lines.empty() && isAllBlank(chunks.back()))
        chunks.pop_back();
      fillLine();
    }
    return std::move(lines);
  }

private:
  static bool isAllBlank(const Text &chunk) {
    return std::all_of(chunk.begin(), chunk.end(), [](char32_t c) { return isSpace(static_cast<uint32_t>(c)); });
  }

  void fillLine() {
    const auto width = static_cast<size_t>(options.width);
    std::vector<Text> line;
    size_t length = 0;
    while (!chunks.empty() && length + chunks.back().size() <= width) {
      length += chunks.back().size();
      line.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().size() > width)
      breakWord(line, width - length); // no room cuts nothing off, but ends the line
    if (!line.empty() && isAllBlank(line.back()))
      line.pop_back();
    Text joined;
    for (const Text &chunk : line)
      joined += chunk;
    if (!line.empty())
      lines.push_back(std::move(joined));
  }

  void breakWord(std::vector<Text> &line, size_t room) {
    Text &chunk = chunks.back();
    if (!options.breakLongWords) {
      if (line.empty()) {
        line.push_back(std::move(chunk));
        chunks.pop_back();
      }
      return;
    }
    size_t end = room;
    if (options.breakOnHyphens && chunk.size() > room) {
      size_t hyphen = room ? chunk.rfind(U'-', room - 1) : Text::npos;
      if (hyphen != Text::npos && hyphen > 0 && chunk.find_first_not_of(U'-') < hyphen)
        end = hyphen + 1;
    }
    line.push_back(chunk.substr(0, end));
    chunk.erase(0, end);
  }

  std::vector<Text> chunks, lines;
  const WordWrap &options;
};
} // namespace

std::vector<std::string> jinja::wrapWords(const std::string &text, const WordWrap &options) {
  Text characters;
  forEachCharacter(text, [&](uint32_t c, std::string_view) { characters += static_cast<char32_t>(c); });
  std::vector<std::string> lines;
  for (const Text &line : Wrapper(Chunks(characters, options.breakOnHyphens).run(), options).run()) {
    lines.emplace_back();
    for (char32_t c : line)
      utf8::append(lines.back(), static_cast<uint32_t>(c));
  }
  return lines;
}
