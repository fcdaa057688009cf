//===- CallBody.h - the part of a call that names and fills it --*- C++ -*-===//
//
// {"name": "f", "arguments": {...}}, or f[ARGS]{...} (ToolFormat::Body), a byte at a
// time. What the arguments are is given as it is written, so that it can go on its way
// before it is complete.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_CALLBODY_H
#define LLMC_RUNTIME_CHAT_CALLBODY_H

#include "runtime/chat/JsonScanner.h"
#include "runtime/chat/ToolFormat.h"

namespace llmc {

class CallBody {
public:
  enum class Result { More, Done, Bad };

  /// `functions`: those that may be called; others make it Bad. Both outlive it.
  CallBody(const ToolFormat &format, const std::vector<std::string> &functions) : format_(&format), functions_(&functions) {}

  /// Not after Done or Bad.
  Result feed(char c) { return format_->body == ToolFormat::Body::Named ? feedNamed(c) : feedObject(c); }

  /// Known once there are arguments.
  const std::string &name() const { return name_; }
  /// What has come of them since the last time: JSON, of an object. Complete when Done, never empty then.
  std::string takeArguments();

private:
  enum class State { Open, FirstKey, NextKey, Key, Colon, Value, Behind };
  enum class Field { Other, Name, Arguments };

  Result feedObject(char c);
  Result feedNamed(char c);
  Result value(char c);
  bool key();
  bool store();
  bool accept(std::string name);

  const ToolFormat *format_;
  const std::vector<std::string> *functions_;
  State state_ = State::Open;
  Field field_ = Field::Other;
  JsonScanner scanner_;
  std::string token_; // the key or value that is being read, but for objects of arguments
  std::string name_, arguments_;
  bool named_ = false, filled_ = false, flows_ = false; // filled: arguments have come; flows: they go to arguments_ at once
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_CALLBODY_H
