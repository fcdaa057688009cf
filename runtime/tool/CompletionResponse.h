//===- CompletionResponse.h - the answer to an OpenAI request ---*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H
#define LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H

#include "runtime/engine/Engine.h"
#include "runtime/engine/TextOutput.h"
#include "runtime/tool/CompletionRequest.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llmc {

/// One of the n answers to a request, as its tokens come.
class Choice {
public:
  Choice(const Tokenizer &tokenizer, const SamplingParams &params) : tokenizer_(tokenizer), output_(tokenizer, params) {}

  /// False: a stop string is complete.
  bool feed(const SampledToken &token);
  void finish() { text += output_.flush(); }
  const char *finishReason(const Sequence &sequence) const;
  nlohmann::ordered_json chatLogprobs() const;
  nlohmann::ordered_json textLogprobs() const;

  std::string text;

private:
  nlohmann::ordered_json describe(const TokenProbability &p) const;

  const Tokenizer &tokenizer_;
  TextOutput output_;
  std::vector<std::vector<TokenProbability>> probabilities_;
};

/// The body: a chat.completion or a text_completion. `sequences`: those of the choices.
nlohmann::ordered_json completionBody(const CompletionRequest &request, const std::string &id, const std::string &model,
                                      const std::vector<std::unique_ptr<Choice>> &choices,
                                      const std::vector<std::shared_ptr<Sequence>> &sequences);
/// {"error": {"message", "type", "param", "code"}}
nlohmann::ordered_json errorBody(const std::string &message, const std::string &type, const std::string &param);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_COMPLETIONRESPONSE_H
