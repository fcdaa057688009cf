//===- ChatSession.h - a conversation and its cache -------------*- C++ -*-===//
//
// Before every answer the whole conversation is rendered and encoded; of the
// tokens the longest prefix that the KV cache still holds from the answer before
// is kept, of earlier answers whole blocks, the rest is computed (all of it, where the
// engine has no prefix cache). The answer is the one that a cold cache gives.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_CHATSESSION_H
#define LLMC_RUNTIME_TOOL_CHATSESSION_H

#include "runtime/template/ChatTemplate.h"
#include "runtime/tool/Answer.h"
#include "runtime/tool/Model.h"

#include <optional>
#include <string>
#include <vector>

namespace llmc {

class ChatSession {
public:
  ChatSession(Model &model, Engine &engine, SamplingParams params) : params(std::move(params)), model_(model), engine_(engine) {}

  /// No text: no system message.
  void setSystem(std::optional<std::string> text);
  const std::vector<ChatMessage> &messages() const { return messages_; } // without the system message

  /// Adds the user's message and the answer. If it throws, or nothing was generated before it was cancelled, the
  /// conversation is as before.
  Answer say(const std::string &text, const AnswerHooks &hooks);
  /// Another answer to the last message of the user. Throws Error if there is none.
  Answer retry(const AnswerHooks &hooks);
  /// Takes the last message of the user and its answer back; false if there is none.
  bool undo();
  void clear(); // but for the system message
  /// A JSON list of {"role", "content"}, as run --messages reads it.
  void save(const std::string &path) const;
  void load(const std::string &path);

  /// Messages at the start that are no longer shown to the model, for lack of room.
  size_t forgotten() const { return forgotten_; }
  uint64_t tokensInContext() const { return last_ ? last_->ids.size() : 0; }

  SamplingParams params; // answer n (from 0) is drawn with seed + n

private:
  Answer answerTo(const AnswerHooks &hooks);
  std::vector<int32_t> prompt();
  std::vector<int32_t> render(size_t first) const;

  Model &model_;
  Engine &engine_;
  std::optional<std::string> system_;
  std::vector<ChatMessage> messages_;
  std::shared_ptr<Sequence> last_; // holds the blocks
  size_t forgotten_ = 0;
  uint64_t answers_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_CHATSESSION_H
