#include "runtime/tokenizer/Decoder.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tokenizer/Vocabulary.h"

#include <algorithm>
#include <utility>

using namespace llmc;

using Kind = DecoderStep::Kind;

static constexpr size_t kMaxSteps = 32; // steps call each other

/// What clean_up_tokenization of transformers replaces, one after the other over the whole text.
static constexpr std::pair<std::string_view, std::string_view> kCleanUps[] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},   {" ,", ","},     {" ' ", "'"},
    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

Decoder::Decoder(const TokenizerData &data) {
  std::vector<DecoderStep> list = data.decoders;
  if (list.empty() && data.byteLevel())
    list.push_back({Kind::ByteLevel});
  if (list.size() > kMaxSteps)
    throw Error("tokenizer: expected at most " + std::to_string(kMaxSteps) + " decoders, got " +
                std::to_string(list.size()));
  bytesFirst = !list.empty() && list.front().kind == Kind::ByteLevel;
  bool fused = false;
  for (const DecoderStep &entry : list) {
    Step step{entry, nullptr, fused};
    if (entry.kind == Kind::ReplaceRegex)
      step.pattern = std::make_shared<SplitPattern>(entry.text);
    if (entry.kind == Kind::CleanUp && &entry != &list.back())
      throw Error("tokenizer: expected the clean-up as the last decoder, got it before others");
    fused |= entry.kind == Kind::Fuse || entry.kind == Kind::ByteLevel;
    steps.push_back(std::move(step));
  }
}

DecoderState::DecoderState(const Decoder &decoder) : decoder(&decoder), states(decoder.steps.size()) {}

//===----------------------------------------------------------------------===//
// Single steps
//===----------------------------------------------------------------------===//

/// Replaces in a text that goes on: what may be the start of an occurrence stays in `held`.
static std::string replaceStream(std::string &held, std::string_view text, std::string_view pattern,
                                 std::string_view content, bool last) {
  held += text;
  if (pattern.empty())
    return std::exchange(held, {});
  std::string out;
  size_t done = 0;
  for (size_t at; (at = held.find(pattern, done)) != std::string::npos; done = at + pattern.size())
    out.append(held, done, at - done).append(content);
  size_t keep = last ? 0 : std::min(pattern.size() - 1, held.size() - done);
  while (keep && !pattern.starts_with(std::string_view(held).substr(held.size() - keep)))
    --keep;
  out.append(held, done, held.size() - keep - done);
  held.erase(0, held.size() - keep);
  return out;
}

/// Of WordPiece with clean-up: within one token, with one rule more than transformers has.
static std::string cleanUpToken(std::string token) {
  for (size_t i = 0; i < std::size(kCleanUps); ++i) {
    if (kCleanUps[i].first == " 's")
      token = replaceAll(token, " do not", " don't");
    token = replaceAll(token, kCleanUps[i].first, kCleanUps[i].second);
  }
  return token;
}

std::string DecoderState::metaspace(const DecoderStep &step, std::string_view token, bool first) const {
  return replaceAll(token, step.text, first && step.prepend != PrependScheme::Never ? "" : " ");
}

static std::string wordPiece(const DecoderStep &step, std::string token, bool first) {
  if (!first) {
    if (token.starts_with(step.text))
      token.erase(0, step.text.size());
    else
      token.insert(0, " ");
  }
  return step.cleanUp ? cleanUpToken(std::move(token)) : token;
}

void DecoderState::pushStrip(size_t index, std::string token, std::string &out) {
  const Decoder::Step &step = decoder->steps[index];
  State &state = states[index];
  const std::string &what = step.data.text;
  if (what.empty())
    return push(index + 1, std::move(token), out);
  std::string_view rest = token;
  uint64_t start = step.fused ? state.stripped : 0;
  while (start < step.data.start && rest.starts_with(what)) {
    rest.remove_prefix(what.size());
    ++start;
  }
  if (step.fused) { // the first other character ends the start of the text
    state.stripped = rest.empty() ? start : step.data.start;
    state.held += rest;
    rest = state.held;
  }
  size_t end = rest.size();
  for (uint32_t stop = 0; stop < step.data.stop && rest.substr(0, end).ends_with(what); ++stop)
    end -= what.size();
  std::string text(rest.substr(0, end));
  if (step.fused)
    state.held.erase(0, end);
  if (!text.empty() || !step.fused)
    push(index + 1, std::move(text), out);
}

void DecoderState::flushBytes(size_t index, std::string &out) {
  std::string bytes = std::exchange(states[index].held, {});
  if (bytes.empty())
    return;
  if (utf8::firstInvalid(bytes) == bytes.size())
    return push(index + 1, std::move(bytes), out);
  for (size_t i = 0; i < bytes.size(); ++i) // as the reference: all of the run
    push(index + 1, "\xEF\xBF\xBD", out);
}

