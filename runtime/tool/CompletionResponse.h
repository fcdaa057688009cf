//===- CompletionResponse.h - the answer to an OpenAI request ---*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H
#define LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H

#include "runtime/engine/Engine.h"
#include "runtime/engine/TextOutput.h"
#include "runtime/tool/CompletionRequest.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// Of a token: its own first, then the likeliest.
using TokenRow = std::vector<TokenProbability>;

/// How an answer ended.
struct ChoiceEnd {
  const char *finish = ""; // "stop", "length", "tool_calls"
  uint64_t generated = 0, cached = 0, reasoning = 0; // tokens; the last: of those generated
};

/// One of the n answers to a request, as its tokens come.
class Choice {
public:
  /// `format` outlives it; null: all text is content.
  Choice(const Tokenizer &tokenizer, const SamplingParams &params, const AnswerFormat *format = nullptr);

  /// False: a stop string is complete, or the one call that may be.
  bool feed(const SampledToken &token);
  /// What was held back comes; `sequence` has ended.
  void finish(const Sequence &sequence);
  ChoiceEnd end(const Sequence &sequence) const;

  // What has come so far; whoever hands it on as it comes takes it.
  AnswerPieces pieces;
  std::vector<TokenRow> probabilities; // a row each token, if the request asks for them

private:
  void add(const std::string &text);
  bool cut(const Sequence &sequence) const;

  TextOutput output_;
  std::optional<AnswerParser> parser_;
  uint64_t reasoning_ = 0;
};

/// The parts of an answer that is complete.
struct AnswerParts {
  explicit AnswerParts(const AnswerPieces &pieces);
  struct Call {
    size_t index; // in the pieces
    std::string id, name, arguments;
  };
  std::string content, reasoning;
  std::vector<Call> calls; // but those that failed
};

/// A call as messages have it.
nlohmann::ordered_json callOf(const std::string &id, const std::string &name, const std::string &arguments);
/// The value of "logprobs", as the interface of chats or of texts has it.
nlohmann::ordered_json logprobsOf(const Tokenizer &tokenizer, bool chat, std::span<const TokenRow> rows);
nlohmann::ordered_json usageOf(uint64_t prompt, std::span<const ChoiceEnd> ends);
/// The body: a chat.completion or a text_completion. `ends`: those of the choices.
nlohmann::ordered_json completionBody(const CompletionRequest &request, const std::string &id, const std::string &model,
                                      const Tokenizer &tokenizer, const std::vector<std::unique_ptr<Choice>> &choices,
                                      std::span<const ChoiceEnd> ends);
/// {"error": {"message", "type", "param", "code"}}
nlohmann::ordered_json errorBody(const std::string &message, const std::string &type, const std::string &param,
                                 const std::string &code = "");

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H
