//===- JsonScanner.h - where a JSON value ends ------------------*- C++ -*-===//
//
// One value (RFC 8259), a byte at a time: what comes is known to be the beginning of
// a value, or not, before the rest is there. Strings may hold any byte from 0x20 on;
// whether they are UTF-8 is their reader's business.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_JSONSCANNER_H
#define LLMC_RUNTIME_CHAT_JSONSCANNER_H

#include <bitset>
#include <cstdint>

namespace llmc {

/// What JSON calls white space.
inline bool isJsonSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class JsonScanner {
public:
  static constexpr unsigned kMaxDepth = 64; // of lists and objects

  enum class Result {
    More,
    Done,   // the value is complete with this byte
    Before, // it was complete before this byte, which is not its own (a number's end shows in what follows)
    Bad     // no value begins so, or one that is nested too deep
  };
  /// Not after Done, Before or Bad. White space before the value is skipped.
  Result feed(char c);

private:
  enum class State : uint8_t { Value, FirstItem, FirstKey, Key, Colon, Behind, String, Escape, Hex, Word, Minus, Zero, Digits, Point, Fraction, Exponent, Sign, Power };

  Result value(char c);
  Result string(char c);
  Result number(char c);
  Result behind(char c);
  Result open(bool object);
  Result complete();

  State state_ = State::Value;
  std::bitset<kMaxDepth> object_; // by depth: objects, else lists
  unsigned depth_ = 0, hex_ = 0;
  bool key_ = false; // the string is one
  const char *word_ = nullptr; // what is left of true, false or null
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_JSONSCANNER_H
