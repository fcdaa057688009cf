//===- UnicodeScripts.h - where the script of a text changes ----*- C++ -*-===//
//
// The pre-tokeniser UnicodeScripts of HF tokenizers: Han, Hiragana and Katakana
// count as one script; spaces and characters of no known script belong to whatever
// is before them. Scripts are those of Unicode 9, as in the reference.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_UNICODESCRIPTS_H
#define LLMC_RUNTIME_TOKENIZER_UNICODESCRIPTS_H

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace llmc {

class UnicodeScripts {
public:
  UnicodeScripts();
  ~UnicodeScripts();

  /// Offsets at which a script begins, ascending; what is before the first one has none. May be
  /// called from several threads, of which one works at a time.
  std::vector<size_t> borders(std::string_view text) const;

private:
  struct Impl;
  uint8_t of(uint32_t codePoint) const; // 0: any
  std::vector<uint8_t> makePage(uint32_t page) const;

  std::unique_ptr<Impl> impl;
  mutable std::mutex mutex;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_UNICODESCRIPTS_H
