//===- ConstraintSource.cpp -----------------------------------------------===//
#include "runtime/grammar/ConstraintSource.h"
#include "runtime/grammar/Gbnf.h"
#include "runtime/grammar/GrammarLimits.h"
#include "runtime/grammar/JsonSchema.h"
#include "runtime/grammar/Regex.h"

#include <algorithm>

namespace llmc {

using Json = nlohmann::ordered_json;

namespace {

/// Not deeper than a schema may be, so that a file of brackets is refused before it is a tree.
Json parse(const std::string &text) {
  constexpr int kMaxDepth = 2 * int(kMaxGrammarDepth);
  if (text.size() > kMaxGrammarBytes)
    throw GrammarError("schema: expected at most " + std::to_string(kMaxGrammarBytes) + " bytes, got " + std::to_string(text.size()));
  try {
    return Json::parse(text, [](int depth, Json::parse_event_t, Json &) {
      if (depth > kMaxDepth)
        throw GrammarError("schema: expected JSON nested at most " + std::to_string(kMaxDepth) + " deep, got more");
      return true;
    });
  } catch (const Json::exception &error) {
    throw GrammarError("schema: expected JSON: " + std::string(error.what()));
  }
}

Expression addChoice(GrammarBuilder &builder, const Json &choices) {
  std::vector<Expression> ways;
  for (const Json &choice : choices)
    if (choice.is_string() && !choice.get<std::string>().empty())
      ways.push_back(builder.literal(choice.get<std::string>()));
  if (!choices.is_array() || choices.empty() || ways.size() != choices.size())
    throw GrammarError("expected a list of strings that are not empty");
  return builder.choice(std::move(ways));
}

} // namespace

std::shared_ptr<const Grammar> compileGrammar(const ConstraintSource &source) {
  GrammarBuilder builder;
  switch (source.kind) {
  case ConstraintSource::Kind::JsonObject:
    return builder.build(addJsonObject(builder));
  case ConstraintSource::Kind::JsonSchema: {
    const Json schema = parse(source.text);
    return builder.build(addJsonSchema(builder, schema));
  }
  case ConstraintSource::Kind::Regex:
    return builder.build(addRegex(builder, source.text));
  case ConstraintSource::Kind::Choice:
    return builder.build(addChoice(builder, parse(source.text)));
  case ConstraintSource::Kind::Grammar:
    return builder.build(addGbnf(builder, source.text));
  }
  throw GrammarError("unknown kind of constraint");
}

std::shared_ptr<Constraint> ConstraintCache::find(const std::string &key) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(recent_, key, &std::pair<std::string, std::shared_ptr<Constraint>>::first);
  if (at == recent_.end())
    return nullptr;
  recent_.splice(recent_.begin(), recent_, at);
  return at->second;
}

std::shared_ptr<Constraint> ConstraintCache::get(const std::string &key, const std::shared_ptr<const GrammarTokens> &tokens,
                                                 const std::function<std::shared_ptr<const Grammar>()> &compile) {
  if (std::shared_ptr<Constraint> known = find(key))
    return known;
  auto made = std::make_shared<Constraint>(compile(), tokens);
  const std::lock_guard lock(mutex_);
  recent_.emplace_front(key, made);
  if (recent_.size() > capacity_)
    recent_.pop_back();
  return made;
}

std::shared_ptr<Constraint> ConstraintCache::get(const ConstraintSource &source, const std::shared_ptr<const GrammarTokens> &tokens) {
  return get(std::to_string(int(source.kind)) + source.text, tokens, [&] { return compileGrammar(source); });
}

} // namespace llmc
