//===- ToolGrammar.cpp ----------------------------------------------------===//
#include "runtime/chat/ToolGrammar.h"
#include "runtime/grammar/JsonSchema.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <cassert>

namespace llmc {

using Json = nlohmann::ordered_json;

static Json objectSchema(const ToolFunction &function) {
  Json schema = function.parameters;
  if (!schema.contains("type") && !schema.contains("$ref"))
    schema["type"] = "object"; // arguments are nothing else
  return schema;
}

static Expression argumentsOf(GrammarBuilder &g, const ToolFunction &function) {
  if (function.parameters.is_null())
    return g.literal("{}");
  return addJsonSchema(g, objectSchema(function));
}

// Arguments between marks.
static Expression taggedArguments(GrammarBuilder &g, const ToolFormat &format, const ToolFunction &function) {
  const auto mark = [&](std::string_view text) { return g.literal(text); };
  const std::string end = std::string(format.valueClose) + "\n";
  const auto opened = [&](Expression name, bool text) {
    return g.sequence({mark(format.keyOpen), name, mark(format.keyClose), mark(text || format.jsonOpen.empty() ? format.valueOpen : format.jsonOpen)});
  };
  const CharacterSet letters{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}, {'-', '-'}};
  const MemberSpelling spelling{
      .open = [&](const std::string &name, bool text) { return opened(g.literal(name), text); },
      .openAny = opened(g.repeat(g.character(letters), 1, 64), true),
      .pad = mark(format.pad),
      .close = g.literal(std::string(format.pad) + end),
      .anyText = g.sequence({mark(format.pad), addTextUntil(g, format.valueClose), g.literal("\n")}),
      .mark = std::string(format.valueClose),
      .forbidden = CharacterSet::of(format.valueClose.substr(0, 1))};
  if (function.parameters.is_null())
    return g.literal("");
  return addJsonSchemaMembers(g, objectSchema(function), spelling);
}

static Expression callOf(GrammarBuilder &g, const ToolFormat &format, const ToolFunction &function) {
  const std::string open = std::string(format.callOpen) + function.name;
  const Expression close = g.literal(format.callClose);
  switch (format.body) {
  case ToolFormat::Body::Object:
    return g.sequence({g.literal("{\"name\": \"" + function.name + "\", \"" + std::string(format.argumentsKey) + "\": "), argumentsOf(g, function), g.literal("}")});
  case ToolFormat::Body::Named: {
    const Expression number = g.sequence({g.literal(format.idMark), g.repeat(g.character({{'0', '9'}}), 1, 3)});
    return g.sequence({g.literal(open), format.idPrefix.empty() ? g.literal("") : number, g.literal(format.separator), argumentsOf(g, function), close});
  }
  case ToolFormat::Body::Tagged:
    return g.sequence({g.literal(open + std::string(format.separator) + "\n"), taggedArguments(g, format, function), close});
  case ToolFormat::Body::Channels:
    break;
  }
  return g.sequence({g.literal(open), g.optional(g.literal(" <|constrain|>json")), g.literal(format.separator), argumentsOf(g, function), g.optional(g.literal(format.close))});
}

static const char *spaceOf(const ToolFormat &format) {
  return format.body == ToolFormat::Body::Object || (format.body == ToolFormat::Body::Tagged && !format.callOpen.empty()) ? "\n" : "";
}

static Expression between(GrammarBuilder &g, const ToolFormat &format) {
  return format.body == ToolFormat::Body::Object ? g.literal("\n") : g.optional(g.literal("\n"));
}

// Behind the mark the calls of a section: a list, or one behind the other.
static Expression section(GrammarBuilder &g, const ToolFormat &format, Expression call, bool several) {
  const Expression next = g.sequence({format.list ? g.literal(", ") : between(g, format), call});
  std::vector<Expression> parts{g.literal(format.list ? "[" : spaceOf(format)), call};
  if (several)
    parts.push_back(g.repeat(next, 0));
  parts.push_back(g.literal((format.list ? "]" : spaceOf(format)) + std::string(format.close)));
  return g.sequence(parts);
}

// What follows the mark of a call, or of a section of them.
static Expression behindMark(GrammarBuilder &g, const ToolFormat &format, Expression call, bool several) {
  if (format.section)
    return section(g, format, call, several);
  const Expression space = g.optional(g.literal(spaceOf(format)));
  return g.sequence({space, call, format.close.empty() ? g.literal("") : g.sequence({space, g.literal(format.close)})});
}

static Expression calls(GrammarBuilder &g, const ToolFormat &format, Expression call, bool several) {
  if (format.bare) // marks are for those that are no JSON
    return call;
  const Expression one = g.sequence({g.literal(format.open), behindMark(g, format, call, several)});
  return several && !format.section ? g.sequence({one, g.repeat(g.sequence({between(g, format), one}), 0)}) : one;
}

