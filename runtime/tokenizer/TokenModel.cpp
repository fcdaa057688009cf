#include "runtime/tokenizer/TokenModel.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/BytePairs.h"
#include "runtime/tokenizer/ScoredPairs.h"
#include "runtime/tokenizer/Unigram.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tokenizer/WordPiece.h"

using namespace llmc;

ByteTokens::ByteTokens(const Vocabulary &vocabulary) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (size_t b = 0; b < 256; ++b) {
    const char spelling[] = {'<', '0', 'x', kHex[b >> 4], kHex[b & 15], '>'};
    ids[b] = vocabulary.idOf({spelling, sizeof(spelling)});
  }
}

bool ByteTokens::append(std::string_view text, std::vector<int32_t> &out) const {
  const size_t before = out.size();
  for (char c : text) {
    int32_t id = ids[static_cast<unsigned char>(c)];
    if (id < 0) {
      out.resize(before);
      return false;
    }
    out.push_back(id);
  }
  return true;
}

void JoinablePairs::add(std::string_view token) {
  if (token.size() < 2)
    return;
  utf8::Decoded left = utf8::decode(token);
  for (size_t i = left.length; i < token.size();) {
    utf8::Decoded right = utf8::decode(token.substr(i));
    size_t bit = index(left.codePoint, right.codePoint);
    bits[bit >> 6] |= uint64_t(1) << (bit & 63);
    i += right.length;
    left = right;
  }
}

size_t JoinablePairs::stretch(std::string_view text) const {
  utf8::Decoded left = utf8::decode(text);
  size_t i = left.length;
  while (i < text.size()) {
    utf8::Decoded right = utf8::decode(text.substr(i));
    if (!contains(left.codePoint, right.codePoint))
      return i;
    i += right.length;
    left = right;
  }
  return i;
}

static void checkSize(size_t got, size_t count, const char *what) {
  if (got != count)
    throw Error("tokenizer: expected " + std::to_string(count) + " " + what + " (one a token), got " +
                std::to_string(got));
}

std::unique_ptr<TokenModel> llmc::makeTokenModel(const TokenizerData &data, const Vocabulary &vocabulary,
                                                 std::vector<MergeIds> merges) {
  using Model = TokenizerData::Model;
  if (!data.kinds.empty())
    checkSize(data.kinds.size(), data.tokens.size(), "piece kinds");
  if (data.model == Model::ScoredBPE || data.model == Model::Unigram)
    checkSize(data.scores.size(), data.tokens.size(), "scores");
  switch (data.model) {
  case Model::BPE:
    return std::make_unique<BytePairs>(data, vocabulary, std::move(merges));
  case Model::ScoredBPE:
    return std::make_unique<ScoredPairs>(data, vocabulary);
  case Model::Unigram:
    return std::make_unique<Unigram>(data, vocabulary);
  case Model::WordPiece:
    return std::make_unique<WordPiece>(data, vocabulary);
  }
  throw Error("tokenizer: expected a known model, got " + std::to_string(static_cast<uint32_t>(data.model)));
}
