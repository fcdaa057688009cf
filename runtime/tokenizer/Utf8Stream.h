//===- Utf8Stream.h - token bytes in, whole characters out ------*- C++ -*-===//
//
// A byte-level token may end inside a character. A stream never shows half of
// one: feed() returns only complete characters and keeps the rest (at most
// three bytes) for the next token. Bytes that can no longer become a character
// turn into U+FFFD as soon as that is certain.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_UTF8STREAM_H
#define LLMC_RUNTIME_TOKENIZER_UTF8STREAM_H

#include <string>
#include <string_view>

namespace llmc {

class Utf8Stream {
public:
  /// The characters that `bytes` completes; may be empty. Always valid UTF-8.
  std::string feed(std::string_view bytes);
  /// Ends the text: one U+FFFD for a character cut off, else nothing.
  std::string flush();
  bool pending() const { return !held.empty(); }

private:
  std::string held; // a well-formed prefix of one character
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_UTF8STREAM_H
