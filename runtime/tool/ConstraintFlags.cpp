//===- ConstraintFlags.cpp ------------------------------------------------===//
#include "runtime/tool/ConstraintFlags.h"
#include "llmc/Support/File.h"
#include "runtime/grammar/GrammarBuilder.h"

namespace llmc {

void addConstraintFlags(CLI::App &app, ConstraintFlags &flags) {
  CLI::Option *all[] = {
      app.add_option("--json-schema", flags.jsonSchema, "the answer is JSON that this schema takes")->type_name("FILE"),
      app.add_flag("--json-object", flags.jsonObject, "the answer is a JSON object"),
      app.add_option("--regex", flags.regex, "the answer is what this regular expression matches"),
      app.add_option("--grammar", flags.grammar, "the answer is a text of this grammar (GBNF)")->type_name("FILE"),
  };
  for (CLI::Option *option : all) {
    option->group("Answer");
    for (CLI::Option *other : all)
      if (option != other)
        option->excludes(other);
  }
}

std::shared_ptr<Constraint> constraintOf(const ConstraintFlags &flags, Model &model) {
  using Kind = ConstraintSource::Kind;
  const auto compile = [&](Kind kind, const std::string &text, const std::string &where) {
    try {
      return model.constraint({kind, text});
    } catch (const GrammarError &error) {
      throw Error(where + ": " + error.what());
    }
  };
  if (!flags.jsonSchema.empty())
    return compile(Kind::JsonSchema, readTextFile(flags.jsonSchema), flags.jsonSchema);
  if (!flags.grammar.empty())
    return compile(Kind::Grammar, readTextFile(flags.grammar), flags.grammar);
  if (!flags.regex.empty())
    return compile(Kind::Regex, flags.regex, "--regex");
  return flags.jsonObject ? compile(Kind::JsonObject, "", "--json-object") : nullptr;
}

} // namespace llmc
