// Answers as their parts, spelled so that a test can compare them.
#ifndef LLMC_TEST_RUNTIME_CHAT_PARTS_H
#define LLMC_TEST_RUNTIME_CHAT_PARTS_H

#include "runtime/chat/AnswerParser.h"

#include <gtest/gtest.h>

namespace llmc {

/// "said|(thought)|f{"a": 1}|!": ! fails the call before it.
inline std::string spell(const AnswerPieces &pieces) {
  using Kind = AnswerPiece::Kind;
  std::string text;
  for (const AnswerPiece &piece : pieces) {
    if (!text.empty() && piece.kind != Kind::Arguments)
      text += "|";
    text += piece.kind == Kind::Reasoning ? "(" + piece.text + ")" : piece.kind == Kind::Failed ? "!" : piece.text;
  }
  return text;
}

/// What is left where calls that failed are taken out: what an answer that is not streamed has.
inline std::string settled(AnswerPieces pieces) {
  AnswerPieces kept;
  for (AnswerPiece &piece : pieces) {
    if (piece.kind == AnswerPiece::Kind::Failed)
      std::erase_if(kept, [&](const AnswerPiece &other) { return other.kind >= AnswerPiece::Kind::Call && other.call == piece.call; });
    else
      addPiece(kept, piece);
  }
  return spell(kept);
}

/// Reads `text` in one piece, cut in two at every byte, and byte by byte: the same each time.
inline std::string parse(const AnswerFormat &format, const std::string &text, bool cut = false) {
  auto read = [&](const std::vector<std::string> &parts) {
    AnswerParser parser(format);
    AnswerPieces pieces;
    for (const std::string &part : parts)
      parser.feed(part, pieces);
    parser.finish(cut, pieces);
    return spell(pieces) + (parser.calls() ? " " + std::to_string(parser.calls()) : "");
  };
  const std::string whole = read({text});
  std::vector<std::string> bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_EQ(read({text.substr(0, at), text.substr(at)}), whole) << "cut at " << at;
    bytes.push_back(text.substr(at, 1));
  }
  EXPECT_EQ(read(bytes), whole);
  return whole;
}

} // namespace llmc

#endif // LLMC_TEST_RUNTIME_CHAT_PARTS_H
