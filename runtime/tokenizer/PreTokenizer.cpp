#include "runtime/tokenizer/PreTokenizer.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Characters.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tokenizer/Vocabulary.h"

#include <algorithm>

using namespace llmc;

using Kind = PreTokenizerStep::Kind;
using Behavior = PreTokenizerStep::Behavior;

/// Steps call each other, so that their number bounds the stack.
static constexpr size_t kMaxSteps = 32;

PreTokenizer::PreTokenizer(const std::vector<PreTokenizerStep> &list, bool alphabet) : alphabetFrom(alphabet ? 0 : SIZE_MAX) {
  if (list.size() > kMaxSteps)
    throw Error("tokenizer: expected at most " + std::to_string(kMaxSteps) + " pre-tokenisers, got " +
                std::to_string(list.size()));
  bool bytes = alphabet;
  for (size_t i = 0; i < list.size(); ++i) {
    Step step{list[i], std::nullopt, FastPattern::None, nullptr};
    const PreTokenizerStep &data = step.data;
    if (data.kind == Kind::UnicodeScripts)
      step.scripts = std::make_unique<UnicodeScripts>();
    if (data.kind == Kind::ByteLevel) {
      if (bytes)
        throw Error("tokenizer: expected one ByteLevel step, got more");
      bytes = true;
      if (i + 1 < list.size())
        alphabetFrom = i + 1;
    }
    if (data.kind == Kind::Metaspace && (data.replacement.empty() ||
                                         utf8::decode(data.replacement).length != data.replacement.size()))
      throw Error("tokenizer: expected one character as Metaspace replacement, got '" + data.replacement + "'");
    const bool gpt2 = data.kind == Kind::ByteLevel && data.useRegex;
    if (gpt2 || data.kind == Kind::Split) {
      step.pattern.emplace(gpt2 ? std::string(kGPT2Pattern) : data.pattern);
      if (gpt2 || (data.behavior == Behavior::Isolated && !data.invert))
        step.fast = recognisePattern(gpt2 ? std::string_view(kGPT2Pattern) : data.pattern);
    }
    steps.push_back(std::move(step));
  }
}

PreTokenizer::Scratch PreTokenizer::makeScratch() const {
  Scratch scratch;
  for (const Step &step : steps)
    scratch.matchers.push_back(step.pattern && step.fast == FastPattern::None ? step.pattern->matcher() : nullptr);
  scratch.buffers.resize(steps.size() + 1);
  return scratch;
}

struct PreTokenizer::Context {
  Scratch &scratch;
  PieceSink &sink;
};

//===----------------------------------------------------------------------===//
// What becomes of matches and gaps
//===----------------------------------------------------------------------===//

/// Takes a piece's segments in order and hands pieces to the next step.
class PreTokenizer::Joiner {
public:
  Joiner(const PreTokenizer &owner, size_t nextStep, std::string_view text, bool first, Context &context,
         Behavior behavior)
      : owner(owner), nextStep(nextStep), text(text), first(first), context(context), behavior(behavior) {}

  void add(size_t from, size_t to, bool match) {
    switch (behavior) {
    case Behavior::Removed:
      if (!match)
        give(from, to);
      return;
    case Behavior::Isolated: return give(from, to);
    case Behavior::Contiguous: hold(from, to, any && match == previous); break;
    case Behavior::MergedWithPrevious: hold(from, to, any && match && !previous); break;
    case Behavior::MergedWithNext: hold(from, to, any && !match && previous); break;
    }
    previous = match;
  }
  void finish() {
    if (any)
      give(begin, end);
  }

private:
  /// Keeps back one piece, which the segment joins or ends.
  void hold(size_t from, size_t to, bool joins) {
    if (joins) {
      end = to;
      return;
    }
    finish();
    begin = from, end = to, any = true;
  }
  void give(size_t from, size_t to) {
    if (from < to)
      owner.next(nextStep, text.substr(from, to - from), first && from == 0, context);
  }

  const PreTokenizer &owner;
  size_t nextStep;
  std::string_view text;
  bool first;
  Context &context;
  Behavior behavior;
  size_t begin = 0, end = 0;
  bool any = false, previous = false;
};

