//===- CompletionConstraint.cpp -------------------------------------------===//
#include "runtime/tool/CompletionConstraint.h"
#include "runtime/grammar/GrammarBuilder.h"
#include "runtime/tool/Model.h"

#include <algorithm>

namespace llmc {

using Json = nlohmann::ordered_json;
using Kind = ConstraintSource::Kind;

namespace {

[[noreturn]] void wrong(const std::string &field, const std::string &expected, const Json &got) {
  const std::string text = jsonText(got);
  throw BadRequest(field, "expected " + expected + ", got " + (text.size() > 60 ? text.substr(0, 60) + "..." : text));
}

void set(CompletionRequest &request, const std::string &field, Kind kind, std::string text) {
  if (request.constraint)
    throw BadRequest(field, "expected one field that holds the answer, got " + request.constraintField + ", too");
  request.constraintField = field;
  request.constraint = {kind, std::move(text)};
}

std::string string(const std::string &field, const Json &value) {
  if (!value.is_string())
    wrong(field, "a string", value);
  return value.get<std::string>();
}

void onlyKeys(const std::string &field, const Json &value, std::initializer_list<const char *> keys) {
  if (!value.is_object())
    wrong(field, "an object", value);
  for (const auto &[key, item] : value.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw BadRequest(field + "." + key, "unknown or not supported");
}

/// A schema as JSON, or as a string of it.
void setSchema(CompletionRequest &request, const std::string &field, const Json &value) {
  if (!value.is_object() && !value.is_boolean() && !value.is_string())
    wrong(field, "a JSON schema", value);
  set(request, field, Kind::JsonSchema, value.is_string() ? value.get<std::string>() : value.dump());
}

void readFormat(CompletionRequest &request, const Json &value) {
  const std::string field = "response_format";
  const Json type = value.is_object() && value.contains("type") ? value["type"] : Json();
  if (type == "text" || type == "json_object") {
    onlyKeys(field, value, {"type"});
    if (type == "json_object")
      set(request, field, Kind::JsonObject, "");
    return;
  }
  if (type != "json_schema")
    wrong(field, "\"type\": \"text\", \"json_object\" or \"json_schema\"", value);
  onlyKeys(field, value, {"type", "json_schema"});
  const std::string inner = field + ".json_schema";
  const Json schema = value.contains("json_schema") ? value["json_schema"] : Json();
  onlyKeys(inner, schema, {"name", "description", "schema", "strict"}); // all are strict
  if (!schema.contains("name"))
    throw BadRequest(inner + ".name", "expected a string, got none");
  string(inner + ".name", schema["name"]);
  if (schema.contains("strict") && !schema["strict"].is_boolean() && !schema["strict"].is_null())
    wrong(inner + ".strict", "true or false", schema["strict"]);
  if (!schema.contains("schema"))
    return set(request, field, Kind::JsonObject, "");
  setSchema(request, inner + ".schema", schema["schema"]);
}

void readChoice(CompletionRequest &request, const std::string &field, const Json &value) {
  if (!value.is_array())
    wrong(field, "a list of strings", value);
  set(request, field, Kind::Choice, value.dump());
}

void readStructured(CompletionRequest &request, const Json &value) {
  const std::string field = "structured_outputs";
  onlyKeys(field, value, {"json", "json_object", "regex", "choice", "grammar"});
  for (const auto &[key, item] : value.items())
    if (item.is_null() || item == false)
      continue;
    else if (key == "json_object" && item != true)
      wrong(field + ".json_object", "true or false", item);
    else if (key == "json_object")
      set(request, field + "." + key, Kind::JsonObject, "");
    else
      readConstraint(request, field + "." + key, item);
}

} // namespace

const std::vector<std::string> &constraintFields() {
  static const std::vector<std::string> fields{"response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"};
  return fields;
}

void readConstraint(CompletionRequest &request, const std::string &field, const Json &value) {
  if (field == "response_format")
    readFormat(request, value);
  else if (field == "structured_outputs")
    readStructured(request, value);
  else if (field.ends_with("json"))
    setSchema(request, field, value);
  else if (field.ends_with("choice"))
    readChoice(request, field, value);
  else
    set(request, field, field.ends_with("regex") ? Kind::Regex : Kind::Grammar, string(field, value));
}

void applyConstraint(CompletionRequest &request, Model &model) {
  if (!request.constraint)
    return;
  try {
    request.request.constraint = model.constraint(*request.constraint);
  } catch (const GrammarError &error) {
    throw BadRequest(request.constraintField, error.what());
  }
}

} // namespace llmc
