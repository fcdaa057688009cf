#include "runtime/tokenizer/Unigram.h"

#include "llmc/Support/Error.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llmc;

/// How much less likely an unknown character is than the rarest piece.
static constexpr double kUnkPenalty = 10.0;

Unigram::Unigram(const TokenizerData &data, const Vocabulary &vocabulary)
    : vocabulary(vocabulary), scores(data.scores), unkId(data.unkId), byteFallback(data.byteFallback),
      singlePrecision(data.singlePrecision) {
  if (byteFallback)
    byteTokens = ByteTokens(vocabulary);
  double low = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::string_view, int32_t>> entries;
  entries.reserve(vocabulary.size());
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    PieceKind kind = data.kinds.empty() ? PieceKind::Normal : data.kinds[i];
    // HF tokenizers knows no kinds: its least score is that of all pieces.
    if (!singlePrecision || kind == PieceKind::Normal)
      low = std::min(low, scores[i]);
    std::string_view text = vocabulary.bytesOf(id);
    if (text.empty() || vocabulary.hidden(id) || kind == PieceKind::Unused)
      continue;
    if (kind == PieceKind::UserDefined) {
      userDefined.resize(vocabulary.size());
      userDefined[i] = true;
    }
    entries.emplace_back(text, id);
  }
  table = PrefixTable(entries);
  unkScore = singlePrecision ? static_cast<float>(low) - static_cast<float>(kUnkPenalty) : low - kUnkPenalty;
}

/// SentencePiece makes user-defined pieces win over any other segmentation: other scores are negative.
double Unigram::scoreOf(int32_t id, size_t length) const {
  if (singlePrecision && !userDefined.empty() && userDefined[static_cast<size_t>(id)])
    return 0.1 * static_cast<double>(length - 1);
  return scores[static_cast<size_t>(id)];
}

template <typename Score> struct Unigram::Node {
  Score best = 0;
  int32_t id = -1;
  uint32_t length = 0; // of the last piece in bytes; 0: not reached
};

void Unigram::emit(std::string_view text, int32_t id, std::vector<int32_t> &ids) const {
  if (id >= 0)
    return ids.push_back(id);
  // A run of unknown characters is one piece, which may be in the vocabulary after all.
  if (!singlePrecision)
    if (int32_t known = vocabulary.idOf(text); known >= 0 && !vocabulary.hidden(known))
      return ids.push_back(known);
  if (byteFallback && byteTokens.append(text, ids))
    return;
  if (unkId < 0)
    throw Error("tokenizer: expected an unknown token for '" + std::string(text.substr(0, 16)) +
                "', which the vocabulary lacks, got none");
  ids.push_back(unkId);
}

template <typename Score> void Unigram::viterbi(std::string_view piece, std::vector<int32_t> &ids) const {
  std::vector<Node<Score>> ends(piece.size() + 1);
  size_t frontier = 0; // the last end that was reached
  for (size_t start = 0; start < piece.size();) {
    if (singlePrecision && std::abs(ends[start].best) > Score(100000)) { // so that a float keeps its digits
      const Score offset = ends[start].best;
      for (size_t i = start; i <= frontier; ++i)
        if (i == start || ends[i].length)
          ends[i].best -= offset;
    }
    const Score here = ends[start].best;
    const size_t character = utf8::decode(piece.substr(start)).length;
    bool single = false;
    // Equal sums are common ("00" + "0" and "0" + "00"): rounding decides, so it is the reference's.
    auto reach = [&](int32_t id, size_t length, double score) {
      Node<Score> &end = ends[start + length];
      const Score sum = static_cast<Score>(score) + here;
      frontier = std::max(frontier, start + length);
      if (!end.length || sum > end.best)
        end = {sum, id, static_cast<uint32_t>(length)};
    };
    table.prefixes(piece.substr(start), [&](int32_t id, size_t length) {
      single |= length == character;
      reach(id, length, scoreOf(id, length));
    });
    if (!single)
      reach(-1, character, unkScore);
    start += character;
  }
  // Backwards, unknown neighbours joined; then in order.
  std::vector<std::pair<int32_t, uint32_t>> path;
  for (size_t end = piece.size(); end > 0;) {
    const Node<Score> &node = ends[end];
    if (node.id < 0 && !path.empty() && path.back().first < 0)
      path.back().second += node.length;
    else
      path.emplace_back(node.id, node.length);
    end -= node.length;
  }
  size_t at = 0;
  for (size_t i = path.size(); i-- > 0; at += path[i].second)
    emit(piece.substr(at, path[i].second), path[i].first, ids);
}

void Unigram::encode(std::string_view piece, std::vector<int32_t> &ids) const {
  if (piece.size() > INT32_MAX)
    throw Error("text: expected pieces below 2 GiB, got " + std::to_string(piece.size()) + " bytes");
  if (singlePrecision)
    viterbi<float>(piece, ids);
  else
    viterbi<double>(piece, ids);
}
