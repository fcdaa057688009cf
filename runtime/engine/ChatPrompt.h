//===- ChatPrompt.h - a conversation as token ids ---------------*- C++ -*-===//
//
// Renders the model's chat template and encodes the result. Control tokens come
// from the template alone: what looks like one inside a message (or in a key of
// a tool's arguments, or spread over two parts that the template joins) stays
// text. For that, every string of the conversation in which the spelling of a
// special token begins gets a mark behind the first character of the spelling;
// the encoder removes the marks and lets no special token have that character. Strings
// without such spellings, that is nearly all, reach the template as they are.
// The mark is a noncharacter (U+FDD0 and the like) that the conversation lacks.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_CHATPROMPT_H
#define LLMC_RUNTIME_ENGINE_CHATPROMPT_H

#include "runtime/template/ChatTemplate.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class ChatPrompt {
public:
  /// `tokenizer` outlives it. Throws Error for a template that does not parse.
  ChatPrompt(const Tokenizer &tokenizer, const std::string &templateSource);

  struct Options {
    bool addGenerationPrompt = true;
    bool parseSpecial = false; // control tokens in messages are control tokens
    std::string toolsJson;     // as ChatOptions
    std::string extraJson = {}; // the same
    std::string continueFinalMessage = {}; // the same
  };
  /// Ids of the rendered conversation, a JSON list of {"role": ..., "content": ...}. No token is added to what the
  /// template writes: the beginning-of-sequence token is there as often as there. `rendered`: gets its text. Throws Error
  /// for what is no JSON, an empty list, and what the template refuses.
  std::vector<int32_t> encode(std::string_view messagesJson, const Options &options, std::string *rendered = nullptr) const;

  const ChatTemplate &chatTemplate() const { return template_; }
  const std::string &bosToken() const { return bos_; }
  const std::string &eosToken() const { return eos_; }

private:
  std::string markedText(std::string_view text, std::string_view mark) const;
  jinja::Value marked(const jinja::Value &value, std::string_view mark) const;
  std::string freeMark(const std::vector<const jinja::Value *> &values) const;

  const Tokenizer &tokenizer_;
  ChatTemplate template_;
  std::string bos_, eos_; // spellings
  std::vector<std::string> spellings_; // of special tokens, ascending
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_CHATPROMPT_H
