//===- Chat.cpp - a conversation as the model's prompt --------------------===//
#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/tool/Model.h"

namespace llmc {

std::string Model::renderChat(const std::string &messagesJson) {
  const std::string source = templateSource();
  if (source.empty())
    throw Error(package_.path() + ": the package has no chat template; use --raw");
  const Tokenizer &t = tokenizer(); // has its own clock
  const auto start = std::chrono::steady_clock::now();
  ChatOptions options;
  if (t.bosId() >= 0)
    options.bosToken = t.tokenBytes(t.bosId());
  if (!t.eosIds().empty())
    options.eosToken = t.tokenBytes(t.eosIds().front());
  std::string text = renderChatJson(ChatTemplate::parse(source), messagesJson, options);
  templateSeconds += secondsSince(start);
  return text;
}

} // namespace llmc
