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

// Calls of a section: a list, or one behind the other.
static Expression section(GrammarBuilder &g, const ToolFormat &format, Expression call, bool several) {
  const Expression next = g.sequence({g.literal(format.list ? ", " : "\n"), call});
  std::vector<Expression> parts{g.literal(std::string(format.open) + (format.list ? "[" : "\n")), call};
  if (several)
    parts.push_back(g.repeat(next, 0));
  parts.push_back(g.literal((format.list ? "]" : "\n") + std::string(format.close)));
  return g.sequence(parts);
}

static Expression calls(GrammarBuilder &g, const ToolFormat &format, Expression call, bool several) {
  if (format.section)
    return section(g, format, call, several);
  if (format.bare) // marks are for those that are no JSON
    return call;
  const char *space = format.body == ToolFormat::Body::Named ? "" : "\n";
  const Expression one = g.sequence({g.literal(std::string(format.open) + space), call, g.literal(format.close.empty() ? "" : space + std::string(format.close))});
  return several ? g.sequence({one, g.repeat(g.sequence({g.literal(space), one}), 0)}) : one;
}

// A prefix of the mark without its first character, or more and more of them, each followed by the first character again.
Expression addTextUntil(GrammarBuilder &g, std::string_view mark) {
  assert(!mark.empty() && mark.find(mark[0], 1) == mark.npos);
  const std::string_view first = mark.substr(0, 1), tail = mark.substr(1);
  std::vector<Expression> again, away;
  for (size_t k = 0; k < tail.size(); ++k) {
    const Expression prefix = g.literal(tail.substr(0, k));
    again.push_back(g.sequence({prefix, g.literal(first)}));
    away.push_back(g.sequence({prefix, g.character((CharacterSet::of(first) | CharacterSet::of(tail.substr(k, 1))).complement())}));
  }
  const Expression begun = g.sequence({g.literal(first), g.repeat(g.choice(again), 0)});
  const Expression other = g.choice({g.character(CharacterSet::of(first).complement()), g.sequence({begun, g.choice(away)})});
  return g.sequence({g.repeat(other, 0), begun, g.literal(tail)});
}

static Expression thoughts(GrammarBuilder &g, const ReasoningFormat &format, bool opened) {
  const Expression rest = g.sequence({addTextUntil(g, format.close), g.literal("\n\n")});
  return opened ? rest : g.optional(g.sequence({g.literal(format.open), rest}));
}

Expression addToolCalls(GrammarBuilder &g, const AnswerFormat &answer, const std::vector<ToolFunction> &functions) {
  std::vector<Expression> bodies;
  for (const ToolFunction &function : functions)
    if (std::find(answer.functions.begin(), answer.functions.end(), function.name) != answer.functions.end())
      bodies.push_back(callOf(g, *answer.tools, function));
  const Expression all = calls(g, *answer.tools, g.choice(bodies), answer.parallel && answer.tools->together);
  return answer.reasoning ? g.sequence({thoughts(g, *answer.reasoning, answer.opened), all}) : all;
}

} // namespace llmc
