//===- Decoder.h - token spellings back to text -----------------*- C++ -*-===//
//
// The steps of TokenizerData::decoders, token by token: each step gives out what
// no later token can change and keeps the rest.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_DECODER_H
#define LLMC_RUNTIME_TOKENIZER_DECODER_H

#include "runtime/tokenizer/SplitPattern.h"
#include "runtime/tokenizer/TokenizerData.h"
#include "runtime/tokenizer/Utf8Stream.h"

#include <memory>

namespace llmc {

/// The steps, ready to use. Immutable.
class Decoder {
public:
  Decoder() = default;
  /// Throws Error for a bad pattern or too many steps.
  explicit Decoder(const TokenizerData &data);

  /// Spellings are wanted as bytes (true) or in the alphabet of a byte-level vocabulary.
  bool wantsBytes() const { return bytesFirst; }

private:
  friend class DecoderState;
  struct Step {
    DecoderStep data;
    std::shared_ptr<const SplitPattern> pattern;
    bool fused = false; // all tokens are one by then
  };
  std::vector<Step> steps;
  bool bytesFirst = false;
};

/// One text on its way through a Decoder, which must outlive it.
class DecoderState {
public:
  explicit DecoderState(const Decoder &decoder);
  /// Appends to `out` what the token settles.
  void token(std::string_view spelling, std::string &out);
  void finish(std::string &out);

private:
  struct State {
    bool any = false;       // a token has come
    std::string held;       // text or bytes kept back
    uint64_t stripped = 0;  // characters
    Utf8Stream utf8;
    std::vector<std::string> parts; // CleanUp: what each of its replacements keeps back
  };
  void push(size_t index, std::string token, std::string &out);
  void pushStrip(size_t index, std::string token, std::string &out);
  void pushByteFallback(size_t index, std::string token, std::string &out);
  void pushCleanUp(size_t index, std::string text, bool last, std::string &out);
  void flushBytes(size_t index, std::string &out);
  std::string metaspace(const DecoderStep &step, std::string_view token, bool first) const;

  const Decoder *decoder;
  std::vector<State> states;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_DECODER_H
