//===- Charsmap.h - SentencePiece's precompiled normalisation ---*- C++ -*-===//
//
// normalizer_spec.precompiled_charsmap: a u32 with the size in bytes of a double
// array trie (the units of darts-clone 0.32), the trie, and the replacements, each
// ended by a zero byte. The trie maps a sequence of bytes to the offset of its
// replacement. Every index is checked while walking: the blob comes from a file.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_CHARSMAP_H
#define LLMC_RUNTIME_TOKENIZER_CHARSMAP_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class PrefixTable;

class Charsmap {
public:
  /// Throws Error for a blob whose sizes do not fit.
  explicit Charsmap(std::string_view blob);

  /// The longest rule at each place; what `whole` (may be null) has there stays as it is.
  std::string byLongest(std::string_view text, const PrefixTable *whole) const;
  /// HF tokenizers' reading: see NormalizerStep::byGrapheme.
  std::string byGrapheme(std::string_view text) const;

private:
  struct Rule {
    size_t length; // of the matched text
    std::string_view replacement;
  };
  /// The longest (shortest) rule that `text` starts with.
  std::optional<Rule> match(std::string_view text, bool longest) const;
  std::string_view replacementAt(uint32_t offset) const;

  std::vector<uint32_t> units;
  std::string replacements;
  std::array<bool, 256> starts{}; // some rule starts with this byte
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_CHARSMAP_H
