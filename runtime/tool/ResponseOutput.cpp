//===- ResponseOutput.cpp -------------------------------------------------===//
#include "runtime/tool/ResponseOutput.h"

#include <utility>

namespace llmc {

using Json = nlohmann::ordered_json;

void ResponseOutput::add(const AnswerPieces &pieces, std::span<const TokenRow> rows) {
  Json described = logprobsOf(tokenizer_, true, rows);
  for (Json &row : described["content"])
    rows_.push_back(std::move(row));
  for (const AnswerPiece &piece : pieces) {
    const bool continues = kind_ == piece.kind || (kind_ == Kind::Call && piece.kind == Kind::Arguments);
    if (piece.kind == Kind::Failed) {
      close("incomplete");
      if (!tell_)
        items_.erase(items_.end() - 1);
      continue;
    }
    if (!continues || piece.kind == Kind::Call) {
      close("completed");
      open(piece);
    }
    if (piece.kind != Kind::Call)
      text(piece.text);
  }
}

void ResponseOutput::finish(bool whole) { close(whole ? "completed" : "incomplete"); }

void ResponseOutput::tell(const char *type, Json fields) const {
  if (tell_)
    tell_(type, std::move(fields));
}

// Where an event belongs.
Json ResponseOutput::place() const {
  Json place{{"item_id", items_.back()["id"]}, {"output_index", items_.size() - 1}};
  if (kind_ != Kind::Call)
    place["content_index"] = 0;
  return place;
}

static Json with(Json fields, const char *name, Json value) {
  fields[name] = std::move(value);
  return fields;
}

void ResponseOutput::open(const AnswerPiece &piece) {
  const std::string id = id_ + "_" + std::to_string(items_.size());
  kind_ = piece.kind;
  if (piece.kind == Kind::Call)
    items_.push_back({{"id", "fc_" + id}, {"type", "function_call"}, {"status", "in_progress"}, {"call_id", piece.id}, {"name", piece.text}, {"arguments", ""}});
  else if (piece.kind == Kind::Reasoning)
    items_.push_back({{"id", "rs_" + id}, {"type", "reasoning"}, {"status", "in_progress"}, {"summary", Json::array()}, {"content", Json::array()}});
  else
    items_.push_back({{"id", "msg_" + id}, {"type", "message"}, {"status", "in_progress"}, {"role", "assistant"}, {"content", Json::array()}});
  tell("response.output_item.added", {{"output_index", items_.size() - 1}, {"item", last()}});
  if (piece.kind == Kind::Call)
    return;
  if (piece.kind == Kind::Reasoning)
    last()["content"].push_back({{"type", "reasoning_text"}, {"text", ""}});
  else
    last()["content"].push_back({{"type", "output_text"}, {"text", ""}, {"annotations", Json::array()}, {"logprobs", Json::array()}});
  tell("response.content_part.added", with(place(), "part", last()["content"][0]));
}

void ResponseOutput::text(const std::string &text) {
  Json fields = with(place(), "delta", text);
  std::string &whole = (kind_ == Kind::Call ? last()["arguments"] : last()["content"][0]["text"]).get_ref<std::string &>();
  whole += text;
  if (kind_ == Kind::Call)
    return tell("response.function_call_arguments.delta", std::move(fields));
  if (kind_ == Kind::Reasoning)
    return tell("response.reasoning_text.delta", std::move(fields));
  for (const Json &row : rows_)
    last()["content"][0]["logprobs"].push_back(row);
  fields["logprobs"] = std::exchange(rows_, Json::array());
  tell("response.output_text.delta", std::move(fields));
}

void ResponseOutput::close(const char *status) {
  if (!kind_)
    return;
  last()["status"] = status;
  if (kind_ == Kind::Call) {
    tell("response.function_call_arguments.done", with(with(place(), "name", last()["name"]), "arguments", last()["arguments"]));
  } else {
    Json &part = last()["content"][0];
    Json fields = with(place(), "text", part["text"]);
    if (kind_ == Kind::Content) { // what is left are tokens without a text of their own
      for (Json &row : rows_)
        part["logprobs"].push_back(std::move(row));
      rows_.clear();
      fields["logprobs"] = part["logprobs"];
    }
    tell(kind_ == Kind::Reasoning ? "response.reasoning_text.done" : "response.output_text.done", std::move(fields));
    tell("response.content_part.done", with(place(), "part", part));
  }
  tell("response.output_item.done", {{"output_index", items_.size() - 1}, {"item", last()}});
  kind_.reset();
}

static Json usageOf(uint64_t prompt, const ChoiceEnd &end) {
  return {{"input_tokens", prompt},
          {"input_tokens_details", {{"cached_tokens", end.cached}}},
          {"output_tokens", end.generated},
          {"output_tokens_details", {{"reasoning_tokens", end.reasoning}}},
          {"total_tokens", prompt + end.generated}};
}

Json responseBody(const CompletionRequest &request, const std::string &id, int64_t created, const std::string &model, const Json &items, const ChoiceEnd *end) {
  const bool whole = end && std::string_view(end->finish) != "length";
  Json body{{"id", "resp_" + id},
            {"object", "response"},
            {"created_at", created},
            {"status", !end ? "in_progress" : whole ? "completed" : "incomplete"},
            {"background", false},
            {"error", nullptr},
            {"incomplete_details", !end || whole ? Json() : Json{{"reason", "max_output_tokens"}}},
            {"model", request.model.empty() ? model : request.model},
            {"output", items}};
  body.update(*request.repeated);
  body["usage"] = end ? usageOf(request.request.prompt.size(), *end) : Json();
  return body;
}

Json answerBody(const CompletionRequest &request, const std::string &id, int64_t created, const std::string &model, const Tokenizer &tokenizer,
                const std::vector<std::unique_ptr<Choice>> &choices, std::span<const ChoiceEnd> ends) {
  if (!request.repeated)
    return completionBody(request, id, model, tokenizer, choices, ends);
  ResponseOutput output(id, tokenizer);
  output.add(choices[0]->pieces, choices[0]->probabilities);
  output.finish(std::string_view(ends[0].finish) != "length");
  return responseBody(request, id, created, model, output.items(), &ends[0]);
}

} // namespace llmc
