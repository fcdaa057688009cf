#include "runtime/tokenizer/SplitPattern.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Utf8.h"

#include <pcre2.h>

#include <algorithm>

using namespace llmc;

/// White_Space without U+180E; \p{Z} is Zs, Zl and Zp.
static constexpr std::string_view kSpaces = "\\t-\\r\\x{85}\\p{Z}";

/// Oniguruma's \w: Alphabetic, M, Nd, Pc and Latin-1's superscripts and fractions; PCRE2's has L, N and the
/// underscore. What L, Nl and M lack of Alphabetic are circled and squared letters.
static constexpr std::string_view kWords =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"
    "\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";

static std::string rewriteClasses(const std::string &pattern) {
  std::string out;
  bool inClass = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      char next = pattern[++i];
      const bool space = next == 's' || next == 'S';
      const std::string members(space ? kSpaces : kWords);
      if (next == 's' || next == 'w')
        out += inClass ? members : "[" + members + "]";
      else if ((next == 'S' || next == 'W') && !inClass)
        out += "[^" + members + "]";
      else
        (out += c) += next;
      continue;
    }
    if (c == '[' && !inClass) {
      inClass = true;
      out += c;
      // "]" directly after "[" or "[^" is a literal.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^')
        out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']')
        out += "\\", out += pattern[++i];
      continue;
    }
    if (c == ']' && inClass)
      inClass = false;
    out += c;
  }
  return out;
}

struct SplitPattern::Impl {
  pcre2_code *code = nullptr;
  bool jit = false;
  ~Impl() { pcre2_code_free(code); }
};

SplitPattern::SplitPattern(const std::string &pattern) : impl(std::make_unique<Impl>()) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::string rewritten = rewriteClasses(pattern);
  pcre2_compile_context *context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  impl->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!impl->code) {
    PCRE2_UCHAR message[160] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    throw Error("split pattern '" + pattern + "': " + reinterpret_cast<const char *>(message) + " near offset " +
                std::to_string(offset));
  }
  // Without JIT (no executable memory allowed) the interpreter gives the same matches.
  impl->jit = pcre2_jit_compile(impl->code, PCRE2_JIT_COMPLETE) == 0;
}

SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern &&) noexcept = default;
SplitPattern &SplitPattern::operator=(SplitPattern &&) noexcept = default;

class SplitPattern::Matcher {
public:
  explicit Matcher(const Impl &impl) : data(pcre2_match_data_create_from_pattern(impl.code, nullptr)) {
    if (!data || !context)
      throw Error("out of memory while splitting text");
    pcre2_set_match_limit(context, 200'000'000);
    pcre2_set_heap_limit(context, 512 * 1024); // KiB
  }
  ~Matcher() {
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    if (stack)
      pcre2_jit_stack_free(stack);
  }
  Matcher(const Matcher &) = delete;
  Matcher &operator=(const Matcher &) = delete;

  int match(const Impl &impl, std::string_view text, size_t from) {
    auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    if (!impl.jit)
      return pcre2_match(impl.code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
    int rc = pcre2_jit_match(impl.code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
    if (rc != PCRE2_ERROR_JIT_STACKLIMIT || stack)
      return rc;
    stack = pcre2_jit_stack_create(256 * 1024, 256 * 1024 * 1024, nullptr);
    if (stack)
      pcre2_jit_stack_assign(context, nullptr, stack);
    return pcre2_jit_match(impl.code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
  }

  pcre2_match_data *data;
  pcre2_match_context *context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack *stack = nullptr;
};

void SplitPattern::MatcherDelete::operator()(Matcher *matcher) const { delete matcher; }

SplitPattern::MatcherPointer SplitPattern::matcher() const { return MatcherPointer(new Matcher(*impl)); }

bool SplitPattern::find(Matcher &matcher, std::string_view text, size_t from, size_t done, size_t &begin,
                        size_t &end) const {
  int rc = matcher.match(*impl, text, from);
  if (rc == PCRE2_ERROR_NOMATCH)
    return false;
  if (rc < 0) {
    PCRE2_UCHAR message[160] = {};
    pcre2_get_error_message(rc, message, sizeof(message));
    throw Error("splitting text of " + std::to_string(text.size()) +
                " bytes: " + reinterpret_cast<const char *>(message));
  }
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(matcher.data);
  begin = ends[0], end = ends[1];
  if (begin < done || end < begin) // \K may do this; ignore the match
    begin = end = std::max(done, end);
  return true;
}

size_t SplitPattern::nextCharacter(std::string_view text, size_t at) {
  return at < text.size() ? at + utf8::decode(text.substr(at)).length : at;
}

void SplitPattern::split(std::string_view text, std::vector<std::string_view> &pieces) const {
  MatcherPointer m = matcher();
  segments(*m, text, [&](size_t begin, size_t end, bool) {
    if (end > begin)
      pieces.push_back(text.substr(begin, end - begin));
  });
}

std::string SplitPattern::replace(std::string_view text, std::string_view content) const {
  MatcherPointer m = matcher();
  std::string out;
  segments(*m, text, [&](size_t begin, size_t end, bool isMatch) {
    out.append(isMatch ? content : text.substr(begin, end - begin));
  });
  return out;
}