// Text that the parser takes for no call, though there is no mark: it does not begin with an object, nor with a mark.
static Expression bareText(GrammarBuilder &g, Expression rest) {
  const CharacterSet space = CharacterSet::of(" \t\n\r");
  const Expression begin = g.choice({g.character((space | CharacterSet::of("{<")).complement()),
                                     g.sequence({g.literal("<"), g.character(CharacterSet::of("<|").complement())})});
  return g.optional(g.sequence({g.repeat(g.character(space), 0), begin, rest}));
}

// Text, with calls in it.
static Expression textWithCalls(GrammarBuilder &g, const ToolFormat &format, Expression call, bool several) {
  const Expression rest = addTextWithout(g, format.open);
  if (format.bare)
    return g.choice({call, bareText(g, rest)});
  const Expression one = g.sequence({addTextUntil(g, format.open), behindMark(g, format, call, several)});
  return g.sequence({several && !format.section ? g.repeat(one, 0) : g.optional(one), rest});
}

namespace {
/// Text before a mark. `begun`: its first character, behind prefixes of the mark that were followed by the first character again;
/// `other`: what is no beginning of the mark; `prefixes`: all of it behind `begun` but the whole mark.
struct BeforeMark {
  Expression other, begun, prefixes;
};
} // namespace

static std::vector<std::string_view> charactersOf(std::string_view text) {
  std::vector<std::string_view> all;
  for (; !text.empty(); text.remove_prefix(all.back().size()))
    all.push_back(text.substr(0, utf8::decode(text).length));
  return all;
}

static CharacterSet setOf(std::string_view character) {
  const uint32_t c = utf8::decode(character).codePoint;
  return {{c, c}};
}

static BeforeMark beforeMark(GrammarBuilder &g, std::string_view mark) {
  const std::vector<std::string_view> characters = charactersOf(mark);
  assert(!mark.empty() && mark.find(characters[0], 1) == mark.npos);
  const std::string_view first = characters[0], tail = mark.substr(first.size());
  std::vector<Expression> again, away, prefixes;
  for (size_t k = 1; k < characters.size(); ++k) {
    const Expression prefix = g.literal(tail.substr(0, size_t(characters[k].data() - tail.data())));
    prefixes.push_back(prefix);
    again.push_back(g.sequence({prefix, g.literal(first)}));
    away.push_back(g.sequence({prefix, g.character((setOf(first) | setOf(characters[k])).complement())}));
  }
  const Expression begun = g.sequence({g.literal(first), g.repeat(g.choice(again), 0)});
  return {g.choice({g.character(setOf(first).complement()), g.sequence({begun, g.choice(away)})}), begun, g.choice(prefixes)};
}

Expression addTextUntil(GrammarBuilder &g, std::string_view mark) {
  const BeforeMark before = beforeMark(g, mark);
  return g.sequence({g.repeat(before.other, 0), before.begun, g.literal(mark.substr(charactersOf(mark)[0].size()))});
}

Expression addTextWithout(GrammarBuilder &g, std::string_view mark) {
  const BeforeMark before = beforeMark(g, mark);
  return g.sequence({g.repeat(before.other, 0), g.optional(g.sequence({before.begun, before.prefixes}))});
}

static Expression thoughts(GrammarBuilder &g, const ReasoningFormat &format, bool opened) {
  const Expression rest = g.sequence({addTextUntil(g, format.close), g.literal("\n\n")});
  return opened ? rest : g.optional(g.sequence({g.optional(g.literal("\n")), g.literal(format.open), rest}));
}

// Messages: thoughts, and without a demand what is said beside; then a call, or the answer.
static Expression channels(GrammarBuilder &g, Expression call, bool demanded) {
  const Expression text = addTextWithout(g, "<|"), next = g.literal("<|end|><|start|>assistant");
  const Expression beside = g.sequence({g.literal("<|channel|>"), demanded ? g.literal("analysis") : g.choice({g.literal("analysis"), g.literal("commentary")}), g.literal("<|message|>"), text, next});
  const Expression called = g.sequence({g.literal("<|channel|>commentary "), call}), answer = g.sequence({g.literal("<|channel|>final<|message|>"), text});
  return g.sequence({g.repeat(beside, 0), demanded ? called : g.choice({called, answer})});
}

Expression addToolCalls(GrammarBuilder &g, const AnswerFormat &answer, const std::vector<ToolFunction> &functions, bool demanded) {
  std::vector<Expression> bodies;
  for (const ToolFunction &function : functions)
    if (std::find(answer.functions.begin(), answer.functions.end(), function.name) != answer.functions.end())
      bodies.push_back(callOf(g, *answer.tools, function));
  if (answer.channels())
    return channels(g, g.choice(bodies), demanded);
  const Expression all = (demanded ? calls : textWithCalls)(g, *answer.tools, g.choice(bodies), answer.parallel && answer.tools->together);
  return answer.reasoning ? g.sequence({thoughts(g, *answer.reasoning, answer.opened), all}) : all;
}

} // namespace llmc
