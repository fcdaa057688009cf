//===- StreamEvents.cpp ---------------------------------------------------===//
#include "runtime/server/StreamEvents.h"

namespace llmc {

using Json = nlohmann::ordered_json;

static void addData(std::string &events, const Json &data) {
  events += "data: " + jsonText(data) + "\n\n";
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

Json StreamEvents::choice(size_t index, const std::string &text, std::span<const TokenRow> rows, const char *finish) {
  const CompletionRequest &request = completion_.request();
  Json choice{{"index", index}};
  if (request.chat) {
    Json delta = Json::object();
    if (!begun_[index])
      delta["role"] = "assistant";
    if (!text.empty() || !begun_[index])
      delta["content"] = text;
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = text;
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
    if (!news.text.empty() || !news.rows.empty())
      add(events, Json::array({choice(news.choice, news.text, news.rows, nullptr)}), Json());
    if (news.end)
      add(events, Json::array({choice(news.choice, "", {}, news.end->finish)}), Json());
  }
  if (!state.ended)
    return events;
  if (completion_.request().includeUsage)
    add(events, Json::array(), usageOf(completion_.request().request.prompt.size(), completion_.ends()));
  return events + "data: [DONE]\n\n";
}

} // namespace llmc
