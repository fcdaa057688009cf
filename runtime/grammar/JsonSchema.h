//===- JsonSchema.h - JSON schemas as grammars ------------------*- C++ -*-===//
//
// The texts of JSON values that a schema (draft 2020-12) takes; docs/constrained.md has
// the keywords, and where fewer texts are allowed than the schema would take. A keyword
// that is not supported is refused by its name and place.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_JSONSCHEMA_H
#define LLMC_RUNTIME_GRAMMAR_JSONSCHEMA_H

#include "runtime/grammar/CharacterSet.h"
#include "runtime/grammar/GrammarBuilder.h"

#include <functional>
#include <nlohmann/json.hpp>

namespace llmc {

/// Types of JSON values, as bits. An integer is a number, too.
struct JsonTypes {
  static constexpr uint32_t kNull = 1, kBoolean = 2, kInteger = 4, kNumber = 8, kString = 16, kArray = 32, kObject = 64, kAny = 127;
};
/// 0 for a value that was discarded.
uint32_t jsonTypeOf(const nlohmann::ordered_json &value);
/// The types that a part of the schema `root` takes, as far as it says. Throws GrammarError.
uint32_t jsonTypesOf(const nlohmann::ordered_json &root, const nlohmann::ordered_json &schema);

/// Throws GrammarError with the place in the schema ("schema.properties.x.minimum: expected ..., got ...").
Expression addJsonSchema(GrammarBuilder &builder, const nlohmann::ordered_json &schema);

/// How the members of an object are spelled where that is not JSON.
struct MemberSpelling {
  /// What is in front of a value: one that is a string as it is (`text`), or JSON.
  std::function<Expression(const std::string &name, bool text)> open;
  Expression openAny;     // of a string with any name
  Expression pad, close;  // around values
  Expression anyText;     // any string, and what follows it
  std::string mark;       // no string has it
  CharacterSet forbidden; // do not come in a string that the schema says more of, so that it has no mark
};
/// The members of an object, one behind the other: strings as they are, others as JSON. Where the schema names properties there are no others.
Expression addJsonSchemaMembers(GrammarBuilder &builder, const nlohmann::ordered_json &schema, const MemberSpelling &spelling);
/// Any JSON object.
Expression addJsonObject(GrammarBuilder &builder);

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_JSONSCHEMA_H
