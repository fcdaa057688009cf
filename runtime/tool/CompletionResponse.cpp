//===- CompletionResponse.cpp ---------------------------------------------===//
#include "runtime/tool/CompletionResponse.h"
#include "runtime/tokenizer/Utf8.h"

#include <cstdio>
#include <ctime>

namespace llmc {

using Json = nlohmann::ordered_json;

bool Choice::feed(const SampledToken &token) {
  if (!token.probabilities.empty())
    probabilities_.emplace_back(token.probabilities.begin(), token.probabilities.end());
  text += output_.feed(token.id);
  return !output_.stopped();
}

const char *Choice::finishReason(const Sequence &s) const { return output_.stopped() || s.finish == Finish::Stop ? "stop" : "length"; }

Json Choice::describe(const TokenProbability &p) const {
  const std::string_view bytes = tokenizer_.tokenBytes(p.id);
  return {{"token", utf8::sanitize(bytes)},
          {"logprob", p.logProbability},
          {"bytes", std::vector<int>(reinterpret_cast<const unsigned char *>(bytes.data()),
                                     reinterpret_cast<const unsigned char *>(bytes.data()) + bytes.size())}};
}

Json Choice::chatLogprobs() const {
  Json content = Json::array();
  for (const std::vector<TokenProbability> &row : probabilities_) {
    Json token = describe(row.at(0));
    token["top_logprobs"] = Json::array();
    for (size_t i = 1; i < row.size(); ++i)
      token["top_logprobs"].push_back(describe(row[i]));
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// Keys of an object must differ: a token that is not text is spelled byte by byte.
static std::string keyOf(std::string_view token) {
  if (utf8::firstInvalid(token) == token.size())
    return std::string(token);
  std::string key = "bytes:";
  for (unsigned char c : token) {
    char byte[8];
    std::snprintf(byte, sizeof byte, "\\x%02x", c);
    key += byte;
  }
  return key;
}

Json Choice::textLogprobs() const {
  Json tokens = Json::array(), values = Json::array(), top = Json::array();
  for (const std::vector<TokenProbability> &row : probabilities_) {
    tokens.push_back(keyOf(tokenizer_.tokenBytes(row.at(0).id)));
    values.push_back(row[0].logProbability);
    Json others = Json::object();
    for (size_t i = 1; i < row.size(); ++i)
      others[keyOf(tokenizer_.tokenBytes(row[i].id))] = row[i].logProbability;
    top.push_back(std::move(others));
  }
  return {{"tokens", std::move(tokens)}, {"token_logprobs", std::move(values)}, {"top_logprobs", std::move(top)}};
}

Json completionBody(const CompletionRequest &request, const std::string &id, const std::string &model,
                    const std::vector<std::unique_ptr<Choice>> &choices, const std::vector<std::shared_ptr<Sequence>> &sequences) {
  Json body{{"id", (request.chat ? "chatcmpl-" : "cmpl-") + id},
            {"object", request.chat ? "chat.completion" : "text_completion"},
            {"created", int64_t(std::time(nullptr))},
            {"model", request.model.empty() ? model : request.model},
            {"choices", Json::array()}};
  const bool logprobs = request.request.sampling.logprobs >= 0;
  uint64_t generated = 0, cached = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    Json choice{{"index", i}};
    if (request.chat)
      choice["message"] = {{"role", "assistant"}, {"content", choices[i]->text}, {"refusal", nullptr}};
    else
      choice["text"] = choices[i]->text;
    choice["logprobs"] = !logprobs ? Json() : request.chat ? choices[i]->chatLogprobs() : choices[i]->textLogprobs();
    choice["finish_reason"] = choices[i]->finishReason(*sequences[i]);
    body["choices"].push_back(std::move(choice));
    generated += sequences[i]->generated();
    cached = i == 0 ? sequences[i]->cached : cached;
  }
  const uint64_t prompt = request.request.prompt.size();
  body["usage"] = {{"prompt_tokens", prompt},
                   {"completion_tokens", generated},
                   {"total_tokens", prompt + generated},
                   {"prompt_tokens_details", {{"cached_tokens", cached}}}};
  return body;
}

Json errorBody(const std::string &message, const std::string &type, const std::string &param) {
  return {{"error", {{"message", message}, {"type", type}, {"param", param.empty() ? Json() : Json(param)}, {"code", nullptr}}}};
}

} // namespace llmc
