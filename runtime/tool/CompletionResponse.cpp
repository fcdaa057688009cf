//===- CompletionResponse.cpp ---------------------------------------------===//
#include "runtime/tool/CompletionResponse.h"
#include "runtime/tokenizer/Utf8.h"

#include <cstdio>
#include <ctime>

namespace llmc {

using Json = nlohmann::ordered_json;

using Kind = AnswerPiece::Kind;

Choice::Choice(const Tokenizer &tokenizer, const SamplingParams &params, const AnswerFormat *format)
    : output_(tokenizer, params, format ? format->marks : std::vector<int32_t>()) {
  if (format && !format->plain())
    parser_.emplace(*format);
}

bool Choice::feed(const SampledToken &token) {
  if (!token.probabilities.empty())
    probabilities.emplace_back(token.probabilities.begin(), token.probabilities.end());
  add(output_.feed(token.id));
  reasoning_ += parser_ && parser_->thinks();
  return !output_.stopped() && !(parser_ && parser_->complete());
}

void Choice::add(const std::string &text) {
  if (parser_)
    parser_->feed(text, pieces);
  else if (!text.empty())
    addPiece(pieces, {Kind::Content, text, 0, {}});
}

// By a limit, not by the model or the request.
bool Choice::cut(const Sequence &s) const { return !output_.stopped() && s.finish != Finish::Stop; }

void Choice::finish(const Sequence &s) {
  add(output_.flush());
  if (parser_)
    parser_->finish(cut(s), pieces);
}

ChoiceEnd Choice::end(const Sequence &s) const {
  const bool calls = parser_ && parser_->calls();
  return {cut(s) ? "length" : calls ? "tool_calls" : "stop", s.generated(), s.cached, reasoning_};
}

AnswerParts::AnswerParts(const AnswerPieces &pieces) {
  for (const AnswerPiece &piece : pieces)
    switch (piece.kind) {
    case Kind::Content:
      content += piece.text;
      break;
    case Kind::Reasoning:
      reasoning += piece.text;
      break;
    case Kind::Call:
      calls.push_back({piece.call, piece.id, piece.text, {}});
      break;
    case Kind::Arguments:
      calls.back().arguments += piece.text;
      break;
    case Kind::Failed:
      calls.pop_back();
      break;
    }
}

Json callOf(const std::string &id, const std::string &name, const std::string &arguments) {
  return {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

static Json describe(const Tokenizer &tokenizer, const TokenProbability &p) {
  const std::string_view bytes = tokenizer.tokenBytes(p.id);
  return {{"token", utf8::sanitize(bytes)},
          {"logprob", p.logProbability},
          {"bytes", std::vector<int>(reinterpret_cast<const unsigned char *>(bytes.data()),
                                     reinterpret_cast<const unsigned char *>(bytes.data()) + bytes.size())}};
}

static Json chatLogprobs(const Tokenizer &tokenizer, std::span<const TokenRow> rows) {
  Json content = Json::array();
  for (const TokenRow &row : rows) {
    Json token = describe(tokenizer, row[0]);
    token["top_logprobs"] = Json::array();
    for (size_t i = 1; i < row.size(); ++i)
      token["top_logprobs"].push_back(describe(tokenizer, row[i]));
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

static Json textLogprobs(const Tokenizer &tokenizer, std::span<const TokenRow> rows) {
  Json tokens = Json::array(), values = Json::array(), top = Json::array();
  for (const TokenRow &row : rows) {
    tokens.push_back(keyOf(tokenizer.tokenBytes(row[0].id)));
    values.push_back(row[0].logProbability);
    Json others = Json::object();
    for (size_t i = 1; i < row.size(); ++i)
      others[keyOf(tokenizer.tokenBytes(row[i].id))] = row[i].logProbability;
    top.push_back(std::move(others));
  }
  return {{"tokens", std::move(tokens)}, {"token_logprobs", std::move(values)}, {"top_logprobs", std::move(top)}};
}

Json logprobsOf(const Tokenizer &tokenizer, bool chat, std::span<const TokenRow> rows) {
  return chat ? chatLogprobs(tokenizer, rows) : textLogprobs(tokenizer, rows);
}

Json usageOf(uint64_t prompt, std::span<const ChoiceEnd> ends) {
  uint64_t generated = 0, reasoning = 0;
  for (const ChoiceEnd &end : ends) {
    generated += end.generated;
    reasoning += end.reasoning;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", ends.empty() ? 0 : ends[0].cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", reasoning}}}};
}

static Json messageOf(const AnswerParts &parts) {
  Json message{{"role", "assistant"}, {"content", parts.content.empty() && !parts.calls.empty() ? Json() : Json(parts.content)}, {"refusal", nullptr}};
  if (!parts.reasoning.empty())
    message["reasoning_content"] = parts.reasoning;
  for (const AnswerParts::Call &call : parts.calls)
    message["tool_calls"].push_back(callOf(call.id, call.name, call.arguments));
  return message;
}

Json completionBody(const CompletionRequest &request, const std::string &id, const std::string &model, const Tokenizer &tokenizer,
                    const std::vector<std::unique_ptr<Choice>> &choices, std::span<const ChoiceEnd> ends) {
  Json body{{"id", (request.chat ? "chatcmpl-" : "cmpl-") + id},
            {"object", request.chat ? "chat.completion" : "text_completion"},
            {"created", int64_t(std::time(nullptr))},
            {"model", request.model.empty() ? model : request.model},
            {"choices", Json::array()}};
  const bool logprobs = request.request.sampling.logprobs >= 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    Json choice{{"index", i}};
    const AnswerParts parts(choices[i]->pieces);
    if (request.chat)
      choice["message"] = messageOf(parts);
    else
      choice["text"] = parts.content;
    choice["logprobs"] = logprobs ? logprobsOf(tokenizer, request.chat, choices[i]->probabilities) : Json();
    choice["finish_reason"] = ends[i].finish;
    body["choices"].push_back(std::move(choice));
  }
  body["usage"] = usageOf(request.request.prompt.size(), ends);
  return body;
}

Json errorBody(const std::string &message, const std::string &type, const std::string &param, const std::string &code) {
  return {{"error",
           {{"message", message},
            {"type", type},
            {"param", param.empty() ? Json() : Json(param)},
            {"code", code.empty() ? Json() : Json(code)}}}};
}

} // namespace llmc
