//===- TaggedArguments.h - arguments between marks, as JSON -----*- C++ -*-===//
//
//   <parameter=city>
//   Paris
//   </parameter>
//   <parameter=days>
//   [1, 2]
//   </parameter>
//
// becomes {"city": "Paris", "days": [1, 2]}, a byte at a time. What an argument's schema
// says is a string is one, whatever it looks like, and goes on its way while it is
// written; so does a list or an object that can be nothing else. The rest is JSON if it
// reads as JSON of a type that the schema has, else a string; True, False and None count
// as JSON, since templates print them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_TAGGEDARGUMENTS_H
#define LLMC_RUNTIME_CHAT_TAGGEDARGUMENTS_H

#include "runtime/chat/ArgumentTypes.h"
#include "runtime/chat/MarkMatcher.h"
#include "runtime/chat/ToolFormat.h"
#include "runtime/engine/StopMatcher.h"

#include <utility>

namespace llmc {

class TaggedArguments {
public:
  enum class Result { More, Done, Bad };

  /// Both outlive it; `types` may be null: of arguments nothing is known.
  TaggedArguments(const ToolFormat &format, const ArgumentTypes *types) : format_(&format), types_(types) { between(); }

  /// Appends to `json` what is certain. Done with the mark that ends the call. Not after Done or Bad.
  Result feed(char c, std::string &json);
  /// When Done: bytes that were fed and are none of the call. What looked like a value may turn out to be a short one and what follows.
  std::string takeRest() { return std::exchange(rest_, {}); }

private:
  enum class State { Between, Key, Open, Text, Json, Behind };

  Result key(char c, std::string &json);
  Result asText(char c, std::string &json);
  Result asJson(char c, std::string &json);
  Result behindJson(char c, std::string &json);
  Result asTextAfterAll(std::string &json);
  void between();
  void beginValue(bool json);

  struct Word {
    std::string_view python, json;
  };
  static const Word kWords[];

  const ToolFormat *format_;
  const ArgumentTypes *types_;
  State state_ = State::Between;
  MarkMatcher first_, second_; // marks of which one has to come
  std::string token_;          // the key; a value that may be JSON, as it came
  std::string rest_;
  uint32_t expected_ = 0;      // types of the value
  bool any_ = false;           // an argument has come
  bool begun_ = false;         // something of the value has
  StopMatcher close_;          // of text
  std::string pad_;            // may be the one behind a text
  JsonScanner scanner_;
  std::string read_;           // the value, in JSON
  const Word *word_ = nullptr; // it is one of Python's
  bool flows_ = false;         // it goes on its way at once
  bool whole_ = false;         // its mark has to follow
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_TAGGEDARGUMENTS_H
