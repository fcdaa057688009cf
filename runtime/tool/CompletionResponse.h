//===- CompletionResponse.h - the answer to an OpenAI request ---*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H
#define LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H

#include "runtime/engine/Engine.h"
#include "runtime/engine/TextOutput.h"
#include "runtime/tool/CompletionRequest.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// Of a token: its own first, then the likeliest.
using TokenRow = std::vector<TokenProbability>;

/// How an answer ended.
struct ChoiceEnd {
  const char *finish = ""; // "stop", "length"
  uint64_t generated = 0, cached = 0; // tokens
};

/// One of the n answers to a request, as its tokens come.
class Choice {
public:
  Choice(const Tokenizer &tokenizer, const SamplingParams &params) : output_(tokenizer, params) {}

  /// False: a stop string is complete.
  bool feed(const SampledToken &token);
  void finish() { text += output_.flush(); }
  const char *finishReason(const Sequence &sequence) const;
  ChoiceEnd end(const Sequence &s) const { return {finishReason(s), s.generated(), s.cached}; }

  // What has come so far; whoever hands it on as it comes takes it.
  std::string text;
  std::vector<TokenRow> probabilities; // a row each token, if the request asks for them

private:
  TextOutput output_;
};

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
