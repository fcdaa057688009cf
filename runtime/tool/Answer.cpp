//===- Answer.cpp ---------------------------------------------------------===//
#include "runtime/tool/Answer.h"
#include "runtime/engine/TextOutput.h"
#include "runtime/tokenizer/Utf8.h"

namespace llmc {

Answer answer(Engine &engine, const Tokenizer &tokenizer, Request request, const AnswerHooks &hooks,
              const std::shared_ptr<Sequence> &earlier) {
  Answer result;
  TextOutput output(tokenizer, request.sampling);
  const bool wantsProbabilities = request.sampling.logprobs >= 0;
  auto emit = [&](const std::string &text) {
    result.text += text;
    if (!text.empty() && hooks.onText)
      hooks.onText(text);
  };
  bool started = false;
  request.onToken = [&](const SampledToken &token) {
    if (!std::exchange(started, true) && hooks.onFirstToken)
      hooks.onFirstToken();
    if (wantsProbabilities)
      result.probabilities.emplace_back(token.probabilities.begin(), token.probabilities.end());
    emit(output.feed(token.id));
    return !output.stopped();
  };
  result.sequence = engine.submit(std::move(request), earlier);
  while (result.sequence->finish == Finish::None) {
    if (hooks.cancelled && hooks.cancelled())
      engine.cancel(result.sequence);
    else
      engine.step();
  }
  result.sequence->request.onToken = nullptr; // refers to this frame
  emit(output.flush());
  result.stopString = output.stopString();
  return result;
}

static nlohmann::ordered_json describe(const Tokenizer &tokenizer, const TokenProbability &p) {
  const std::string_view bytes = tokenizer.tokenBytes(p.id);
  return {{"id", p.id},
          {"token", utf8::sanitize(bytes)},
          {"bytes", std::vector<int>(reinterpret_cast<const unsigned char *>(bytes.data()),
                                     reinterpret_cast<const unsigned char *>(bytes.data()) + bytes.size())},
          {"logprob", p.logProbability}};
}

nlohmann::ordered_json Answer::toJson(const Tokenizer &tokenizer) const {
  nlohmann::ordered_json j;
  j["text"] = text;
  j["finish"] = toString(sequence->finish);
  j["stop"] = nullptr;
  if (!stopString.empty())
    j["stop"] = stopString;
  else if (sequence->stopId >= 0)
    j["stop"] = sequence->stopId;
  j["prompt_tokens"] = sequence->request.prompt.size();
  j["completion_tokens"] = sequence->generated();
  if (sequence->request.sampling.logprobs < 0)
    return j;
  j["logprobs"] = nlohmann::ordered_json::array();
  for (const std::vector<TokenProbability> &row : probabilities) {
    nlohmann::ordered_json token = describe(tokenizer, row.at(0));
    token["top"] = nlohmann::ordered_json::array();
    for (size_t i = 1; i < row.size(); ++i)
      token["top"].push_back(describe(tokenizer, row[i]));
    j["logprobs"].push_back(std::move(token));
  }
  return j;
}

} // namespace llmc
