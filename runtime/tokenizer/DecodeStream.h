//===- DecodeStream.h - token ids in, whole characters out ------*- C++ -*-===//
//
// What a growing list of ids adds to its text. The chunks joined are what
// Tokenizer::decode gives for the whole list: a chunk has only text that no later
// token can change. A byte-level token may end inside a character, a run of <0xHH>
// tokens is text only once it is over, clean-up looks at what follows a space.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_DECODESTREAM_H
#define LLMC_RUNTIME_TOKENIZER_DECODESTREAM_H

#include "runtime/tokenizer/Decoder.h"

namespace llmc {

class Tokenizer;

class DecodeStream {
public:
  /// The tokenizer must outlive it and stay where it is. `kept`: special tokens that are not skipped.
  DecodeStream(const Tokenizer &tokenizer, bool skipSpecial, std::vector<int32_t> kept = {});

  /// The text that `id` settles, valid UTF-8; may be empty. Unknown ids give nothing.
  std::string feed(int32_t id);
  /// Ends the text: the rest. Then a new text may start.
  std::string flush();

private:
  friend class Tokenizer;
  void feed(int32_t id, std::string &out);

  const Tokenizer *tokenizer;
  bool skipSpecial;
  std::vector<int32_t> kept;
  DecoderState state;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_DECODESTREAM_H