/// Every matching character is a match of its own; the characters between are one gap.
template <typename IsMatch>
void PreTokenizer::splitCharacters(size_t index, std::string_view piece, bool first, Context &context,
                                   Behavior behavior, IsMatch &&isMatch) const {
  Joiner joiner(*this, index + 1, piece, first, context, behavior);
  size_t done = 0;
  for (size_t i = 0; i < piece.size();) {
    utf8::Decoded d = utf8::decode(piece.substr(i));
    if (isMatch(classesOf(d.codePoint))) {
      if (done < i)
        joiner.add(done, i, false);
      joiner.add(i, i + d.length, true);
      done = i + d.length;
    }
    i += d.length;
  }
  if (done < piece.size())
    joiner.add(done, piece.size(), false);
  joiner.finish();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void PreTokenizer::split(size_t index, std::string_view piece, bool first, Context &context) const {
  const Step &step = steps[index];
  if (step.fast != FastPattern::None) {
    for (size_t at = 0; at < piece.size();) {
      size_t end = endOfPiece(step.fast, piece, at);
      next(index + 1, piece.substr(at, end - at), first && at == 0, context);
      at = end;
    }
    return;
  }
  const bool bytes = step.data.kind == Kind::ByteLevel;
  Joiner joiner(*this, index + 1, piece, first, context, bytes ? Behavior::Isolated : step.data.behavior);
  const bool invert = !bytes && step.data.invert;
  auto each = [&](size_t begin, size_t end, bool match) { joiner.add(begin, end, match != invert); };
  if (step.data.kind == Kind::SplitLiteral) {
    const std::string &literal = step.data.pattern;
    size_t done = 0;
    for (size_t at; !literal.empty() && (at = piece.find(literal, done)) != std::string_view::npos;) {
      if (done < at)
        each(done, at, false);
      each(at, done = at + literal.size(), true);
    }
    if (done < piece.size())
      each(done, piece.size(), false);
  } else {
    step.pattern->segments(*context.scratch.matchers[index], piece, each);
  }
  joiner.finish();
}

void PreTokenizer::byteLevel(size_t index, std::string_view piece, bool first, Context &context) const {
  const PreTokenizerStep &data = steps[index].data;
  std::string &buffer = context.scratch.buffers[index];
  if (data.addPrefixSpace && !piece.starts_with(' ')) {
    (buffer = ' ').append(piece);
    piece = buffer;
  }
  if (data.useRegex)
    split(index, piece, first, context);
  else
    next(index + 1, piece, first, context);
}

void PreTokenizer::metaspace(size_t index, std::string_view piece, bool first, Context &context) const {
  const PreTokenizerStep &data = steps[index].data;
  std::string &buffer = context.scratch.buffers[index];
  buffer.clear();
  const bool wanted = data.prepend == PrependScheme::Always || (data.prepend == PrependScheme::First && first);
  if (wanted && !piece.starts_with(' ') && !piece.starts_with(data.replacement))
    buffer = data.replacement;
  for (size_t done = 0;;) {
    size_t at = piece.find(' ', done);
    buffer.append(piece.substr(done, at - done));
    if (at == std::string_view::npos)
      break;
    buffer += data.replacement;
    done = at + 1;
  }
  std::string_view text = buffer;
  if (!data.split)
    return next(index + 1, text, first, context);
  for (size_t begin = 0; begin < text.size();) { // merged with next
    size_t end = std::min(text.find(data.replacement, begin + data.replacement.size()), text.size());
    // A piece that does not start with the replacement ends at the first one.
    if (!text.substr(begin).starts_with(data.replacement))
      end = std::min(text.find(data.replacement, begin), text.size());
    next(index + 1, text.substr(begin, end - begin), first && begin == 0, context);
    begin = end;
  }
}

void PreTokenizer::finish(std::string_view piece, Context &context) const {
  if (alphabetFrom == SIZE_MAX)
    return context.sink.piece(piece);
  std::string &buffer = context.scratch.buffers.back();
  buffer.clear();
  // Later steps cut only between characters of the alphabet.
  if (appendAlphabetBytes(piece, buffer) && !buffer.empty())
    context.sink.piece(buffer);
}

/// Runs of word characters and runs of other characters than white space: \w+|[^\w\s]+.
void PreTokenizer::words(size_t index, std::string_view piece, bool first, Context &context) const {
  size_t begin = 0;
  int previous = 2; // 0: other, 1: word, 2: white space
  auto give = [&](size_t end) {
    if (previous != 2 && begin < end)
      next(index + 1, piece.substr(begin, end - begin), first && begin == 0, context);
    begin = end;
  };
  for (size_t i = 0; i < piece.size();) {
    utf8::Decoded d = utf8::decode(piece.substr(i));
    const uint8_t classes = classesOf(d.codePoint);
    const int kind = classes & kWord ? 1 : classes & kSpace ? 2 : 0;
    if (kind != previous)
      give(i);
    previous = kind;
    i += d.length;
  }
  give(piece.size());
}

/// As in the reference, what is before the first script goes.
void PreTokenizer::scripts(size_t index, std::string_view piece, bool first, Context &context) const {
  std::vector<size_t> borders = steps[index].scripts->borders(piece);
  borders.push_back(piece.size());
  for (size_t i = 0; i + 1 < borders.size(); ++i)
    next(index + 1, piece.substr(borders[i], borders[i + 1] - borders[i]), first && borders[i] == 0, context);
}

/// White space goes; every punctuation character is a piece.
void PreTokenizer::bert(size_t index, std::string_view piece, bool first, Context &context) const {
  size_t begin = 0;
  auto give = [&](size_t end) {
    if (begin < end)
      next(index + 1, piece.substr(begin, end - begin), first && begin == 0, context);
    begin = end;
  };
  for (size_t i = 0; i < piece.size();) {
    utf8::Decoded d = utf8::decode(piece.substr(i));
    const uint8_t classes = classesOf(d.codePoint);
    if (classes & (kSpace | kPunctuation))
      give(i);
    i += d.length;
    if (classes & kSpace)
      begin = i;
    else if (classes & kPunctuation)
      give(i);
  }
  give(piece.size());
}

void PreTokenizer::next(size_t index, std::string_view piece, bool first, Context &context) const {
  if (index == alphabetFrom && index > 0) {
    // The step before was ByteLevel, whose own buffer may hold the piece.
    std::string converted = toAlphabet(piece);
    return step(index, converted, first, context);
  }
  step(index, piece, first, context);
}

void PreTokenizer::step(size_t index, std::string_view piece, bool first, Context &context) const {
  if (index == steps.size())
    return finish(piece, context);
  const PreTokenizerStep &data = steps[index].data;
  switch (data.kind) {
  case Kind::Split:
  case Kind::SplitLiteral: return split(index, piece, first, context);
  case Kind::ByteLevel: return byteLevel(index, piece, first, context);
  case Kind::Metaspace: return metaspace(index, piece, first, context);
  case Kind::Digits:
    return splitCharacters(index, piece, first, context,
                           data.individualDigits ? Behavior::Isolated : Behavior::Contiguous,
                           [](uint8_t c) { return (c & kNumber) != 0; });
  case Kind::WhitespaceSplit:
    return splitCharacters(index, piece, first, context, Behavior::Removed,
                           [](uint8_t c) { return (c & kSpace) != 0; });
  case Kind::Punctuation:
    return splitCharacters(index, piece, first, context, data.behavior,
                           [](uint8_t c) { return (c & kPunctuation) != 0; });
  case Kind::Whitespace: return words(index, piece, first, context);
  case Kind::Bert: return bert(index, piece, first, context);
  case Kind::UnicodeScripts: return scripts(index, piece, first, context);
  }
  next(index + 1, piece, first, context);
}

void PreTokenizer::run(std::string_view text, bool first, Scratch &scratch, PieceSink &sink) const {
  Context context{scratch, sink};
  if (!text.empty())
    next(0, text, first, context);
}
