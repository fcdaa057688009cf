#include "runtime/tokenizer/Normalizer.h"

#include "runtime/tokenizer/Characters.h"
#include "runtime/tokenizer/CodePointRanges.h"
#include "runtime/tokenizer/ReferenceMarks.inc"
#include "runtime/tokenizer/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

using namespace llmc;

//===----------------------------------------------------------------------===//
// Normalisation forms
//===----------------------------------------------------------------------===//

static bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

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

/// NFD, NFKD (compatible), NFC, NFKC (composed).
static std::string normalForm(std::string_view text, bool compatible, bool composed) {
  if (isAscii(text))
    return std::string(text);
  const int option = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
  std::vector<utf8proc_int32_t> chars;
  chars.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    utf8::Decoded d = utf8::decode(rest);
    rest.remove_prefix(d.length);
    if (d.codePoint < 0x80) {
      chars.push_back(static_cast<utf8proc_int32_t>(d.codePoint));
      continue;
    }
    utf8proc_int32_t parts[32]; // the longest decomposition has 18
    int lastBoundary = 0;
    auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(d.codePoint), parts, 32,
                                     static_cast<utf8proc_option_t>(option), &lastBoundary);
    if (n <= 0 || n > 32)
      chars.push_back(static_cast<utf8proc_int32_t>(d.codePoint));
    else
      chars.insert(chars.end(), parts, parts + n);
  }
  orderMarks(chars);
  auto n = static_cast<utf8proc_ssize_t>(chars.size());
  if (composed)
    n = utf8proc_normalize_utf32(chars.data(), n, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    utf8::append(out, static_cast<uint32_t>(chars[i]));
  return out;
}

std::string llmc::normalizeNFC(std::string_view text) { return normalForm(text, false, true); }

//===----------------------------------------------------------------------===//
// Steps over characters
//===----------------------------------------------------------------------===//

/// Calls each(code point, its bytes, out) for each character.
template <typename Each> static std::string mapCharacters(std::string_view text, Each &&each) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    utf8::Decoded d = utf8::decode(text.substr(i));
    each(d.codePoint, text.substr(i, d.length), out);
    i += d.length;
  }
  return out;
}

/// Full mapping without context; U+0130 alone gives two characters.
static std::string lowercase(std::string_view text) {
  return mapCharacters(text, [](uint32_t c, std::string_view, std::string &out) {
    if (c < 0x80)
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else if (c == 0x130)
      out += "i\xCC\x87";
    else
      utf8::append(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  });
}

template <size_t N> static std::string drop(std::string_view text, const uint32_t (&ranges)[N][2]) {
  return mapCharacters(text, [&](uint32_t c, std::string_view bytes, std::string &out) {
    if (!isAmong(ranges, c))
      out += bytes;
  });
}

static std::string nmt(std::string_view text) {
  return mapCharacters(text, [](uint32_t c, std::string_view bytes, std::string &out) {
    if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
      return;
    if (c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
        c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD)
      out += ' ';
    else
      out += bytes;
  });
}

static bool isIdeograph(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static std::string bert(const NormalizerStep &step, std::string text) {
  if (step.cleanText)
    text = mapCharacters(text, [](uint32_t c, std::string_view bytes, std::string &out) {
      if (c == '\t' || c == '\n' || c == '\r')
        out += ' ';
      else if (isAmong(kReferenceControls, c)) // the other spaces among control characters go, too
        return;
      else if (isUnicodeSpace(c))
        out += ' ';
      else
        out += bytes;
    });
  if (step.chineseChars)
    text = mapCharacters(text, [](uint32_t c, std::string_view bytes, std::string &out) {
      if (isIdeograph(c))
        (out += ' ').append(bytes) += ' ';
      else
        out += bytes;
    });
  if (step.stripAccents)
    text = drop(normalForm(text, false, false), kReferenceNonspacing);
  return step.lowercase ? lowercase(text) : text;
}

static std::string strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    utf8::Decoded d = utf8::decode(text);
    if (!isUnicodeSpace(d.codePoint))
      break;
    text.remove_prefix(d.length);
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && utf8::isContinuation(text[start]))
      --start;
    if (!isUnicodeSpace(utf8::decode(text.substr(start)).codePoint))
      break;
    text.remove_suffix(text.size() - start);
  }
  return std::string(text);
}

/// SentencePiece drops spaces at the end only when they are written as U+2581 already, and so
/// drops those that the text spells, too.
static std::string collapseSpaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' '))
      out += c;
  for (std::string_view meta = kMetaspace;;) {
    if (out.ends_with(' '))
      out.pop_back();
    else if (out.ends_with(meta))
      out.resize(out.size() - meta.size());
    else
      return out;
  }
}

std::string llmc::replaceAll(std::string_view text, std::string_view pattern, std::string_view content) {
  if (pattern.empty())
    return std::string(text);
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t done = 0;;) {
    size_t at = text.find(pattern, done);
    out.append(text.substr(done, at - done));
    if (at == std::string_view::npos)
      return out;
    out.append(content);
    done = at + pattern.size();
  }
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

Normalizer::Normalizer(const std::vector<NormalizerStep> &list, const PrefixTable &whole) : whole(whole) {
  for (const NormalizerStep &data : list) {
    Step step{data, nullptr, nullptr};
    if (data.kind == NormalizerStep::Kind::Precompiled)
      step.charsmap = std::make_shared<Charsmap>(data.text);
    if (data.kind == NormalizerStep::Kind::ReplaceRegex)
      step.pattern = std::make_shared<SplitPattern>(data.text);
    steps.push_back(std::move(step));
  }
}

std::string Normalizer::apply(const Step &step, std::string text) const {
  using Kind = NormalizerStep::Kind;
  const NormalizerStep &data = step.data;
  switch (data.kind) {
  case Kind::NFC: return normalForm(text, false, true);
  case Kind::NFD: return normalForm(text, false, false);
  case Kind::NFKC: return normalForm(text, true, true);
  case Kind::NFKD: return normalForm(text, true, false);
  case Kind::Lowercase: return lowercase(text);
  case Kind::Strip: return strip(text, data.left, data.right);
  case Kind::StripAccents: return drop(text, kReferenceMarks);
  case Kind::Prepend: return text.empty() ? text : data.text + text;
  case Kind::Replace: return replaceAll(text, data.text, data.content);
  case Kind::ReplaceRegex: return step.pattern->replace(text, data.content);
  case Kind::Bert: return bert(data, std::move(text));
  case Kind::Precompiled:
    return data.byGrapheme ? step.charsmap->byGrapheme(text) : step.charsmap->byLongest(text, &whole);
  case Kind::Nmt: return nmt(text);
  case Kind::CollapseSpaces: return collapseSpaces(text);
  case Kind::ByteLevel: return toAlphabet(text);
  }
  return text;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string out(text);
  for (const Step &step : steps)
    out = apply(step, std::move(out));
  return out;
}
