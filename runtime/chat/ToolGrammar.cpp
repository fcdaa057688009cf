//===- ToolGrammar.cpp ----------------------------------------------------===//
#include "runtime/chat/ToolGrammar.h"
#include "runtime/grammar/JsonSchema.h"

#include <algorithm>
#include <cassert>

namespace llmc {

using Json = nlohmann::ordered_json;

static Expression argumentsOf(GrammarBuilder &g, const ToolFunction &function) {
  if (function.parameters.is_null())
    return g.literal("{}");
  Json schema = function.parameters;
  if (!schema.contains("type") && !schema.contains("$ref"))
    schema["type"] = "object"; // arguments are nothing else
  return addJsonSchema(g, schema);
}

static Expression callOf(GrammarBuilder &g, const ToolFormat &format, const ToolFunction &function) {
  const Expression arguments = argumentsOf(g, function);
  if (format.body == ToolFormat::Body::Named)
    return g.sequence({g.literal(function.name + std::string(format.separator)), arguments});
  return g.sequence({g.literal("{\"name\": \"" + function.name + "\", \"" + std::string(format.argumentsKey) + "\": "), arguments, g.literal("}")});
}

// Behind the mark the calls of a section: a list, or one behind the other.
static Expression section(GrammarBuilder &g, const ToolFormat &format, Expression call, bool several) {
  const Expression next = g.sequence({g.literal(format.list ? ", " : "\n"), call});
  std::vector<Expression> parts{g.literal(format.list ? "[" : "\n"), call};
  if (several)
    parts.push_back(g.repeat(next, 0));
  parts.push_back(g.literal((format.list ? "]" : "\n") + std::string(format.close)));
  return g.sequence(parts);
}

static const char *spaceOf(const ToolFormat &format) { return format.body == ToolFormat::Body::Named ? "" : "\n"; }

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
  return several && !format.section ? g.sequence({one, g.repeat(g.sequence({g.literal(spaceOf(format)), one}), 0)}) : one;
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

static BeforeMark beforeMark(GrammarBuilder &g, std::string_view mark) {
  assert(!mark.empty() && mark.find(mark[0], 1) == mark.npos);
  const std::string_view first = mark.substr(0, 1), tail = mark.substr(1);
  std::vector<Expression> again, away, prefixes;
  for (size_t k = 0; k < tail.size(); ++k) {
    const Expression prefix = g.literal(tail.substr(0, k));
    prefixes.push_back(prefix);
    again.push_back(g.sequence({prefix, g.literal(first)}));
    away.push_back(g.sequence({prefix, g.character((CharacterSet::of(first) | CharacterSet::of(tail.substr(k, 1))).complement())}));
  }
  const Expression begun = g.sequence({g.literal(first), g.repeat(g.choice(again), 0)});
  return {g.choice({g.character(CharacterSet::of(first).complement()), g.sequence({begun, g.choice(away)})}), begun, g.choice(prefixes)};
}

Expression addTextUntil(GrammarBuilder &g, std::string_view mark) {
  const BeforeMark before = beforeMark(g, mark);
  return g.sequence({g.repeat(before.other, 0), before.begun, g.literal(mark.substr(1))});
}

Expression addTextWithout(GrammarBuilder &g, std::string_view mark) {
  const BeforeMark before = beforeMark(g, mark);
  return g.sequence({g.repeat(before.other, 0), g.optional(g.sequence({before.begun, before.prefixes}))});
}

static Expression thoughts(GrammarBuilder &g, const ReasoningFormat &format, bool opened) {
  const Expression rest = g.sequence({addTextUntil(g, format.close), g.literal("\n\n")});
  return opened ? rest : g.optional(g.sequence({g.literal(format.open), rest}));
}

Expression addToolCalls(GrammarBuilder &g, const AnswerFormat &answer, const std::vector<ToolFunction> &functions, bool demanded) {
  std::vector<Expression> bodies;
  for (const ToolFunction &function : functions)
    if (std::find(answer.functions.begin(), answer.functions.end(), function.name) != answer.functions.end())
      bodies.push_back(callOf(g, *answer.tools, function));
  const Expression all = (demanded ? calls : textWithCalls)(g, *answer.tools, g.choice(bodies), answer.parallel && answer.tools->together);
  return answer.reasoning ? g.sequence({thoughts(g, *answer.reasoning, answer.opened), all}) : all;
}

} // namespace llmc
