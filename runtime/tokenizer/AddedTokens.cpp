#include "runtime/tokenizer/AddedTokens.h"

#include "runtime/tokenizer/Characters.h"
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
    nodes.emplace_back(); // 0 means none
  anySpecial |= token.special;
  uint32_t &root = roots[static_cast<unsigned char>(token.content[0])];
  if (!root) {
    root = static_cast<uint32_t>(nodes.size());
    nodes.emplace_back();
  }
  uint32_t at = root;
  for (char c : std::string_view(token.content).substr(1)) {
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
  uint32_t at = roots[static_cast<unsigned char>(text[0])];
  for (size_t i = 1;; ++i) {
    if (nodes[at].token >= 0)
      best = {nodes[at].token, i};
    if (i >= text.size())
      break;
    auto byte = static_cast<unsigned char>(text[i]);
    const auto &next = nodes[at].next;
    auto found = std::find_if(next.begin(), next.end(), [&](auto &edge) { return edge.first == byte; });
    if (found == next.end())
      break;
    at = found->second;
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

const AddedToken *AddedTokens::find(std::string_view text, size_t from, std::span<const TextRange> special,
                                    size_t &begin, size_t &end) const {
  size_t range = 0;
  for (size_t i = from; i < text.size();) {
    if (!roots[static_cast<unsigned char>(text[i])]) {
      ++i;
      continue;
    }
    Match match = longestAt(text.substr(i));
    if (match.token < 0) {
      ++i;
      continue;
    }
    while (range < special.size() && special[range].end <= i)
      ++range;
    const bool inside = range < special.size() && special[range].begin <= i;
    const size_t limit = inside ? special[range].end : i;
    if (inside && tokens[match.token].special && i + match.length > limit) {
      // It reaches out of the range, where a shorter one may still lie within.
      match = longestAt(text.substr(i, limit - i));
      if (match.token < 0) {
        ++i;
        continue;
      }
    }
    const AddedToken &token = tokens[match.token];
    begin = i, end = i + match.length;
    i = end; // a match that is refused still hides what overlaps it, as in the reference
    if (token.special && end > limit)
      continue;
    if (token.singleWord && !isWholeWord(text, begin, end))
      continue;
    return &token;
  }
  return nullptr;
}

std::vector<TextSegment> AddedTokens::cut(std::string_view text, std::span<const TextRange> special) const {
  std::vector<TextSegment> segments;
  size_t done = 0, begin = 0, end = 0;
  auto plainUpTo = [&](size_t limit) {
    if (limit > done)
      segments.push_back({-1, text.substr(done, limit - done)});
  };
  while (!tokens.empty()) {
    // White space that the token before has taken is no longer looked at for matches, but a
    // search starts behind that token alone.
    const AddedToken *token = find(text, end, special, begin, end);
    if (!token)
      break;
    size_t from = std::max(begin, done), to = end;
    if (token->lstrip) {
      size_t length;
      while (from > done && isUnicodeSpace(lastCharacter(text.substr(done, from - done), length)))
        from -= length;
    }
    if (token->rstrip)
      while (to < text.size()) {
        utf8::Decoded d = utf8::decode(text.substr(to));
        if (!isUnicodeSpace(d.codePoint))
          break;
        to += d.length;
      }
    to = std::max(to, done);
    plainUpTo(from);
    segments.push_back({token->id, text.substr(from, to - from)});
    done = to;
    while (!special.empty() && special.front().end <= end)
      special = special.subspan(1);
  }
  plainUpTo(text.size());
  return segments;
}
