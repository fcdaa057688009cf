//===- CallBody.h - the part of a call that names and fills it --*- C++ -*-===//
//
// {"name": "f", "arguments": {...}}, f[ARGS]{...}, or a name and its arguments between
// marks (ToolFormat::Body), a byte at a time. What the arguments are is given as it is written, so that it can go on its way
// before it is complete.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_CALLBODY_H
#define LLMC_RUNTIME_CHAT_CALLBODY_H

#include "runtime/chat/TaggedArguments.h"

#include <optional>

namespace llmc {

class CallBody {
public:
  enum class Result { More, Done, Bad };

  /// `functions`: those that may be called; others make it Bad. `types`: of their arguments. All outlive it.
  CallBody(const ToolFormat &format, const std::vector<std::string> &functions, const FunctionTypes &types)
      : format_(&format), functions_(&functions), types_(&types), lead_(format.callOpen), led_(format.callOpen.empty()) {}

  /// Not after Done or Bad.
  Result feed(char c) { return format_->body == ToolFormat::Body::Object ? feedObject(c) : feedNamed(c); }

  /// Known once there are arguments.
  const std::string &name() const { return name_; }
  /// What has come of them since the last time: JSON, of an object. Complete when Done, never empty then.
  std::string takeArguments();
  /// That the model wrote, where the format has one.
  const std::string &id() const { return id_; }
  /// When Done: bytes that were fed and are none of the call.
  std::string takeRest() { return tagged_ ? tagged_->takeRest() : std::string(); }

private:
  enum class State { Open, FirstKey, NextKey, Key, Colon, Value, Behind };
  enum class Field { Other, Name, Arguments };

  Result feedObject(char c);
  Result feedNamed(char c);
  Result feedName(char c);
  Result feedTagged(char c);
  Result value(char c);
  bool key();
  bool store();
  bool accept(std::string name);

  const ToolFormat *format_;
  const std::vector<std::string> *functions_;
  const FunctionTypes *types_;
  MarkMatcher lead_;
  bool led_; // the mark in front of the name has come
  std::optional<TaggedArguments> tagged_;
  State state_ = State::Open;
  Field field_ = Field::Other;
  JsonScanner scanner_;
  std::string token_; // the key or value that is being read, but for objects of arguments
  std::string name_, id_, arguments_;
  bool named_ = false, filled_ = false, flows_ = false; // filled: arguments have come; flows: they go to arguments_ at once
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_CALLBODY_H