void DecoderState::pushByteFallback(size_t index, std::string token, std::string &out) {
  if (int byte = byteOfSpelling(token); byte >= 0) {
    states[index].held += static_cast<char>(byte);
    return;
  }
  flushBytes(index, out);
  push(index + 1, std::move(token), out);
}

void DecoderState::pushCleanUp(size_t index, std::string text, bool last, std::string &out) {
  State &state = states[index];
  state.parts.resize(std::size(kCleanUps));
  for (size_t i = 0; i < std::size(kCleanUps); ++i)
    text = replaceStream(state.parts[i], text, kCleanUps[i].first, kCleanUps[i].second, last);
  push(index + 1, std::move(text), out);
}

//===----------------------------------------------------------------------===//
// The chain
//===----------------------------------------------------------------------===//

/// Steps that a fused text cannot pass piece by piece wait for its end.
static bool waitsForEnd(const DecoderStep &step) {
  return step.kind == Kind::ReplaceRegex || step.kind == Kind::ByteFallback || step.kind == Kind::BPE ||
         (step.kind == Kind::WordPiece && step.cleanUp);
}

void DecoderState::push(size_t index, std::string token, std::string &out) {
  if (index == states.size()) {
    out += token;
    return;
  }
  const Decoder::Step &step = decoder->steps[index];
  State &state = states[index];
  if (step.fused && waitsForEnd(step.data)) {
    state.held += token;
    return;
  }
  const bool first = step.fused || !state.any;
  switch (step.data.kind) {
  case Kind::ByteLevel: {
    if (index > 0) // before the first step spellings are bytes already
      if (std::string bytes; appendAlphabetBytes(token, bytes))
        token = std::move(bytes);
    token = state.utf8.feed(token);
    break;
  }
  case Kind::Metaspace: token = metaspace(step.data, token, first); break;
  case Kind::Replace:
    token = step.fused ? replaceStream(state.held, token, step.data.text, step.data.content, false)
                       : replaceAll(token, step.data.text, step.data.content);
    break;
  case Kind::ReplaceRegex: token = step.pattern->replace(token, step.data.content); break;
  case Kind::ByteFallback: return pushByteFallback(index, std::move(token), out);
  case Kind::Fuse: break;
  case Kind::Strip: return pushStrip(index, std::move(token), out);
  case Kind::WordPiece: token = wordPiece(step.data, std::move(token), first); break;
  case Kind::BPE: { // the last token has no space after it, and any may be the last
    std::string before = std::exchange(state.held, std::move(token));
    if (!std::exchange(state.any, true))
      return;
    token = replaceAll(before, step.data.text, " ");
    break;
  }
  case Kind::CleanUp: return pushCleanUp(index, std::move(token), false, out);
  }
  state.any = true;
  push(index + 1, std::move(token), out);
}

void DecoderState::token(std::string_view spelling, std::string &out) {
  if (states.empty() || !decoder->wantsBytes()) // spellings of hostile vocabularies may be anything
    push(0, utf8::firstInvalid(spelling) == spelling.size() ? std::string(spelling) : utf8::sanitize(spelling), out);
  else
    push(0, std::string(spelling), out);
}

void DecoderState::finish(std::string &out) {
  for (size_t i = 0; i < states.size(); ++i) {
    const Decoder::Step &step = decoder->steps[i];
    State &state = states[i];
    switch (step.data.kind) {
    case Kind::ByteLevel: push(i + 1, state.utf8.flush(), out); break;
    case Kind::Replace:
      if (step.fused)
        push(i + 1, replaceStream(state.held, {}, step.data.text, step.data.content, true), out);
      break;
    case Kind::ReplaceRegex:
      if (step.fused)
        push(i + 1, step.pattern->replace(state.held, step.data.content), out);
      break;
    case Kind::ByteFallback:
      if (step.fused && byteOfSpelling(state.held) < 0)
        push(i + 1, std::exchange(state.held, {}), out);
      else if (step.fused)
        state.held = std::string(1, static_cast<char>(byteOfSpelling(state.held)));
      flushBytes(i, out);
      break;
    case Kind::WordPiece:
      if (step.fused && step.data.cleanUp)
        push(i + 1, cleanUpToken(state.held), out);
      break;
    case Kind::BPE: push(i + 1, replaceAll(state.held, step.data.text, ""), out); break;
    case Kind::CleanUp: pushCleanUp(i, {}, true, out); break;
    case Kind::Metaspace:
    case Kind::Fuse:
    case Kind::Strip: break;
    }
  }
  states.assign(states.size(), State());
}
