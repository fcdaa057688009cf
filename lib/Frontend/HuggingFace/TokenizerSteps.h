//===- TokenizerSteps.h - the steps of tokenizer.json -----------*- C++ -*-===//
#ifndef LLMC_LIB_FRONTEND_HUGGINGFACE_TOKENIZERSTEPS_H
#define LLMC_LIB_FRONTEND_HUGGINGFACE_TOKENIZERSTEPS_H

#include "llmc/Support/Json.h"
#include "runtime/tokenizer/TokenizerData.h"

#include <functional>

namespace llmc::huggingface {

/// A boolean member; `fallback` when it is absent or null.
bool flagOf(const JsonView &step, std::string_view key, bool fallback);

/// {"String": "..."} or {"Regex": "..."}.
struct TextPattern {
  std::string text;
  bool isRegex;
};
TextPattern readPattern(const JsonView &pattern);

/// prepend_scheme, or the older add_prefix_space, of a Metaspace.
PrependScheme readPrependScheme(const JsonView &step);

/// The value of "<0xHH>", the piece that byte fallback gives a byte; -1 otherwise (TokenizerJson.cpp).
int byteOf(std::string_view piece);

// Each appends what the step and its Sequences say (PreTokenizer.cpp, TokenizerDecoder.cpp).
void readNormalizer(const JsonView &step, TokenizerData &out);
void readPreTokenizer(const JsonView &step, TokenizerData &out);
void readDecoder(const JsonView &step, TokenizerData &out);

/// Which ids go before and after the text (TokenizerDecoder.cpp); `idOf` gives -1 for no token.
void readPostProcessor(const JsonView &step, const std::function<int32_t(const std::string &)> &idOf,
                       TokenizerData &out);

} // namespace llmc::huggingface

#endif // LLMC_LIB_FRONTEND_HUGGINGFACE_TOKENIZERSTEPS_H
