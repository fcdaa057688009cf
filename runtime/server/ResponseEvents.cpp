//===- ResponseEvents.cpp -------------------------------------------------===//
#include "runtime/server/ResponseEvents.h"

#include <utility>

namespace llmc {

using Json = nlohmann::ordered_json;

ResponseEvents::ResponseEvents(const Completion &completion, const std::string &model)
    : completion_(completion), model_(model),
      output_(completion.id(), completion.tokenizer(), [this](const char *type, Json fields) { tell(type, std::move(fields)); }) {}

void ResponseEvents::tell(const char *type, Json fields) {
  Json event{{"type", type}, {"sequence_number", number_++}};
  event.update(fields);
  events_ += std::string("event: ") + type + "\ndata: " + jsonText(event) + "\n\n";
}

void ResponseEvents::tellWhole(const char *type, const ChoiceEnd *end) {
  tell(type, {{"response", responseBody(completion_.request(), completion_.id(), completion_.created(), model_, output_.items(), end)}});
}

std::string ResponseEvents::of(const Completion::State &state) {
  if (number_ == 0) {
    tellWhole("response.created", nullptr);
    tellWhole("response.in_progress", nullptr);
  }
  if (!state.error.empty()) {
    tell("error", {{"code", "server_error"}, {"message", state.error}, {"param", nullptr}});
    return std::exchange(events_, {});
  }
  for (const Completion::News &news : state.news) {
    output_.add(news.pieces, news.rows);
    if (!news.end)
      continue;
    const bool whole = std::string_view(news.end->finish) != "length";
    output_.finish(whole);
    tellWhole(whole ? "response.completed" : "response.incomplete", &*news.end);
  }
  return std::exchange(events_, {});
}

} // namespace llmc
