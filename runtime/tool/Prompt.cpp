//===- Prompt.cpp - text and conversations as prompts ---------------------===//
#include "llmc/Support/Error.h"
#include "runtime/tool/Model.h"

namespace llmc {

std::vector<int32_t> Model::encode(const std::string &text, bool special) {
  requireTokenizer();
  const Tokenizer &t = tokenizer();
  std::vector<int32_t> ids = t.encode(text, special, t.addsBos());
  if (t.addsBos() && ids.size() > 1 && ids[1] == t.bosId()) // the text begins with its own
    ids.erase(ids.begin());
  if (ids.empty())
    throw Error("prompt: expected at least one token, got none (the text is empty, and the model's tokenizer adds no "
                "beginning-of-sequence token)");
  return ids;
}

const ChatPrompt &Model::chat() {
  if (!chat_) {
    const std::string source = templateSource();
    if (source.empty())
      throw Error(package_.path() + ": the package has no chat template; use --raw");
    const Tokenizer &t = tokenizer(); // has its own clock
    const auto start = std::chrono::steady_clock::now();
    chat_.emplace(t, source);
    templateSeconds += secondsSince(start);
  }
  return *chat_;
}

const ChatTraits &Model::chatTraits() {
  if (!traits_) {
    const ChatPrompt &prompt = chat();
    traits_ = traitsOf(prompt.chatTemplate(), prompt.bosToken(), prompt.eosToken());
    if (flags_.toolFormat != "auto")
      traits_->tools = findToolFormat(flags_.toolFormat);
    else if (!traits_->takesTools && !traits_->writesCalls)
      traits_->tools = findToolFormat("hermes"); // ToolPrompt.h
    if (flags_.reasoningFormat != "auto")
      traits_->reasoning = findReasoningFormat(flags_.reasoningFormat);
  }
  return *traits_;
}

std::vector<int32_t> Model::encodeChat(const std::string &messagesJson, const ChatPrompt::Options &options, std::string *rendered) {
  const ChatPrompt &prompt = chat();
  const auto start = std::chrono::steady_clock::now();
  std::vector<int32_t> ids = prompt.encode(messagesJson, options, rendered);
  templateSeconds += secondsSince(start);
  return ids;
}

void Model::checkPrompt(size_t tokens) {
  const uint64_t most = flags_.context ? std::min<uint64_t>(flags_.context, manifest().model.maxContext) : manifest().model.maxContext;
  if (tokens > most)
    throw Error("prompt: expected at most " + std::to_string(most) + " tokens (the context length), got " + std::to_string(tokens));
}

} // namespace llmc
