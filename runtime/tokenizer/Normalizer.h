//===- Normalizer.h - Unicode NFC and character classes ---------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_NORMALIZER_H
#define LLMC_RUNTIME_TOKENIZER_NORMALIZER_H

#include <cstdint>
#include <string>
#include <string_view>

namespace llmc {

/// Normalisation form C of valid UTF-8 (UAX #15), in n log n even for long runs
/// of combining marks.
std::string normalizeNFC(std::string_view text);

/// White_Space, what `\s` means in the reference's regular expressions.
bool isUnicodeSpace(uint32_t codePoint);
/// `\w` of the reference: letters, marks, digits, connectors, joiners.
bool isUnicodeWord(uint32_t codePoint);

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_NORMALIZER_H
