//===- ChatSession.cpp ----------------------------------------------------===//
#include "runtime/tool/ChatSession.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/tokenizer/Utf8.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

namespace llmc {

using Json = nlohmann::ordered_json;

static Json listOf(const std::optional<std::string> &system, std::span<const ChatMessage> messages) {
  Json list = Json::array();
  if (system)
    list.push_back({{"role", "system"}, {"content", *system}});
  for (const ChatMessage &message : messages)
    list.push_back({{"role", message.role}, {"content", message.content}});
  return list;
}

void ChatSession::setSystem(std::optional<std::string> text) {
  system_ = text ? std::optional(utf8::sanitize(*text)) : std::nullopt;
}

std::vector<int32_t> ChatSession::render(size_t first) const {
  return model_.encodeChat(listOf(system_, std::span(messages_).subspan(first)).dump());
}

// A quarter of the context is for the answer, unless it may not be that long.
std::vector<int32_t> ChatSession::prompt() {
  const uint64_t context = engine_.room();
  const uint64_t room = context - std::min<uint64_t>(context / 4, params.maxTokens);
  std::vector<int32_t> ids = render(forgotten_);
  size_t first = forgotten_;
  while (ids.size() > room) {
    do // to the next message of the user
      ++first;
    while (first < messages_.size() && messages_[first].role != "user");
    if (first >= messages_.size())
      throw Error("the message: expected at most " + std::to_string(room) + " tokens with system message and template (" +
                  std::to_string(context) + " in the context, a quarter of them for the answer), got " + std::to_string(ids.size()));
    ids = render(first);
  }
  forgotten_ = first;
  return ids;
}

Answer ChatSession::answerTo(const AnswerHooks &hooks) {
  Request request;
  request.prompt = prompt();
  request.sampling = params;
  request.sampling.seed += answers_++;
  request.eosIds = model_.tokenizer().eosIds();
  request.keepCache = engine_.blocks().cache().enabled();
  Answer result = answer(engine_, model_.tokenizer(), std::move(request), hooks, last_);
  if (!last_ || last_->blocks.empty()) // taken over
    last_ = result.sequence;
  if (result.sequence->finish == Finish::Error)
    throw Error(result.sequence->error);
  if (result.sequence->finish != Finish::Cancelled || !result.text.empty())
    messages_.push_back({"assistant", result.text});
  return result;
}

Answer ChatSession::say(const std::string &text, const AnswerHooks &hooks) {
  const size_t before = messages_.size(), forgotten = forgotten_;
  messages_.push_back({"user", utf8::sanitize(text)});
  try {
    Answer result = answerTo(hooks);
    if (messages_.size() == before + 1)
      messages_.pop_back();
    return result;
  } catch (...) {
    messages_.resize(before);
    forgotten_ = forgotten;
    throw;
  }
}

Answer ChatSession::retry(const AnswerHooks &hooks) {
  std::optional<ChatMessage> old;
  if (!messages_.empty() && messages_.back().role == "assistant") {
    old = messages_.back();
    messages_.pop_back();
  }
  if (messages_.empty() || messages_.back().role != "user") {
    if (old)
      messages_.push_back(*old);
    throw Error("/retry: expected a message to answer, got none yet");
  }
  const size_t before = messages_.size(), forgotten = forgotten_;
  auto restore = [&] {
    messages_.resize(before);
    if (old)
      messages_.push_back(*old);
  };
  try {
    Answer result = answerTo(hooks);
    if (messages_.size() == before)
      restore();
    return result;
  } catch (...) {
    restore();
    forgotten_ = forgotten;
    throw;
  }
}

bool ChatSession::undo() {
  size_t last = messages_.size();
  while (last > 0 && messages_[last - 1].role != "user")
    --last;
  if (last == 0)
    return false;
  messages_.resize(last - 1);
  forgotten_ = std::min(forgotten_, messages_.size());
  return true;
}

void ChatSession::clear() {
  messages_.clear();
  forgotten_ = 0;
}

void ChatSession::save(const std::string &path) const {
  const std::string text = listOf(system_, messages_).dump(1) + "\n";
  std::FILE *file = std::fopen(path.c_str(), "wb");
  bool good = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file)
    good = std::fclose(file) == 0 && good;
  if (!good)
    throw Error(path + ": cannot write: " + std::strerror(errno));
}

void ChatSession::load(const std::string &path) {
  const std::string text = readTextFile(path);
  Json list;
  try {
    list = Json::parse(text);
  } catch (const nlohmann::json::exception &error) {
    throw Error(path + ": expected a JSON list of messages: " + error.what());
  }
  if (!list.is_array())
    throw Error(path + ": expected a JSON list of messages, got a " + list.type_name());
  std::optional<std::string> system;
  std::vector<ChatMessage> messages;
  for (const Json &item : list) {
    auto string = [&](const char *key) {
      if (!item.is_object() || !item.contains(key) || !item[key].is_string())
        throw Error(path + ": message " + std::to_string(messages.size() + system.has_value()) + ": expected a string \"" + key + "\"");
      return item[key].get<std::string>();
    };
    ChatMessage message{string("role"), string("content")};
    if (message.role == "system" && messages.empty() && !system)
      system = message.content;
    else
      messages.push_back(std::move(message));
  }
  system_ = std::move(system);
  messages_ = std::move(messages);
  forgotten_ = 0;
}

} // namespace llmc
