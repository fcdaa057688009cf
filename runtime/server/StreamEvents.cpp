//===- StreamEvents.cpp ---------------------------------------------------===//
#include "runtime/server/StreamEvents.h"
#include "runtime/server/ResponseEvents.h"

namespace llmc {

using Json = nlohmann::ordered_json;

static void addData(std::string &events, const Json &data) {
  events += "data: " + jsonText(data) + "\n\n";
}

std::unique_ptr<AnswerEvents> AnswerEvents::make(const Completion &completion, const std::string &model) {
  if (completion.request().repeated)
    return std::make_unique<ResponseEvents>(completion, model);
  return std::make_unique<StreamEvents>(completion, model);
}

StreamEvents::StreamEvents(const Completion &completion, const std::string &model)
    : completion_(completion), model_(completion.request().model.empty() ? model : completion.request().model),
      begun_(size_t(completion.request().choices)) {}

void StreamEvents::add(std::string &events, const Json &choices, const Json &usage) const {
  const CompletionRequest &request = completion_.request();
  Json data{{"id", (request.chat ? "chatcmpl-" : "cmpl-") + completion_.id()},
            {"object", request.chat ? "chat.completion.chunk" : "text_completion"},
            {"created", completion_.created()},
            {"model", model_},
            {"choices", choices}};
  if (request.includeUsage)
    data["usage"] = usage; // null until the last
  addData(events, data);
}

// What a piece adds to the message.
static void addDelta(Json &delta, const AnswerPiece &piece) {
  using Kind = AnswerPiece::Kind;
  switch (piece.kind) {
  case Kind::Content:
    delta["content"] = piece.text;
    break;
  case Kind::Reasoning:
    delta["reasoning_content"] = piece.text;
    break;
  case Kind::Call:
    delta["tool_calls"] = Json::array({{{"index", piece.call}}});
    delta["tool_calls"][0].update(callOf(piece.id, piece.text, ""));
    break;
  case Kind::Arguments:
    delta["tool_calls"] = Json::array({{{"index", piece.call}, {"function", {{"arguments", piece.text}}}}});
    break;
  case Kind::Failed:
    break;
  }
}

Json StreamEvents::choice(size_t index, const AnswerPiece *piece, std::span<const TokenRow> rows, const char *finish) {
  const CompletionRequest &request = completion_.request();
  Json choice{{"index", index}};
  if (request.chat) {
    Json delta = Json::object();
    if (!begun_[index]) {
      delta["role"] = "assistant";
      delta["content"] = piece && piece->kind != AnswerPiece::Kind::Content ? Json() : Json("");
    }
    if (piece)
      addDelta(delta, *piece);
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = piece ? piece->text : "";
  }
  begun_[index] = true;
  choice["logprobs"] = rows.empty() ? Json() : logprobsOf(completion_.tokenizer(), request.chat, rows);
  choice["finish_reason"] = finish ? Json(finish) : Json();
  return choice;
}

std::string StreamEvents::of(const Completion::State &state) {
  std::string events;
  if (!state.error.empty()) {
    addData(events, errorBody(state.error, "server_error", ""));
    return events;
  }
  for (const Completion::News &news : state.news) {
    std::span<const TokenRow> rows = news.rows; // go with the first of the pieces
    for (const AnswerPiece &piece : news.pieces)
      if (piece.kind != AnswerPiece::Kind::Failed) // its text follows as content
        add(events, Json::array({choice(news.choice, &piece, std::exchange(rows, {}), nullptr)}), Json());
    if (!rows.empty())
      add(events, Json::array({choice(news.choice, nullptr, rows, nullptr)}), Json());
    if (news.end)
      add(events, Json::array({choice(news.choice, nullptr, {}, news.end->finish)}), Json());
  }
  if (!state.ended)
    return events;
  if (completion_.request().includeUsage)
    add(events, Json::array(), usageOf(completion_.request().request.prompt.size(), completion_.ends()));
  return events + "data: [DONE]\n\n";
}

} // namespace llmc
