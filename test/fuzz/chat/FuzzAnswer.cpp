// Any text as an answer (the first byte says in which format, the second where it is cut): the pieces are those of the text in one piece,
// calls name functions of the request and have an object as arguments, and without a call all of the text is content (but heads of messages).
#include "runtime/chat/AnswerParser.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace llmc;

using Kind = AnswerPiece::Kind;

/// What is left where calls that failed are taken out; with what the texts of neighbours join to.
static AnswerPieces settled(const AnswerPieces &pieces) {
  AnswerPieces kept;
  for (const AnswerPiece &piece : pieces)
    if (piece.kind == Kind::Failed)
      std::erase_if(kept, [&](const AnswerPiece &other) { return other.kind >= Kind::Call && other.call == piece.call; });
    else
      addPiece(kept, piece);
  return kept;
}

static AnswerPieces read(const AnswerFormat &format, std::string_view text, size_t most, bool cut, size_t &calls) {
  AnswerParser parser(format);
  AnswerPieces pieces;
  for (size_t at = 0; at < text.size(); at += most)
    parser.feed(text.substr(at, most), pieces);
  parser.finish(cut, pieces);
  calls = parser.calls();
  return pieces;
}

static void expect(bool good) {
  if (!good)
    std::abort();
}

static bool same(const AnswerPieces &a, const AnswerPieces &b) { // but for ids, which are drawn
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const AnswerPiece &x, const AnswerPiece &y) { return x.kind == y.kind && x.text == y.text && x.call == y.call; });
}

/// As an object where its strings may have any bytes: answers are UTF-8, these texts need not be.
static bool isObject(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, 'x');
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object();
}

static void checkCalls(const AnswerPieces &pieces, const AnswerFormat &format, size_t calls) {
  size_t found = 0;
  for (size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].kind == Kind::Call) {
      ++found;
      expect(std::find(format.functions.begin(), format.functions.end(), pieces[i].text) != format.functions.end());
      expect(i + 1 < pieces.size() && pieces[i + 1].kind == Kind::Arguments && pieces[i + 1].call == pieces[i].call && isObject(pieces[i + 1].text));
    }
  expect(found == calls);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  AnswerFormat format;
  format.tools = &toolFormats()[(data[0] & 63) % toolFormats().size()];
  format.functions = {"f", "get_weather"};
  static const ArgumentTypes types = argumentTypesOf(nlohmann::ordered_json::parse(R"({"properties": {"s": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array"}, "o": {"type": ["string", "null"]}}})"));
  format.types["f"] = types;
  format.parallel = data[0] & 64;
  if (data[1] & 64)
    format.reasoning = &reasoningFormats()[data[1] % reasoningFormats().size()];
  format.opened = format.reasoning && data[1] & 128;
  const std::string text(reinterpret_cast<const char *>(data) + 2, size - 2);
  for (bool cut : {false, true}) {
    size_t calls = 0, callsInPieces = 0;
    const AnswerPieces whole = read(format, text, text.size() + 1, cut, calls), pieces = settled(whole);
    expect(same(whole, read(format, text, 1 + data[1] % 32, cut, callsInPieces)) && calls == callsInPieces);
    if (!cut)
      checkCalls(pieces, format, calls);
    const bool content = std::all_of(pieces.begin(), pieces.end(), [](const AnswerPiece &piece) { return piece.kind == Kind::Content; });
    const bool heads = format.channels() && text.find("<|") != text.npos; // which are no text
    if (content && !format.reasoning && !heads)
      expect(pieces.size() <= 1 && (pieces.empty() ? "" : pieces[0].text) == text);
  }
  return 0;
}
