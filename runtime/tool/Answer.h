//===- Answer.h - one request from prompt to text ---------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_ANSWER_H
#define LLMC_RUNTIME_TOOL_ANSWER_H

#include "runtime/engine/Engine.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llmc {

struct Answer {
  std::shared_ptr<Sequence> sequence;
  std::string text;       // what was shown
  std::string stopString; // that ended it; empty: none did
  std::vector<std::vector<TokenProbability>> probabilities; // a generated token each, if the request asks for them

  /// {"text", "finish", "stop", "prompt_tokens", "completion_tokens"} and "logprobs" if there are some.
  nlohmann::ordered_json toJson(const Tokenizer &tokenizer) const;
};

struct AnswerHooks {
  std::function<void(const std::string &)> onText; // pieces of Answer::text, never empty
  std::function<void()> onFirstToken;
  std::function<bool()> cancelled; // asked before every step; true ends the answer (Finish::Cancelled)
};

/// Runs `request` to its end; `earlier` as Engine::submit. Throws Error where the engine refuses the request.
Answer answer(Engine &engine, const Tokenizer &tokenizer, Request request, const AnswerHooks &hooks,
              const std::shared_ptr<Sequence> &earlier = nullptr);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_ANSWER_H
