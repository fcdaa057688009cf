//===- ResponseOutput.h - the items of an answer of /v1/responses -*- C++ -*-===//
//
// Thoughts, messages and calls in the order of the text. Built of an answer's pieces as
// they come; who streams is told of every step.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_RESPONSEOUTPUT_H
#define LLMC_RUNTIME_TOOL_RESPONSEOUTPUT_H

#include "runtime/tool/CompletionResponse.h"

#include <functional>

namespace llmc {

class ResponseOutput {
public:
  /// Gets an event and the fields of its own.
  using Tell = std::function<void(const char *type, nlohmann::ordered_json fields)>;

  /// `id`: of the answer, that ids of items are made of. `tokenizer` outlives it.
  ResponseOutput(std::string id, const Tokenizer &tokenizer, Tell tell = nullptr) : id_(std::move(id)), tokenizer_(tokenizer), tell_(std::move(tell)) {}

  /// `rows`: of the tokens of this text.
  void add(const AnswerPieces &pieces, std::span<const TokenRow> rows);
  /// Nothing follows. `whole`: not cut by a limit.
  void finish(bool whole);
  /// A list. Without calls that failed, but where they have been told.
  const nlohmann::ordered_json &items() const { return items_; }

private:
  using Kind = AnswerPiece::Kind;
  nlohmann::ordered_json &last() { return items_.back(); }
  void open(const AnswerPiece &piece);
  void text(const std::string &text);
  void close(const char *status);
  void tell(const char *type, nlohmann::ordered_json fields) const;
  nlohmann::ordered_json place() const;

  const std::string id_;
  const Tokenizer &tokenizer_;
  const Tell tell_;
  nlohmann::ordered_json items_ = nlohmann::ordered_json::array();
  std::optional<Kind> kind_; // of the last item, while it is open
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array(); // for the next text
};

/// The body of an answer that is complete, as the request's interface has it.
nlohmann::ordered_json answerBody(const CompletionRequest &request, const std::string &id, int64_t created, const std::string &model, const Tokenizer &tokenizer,
                                  const std::vector<std::unique_ptr<Choice>> &choices, std::span<const ChoiceEnd> ends);
/// Of one of /v1/responses that may be on its way, with the items so far; `end`: how it ended, null: it has only begun.
nlohmann::ordered_json responseBody(const CompletionRequest &request, const std::string &id, int64_t created, const std::string &model,
                                    const nlohmann::ordered_json &items, const ChoiceEnd *end);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_RESPONSEOUTPUT_H
