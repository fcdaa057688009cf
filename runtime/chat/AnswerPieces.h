//===- AnswerPieces.h - what an answer consists of --------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_CHAT_ANSWERPIECES_H
#define LLMC_RUNTIME_CHAT_ANSWERPIECES_H

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

/// In the order of the text; texts of neighbours of a kind belong together.
struct AnswerPiece {
  enum class Kind {
    Content,
    Reasoning,
    Call,      // begins a call of a function: text is its name
    Arguments, // of the call that began last: JSON text
    Failed     // the call that began last was none; its text, all of it, comes as content
  };
  Kind kind;
  std::string text;
  size_t call = 0; // which call of the answer, for the last three
  std::string id;  // of a call that begins
};

using AnswerPieces = std::vector<AnswerPiece>;

/// Appends; text joins that of a last piece of its kind.
inline void addPiece(AnswerPieces &pieces, AnswerPiece piece) {
  using Kind = AnswerPiece::Kind;
  const bool joins = piece.kind != Kind::Call && piece.kind != Kind::Failed;
  if (joins && !pieces.empty() && pieces.back().kind == piece.kind && pieces.back().call == piece.call)
    pieces.back().text += piece.text;
  else
    pieces.push_back(std::move(piece));
}

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_ANSWERPIECES_H
