#include "runtime/tokenizer/WordPiece.h"

#include "llmc/Support/Error.h"

#include <algorithm>

using namespace llmc;

WordPiece::WordPiece(const TokenizerData &data, const Vocabulary &vocabulary)
    : prefix(data.continuingPrefix), prefixHash(PrefixTable::hashOf(prefix)), unkId(data.unkId),
      maxChars(data.maxWordChars) {
  if (unkId < 0)
    throw Error("tokenizer: expected an unknown token for WordPiece, got none");
  std::vector<std::pair<std::string_view, int32_t>> entries;
  entries.reserve(vocabulary.size());
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (std::string_view text = vocabulary.bytesOf(id); !text.empty() && !vocabulary.hidden(id))
      entries.emplace_back(text, id);
  }
  table = PrefixTable(entries);
}

void WordPiece::encode(std::string_view word, std::vector<int32_t> &ids) const {
  const auto chars = static_cast<size_t>(
      std::count_if(word.begin(), word.end(), [](char c) { return !utf8::isContinuation(c); }));
  const size_t before = ids.size();
  if (chars <= maxChars) {
    size_t at = 0;
    while (at < word.size()) {
      PrefixTable::Match best;
      auto found = [&](int32_t id, size_t length) { best = {id, length}; };
      if (at == 0 || prefix.empty())
        table.prefixes(word.substr(at), found);
      else
        table.prefixes(word.substr(at), prefixHash, prefix, found);
      if (best.id < 0)
        break;
      ids.push_back(best.id);
      at += best.length;
    }
    if (at == word.size())
      return;
  }
  ids.resize(before);
  ids.push_back(unkId);
}
