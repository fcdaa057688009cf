// Any bytes as a schema, expression or grammar (the first byte says which): a GrammarError, or a constraint under which an answer goes on
// until it ends, with a token at every place.
#include "runtime/grammar/ConstraintSource.h"
#include "runtime/grammar/GrammarBuilder.h"

#include <cstdint>
#include <cstdlib>

using namespace llmc;

static std::shared_ptr<const GrammarTokens> tokens() {
  std::vector<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte)
    spellings.emplace_back(1, char(byte));
  for (const char *more : {"\"", "\": ", "\",", "{\"", "}}", "[[", "ab", "the", "aaaaaaaaaaaaaaaaaaaaaaaa", "\xC3\xA9", "\xE6\x97", "12", "\\u00", ""})
    spellings.push_back(more);
  return std::make_shared<GrammarTokens>(std::move(spellings));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::shared_ptr<const GrammarTokens> vocabulary = tokens();
  if (size == 0)
    return 0;
  constexpr ConstraintSource::Kind kKinds[] = {ConstraintSource::Kind::JsonSchema, ConstraintSource::Kind::Regex, ConstraintSource::Kind::Grammar, ConstraintSource::Kind::Choice};
  try {
    const std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
    const auto constraint = std::make_shared<Constraint>(compileGrammar({kKinds[data[0] % 4], text}), vocabulary);
    Matcher matcher(constraint);
    const int32_t end = int32_t(vocabulary->vocabulary()) - 1, ends[] = {end};
    uint32_t mask[9], random = uint32_t(size);
    for (int n = 0; n < 24 && !matcher.mustEnd(); ++n) {
      if (!matcher.fillMask(mask, ends))
        std::abort(); // every byte is a token: something can always follow
      random = random * 1664525 + 1013904223;
      int32_t id = int32_t(random >> 8) % (end + 1);
      while (!(mask[id / 32] >> (id % 32) & 1))
        id = (id + 1) % (end + 1);
      if (id == end)
        break;
      if (!matcher.accept(id))
        std::abort(); // a mask allows what is taken, and nothing else
    }
  } catch (const GrammarError &) {
  }
  return 0;
}
