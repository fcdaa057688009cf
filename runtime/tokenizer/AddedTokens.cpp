#include "runtime/tokenizer/AddedTokens.h"

#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>

using namespace llmc;

AddedTokens::AddedTokens(const std::vector<AddedToken> &all) {
  for (const AddedToken &token : all)
    if (!token.content.empty())
      insert(token);
}

void AddedTokens::insert(const AddedToken &token) {
  if (nodes.empty())
    nodes.emplace_back();
  starts[static_cast<unsigned char>(token.content[0])] = true;
  uint32_t at = 0;
  for (char c : token.content) {
    auto byte = static_cast<unsigned char>(c);
    auto &next = nodes[at].next;
    auto found = std::find_if(next.begin(), next.end(), [&](auto &edge) { return edge.first == byte; });
    if (found != next.end()) {
      at = found->second;
      continue;
    }
    auto fresh = static_cast<uint32_t>(nodes.size());
    next.emplace_back(byte, fresh); // before nodes moves
    nodes.emplace_back();
    at = fresh;
  }
  nodes[at].token = static_cast<int32_t>(tokens.size());
  tokens.push_back(token);
}

AddedTokens::Match AddedTokens::longestAt(std::string_view text) const {
  Match best;
  uint32_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    const auto &next = nodes[at].next;
    auto found = std::find_if(next.begin(), next.end(), [&](auto &edge) { return edge.first == byte; });
    if (found == next.end())
      break;
    at = found->second;
    if (nodes[at].token >= 0)
      best = {nodes[at].token, i + 1};
  }
  return best;
}

/// The last character of valid UTF-8 text.
static uint32_t lastCharacter(std::string_view text, size_t &length) {
  size_t start = text.size() - 1;
  while (start > 0 && utf8::isContinuation(text[start]))
    --start;
  length = text.size() - start;
  return utf8::decode(text.substr(start)).codePoint;
}

static bool isWholeWord(std::string_view text, size_t begin, size_t end) {
  size_t length;
  if (begin > 0 && isUnicodeWord(lastCharacter(text.substr(0, begin), length)))
    return false;
  return end == text.size() || !isUnicodeWord(utf8::decode(text.substr(end)).codePoint);
}

std::vector<TextSegment> AddedTokens::cut(std::string_view text, bool parseSpecial) const {
  std::vector<TextSegment> segments;
  size_t done = 0;
  auto plainUpTo = [&](size_t end) {
    if (end > done)
      segments.push_back({-1, text.substr(done, end - done)});
  };
  for (size_t i = 0; i < text.size() && !tokens.empty();) {
    if (!starts[static_cast<unsigned char>(text[i])]) {
      ++i;
      continue;
    }
    Match match = longestAt(text.substr(i));
    if (match.token < 0) {
      ++i;
      continue;
    }
    const AddedToken &token = tokens[match.token];
    size_t begin = i, end = i + match.length;
    i = end; // a match that is refused below still hides what overlaps it, as in the reference
    if (token.special && !parseSpecial)
      continue;
    if (token.singleWord && !isWholeWord(text, begin, end))
      continue;
    if (token.lstrip) {
      size_t length;
      while (begin > done && isUnicodeSpace(lastCharacter(text.substr(done, begin - done), length)))
        begin -= length;
    }
    if (token.rstrip)
      while (end < text.size()) {
        utf8::Decoded d = utf8::decode(text.substr(end));
        if (!isUnicodeSpace(d.codePoint))
          break;
        end += d.length;
      }
    plainUpTo(begin);
    segments.push_back({token.id, text.substr(begin, end - begin)});
    done = end;
  }
  plainUpTo(text.size());
  return segments;
}
