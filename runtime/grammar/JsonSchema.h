//===- JsonSchema.h - JSON schemas as grammars ------------------*- C++ -*-===//
//
// The texts of JSON values that a schema (draft 2020-12) takes; docs/constrained.md has
// the keywords, and where fewer texts are allowed than the schema would take. A keyword
// that is not supported is refused by its name and place.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_JSONSCHEMA_H
#define LLMC_RUNTIME_GRAMMAR_JSONSCHEMA_H

#include "runtime/grammar/GrammarBuilder.h"

#include <nlohmann/json.hpp>

namespace llmc {

/// Throws GrammarError with the place in the schema ("schema.properties.x.minimum: expected ..., got ...").
Expression addJsonSchema(GrammarBuilder &builder, const nlohmann::ordered_json &schema);
/// Any JSON object.
Expression addJsonObject(GrammarBuilder &builder);

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_JSONSCHEMA_H
