//===- JsonSchemaTypes.cpp - which values a schema can take at all --------===//
#include "runtime/grammar/GrammarBuilder.h"
#include "runtime/grammar/JsonSchemaReader.h"

#include <algorithm>

namespace llmc {

using Json = nlohmann::ordered_json;

static constexpr uint32_t kMaxFollowed = 16; // references and schemas in each other

uint32_t JsonSchemaReader::typeOf(const Json &value) {
  switch (value.type()) {
  case Json::value_t::null:
    return kNull;
  case Json::value_t::boolean:
    return kBoolean;
  case Json::value_t::number_integer:
  case Json::value_t::number_unsigned:
    return kInteger | kNumber;
  case Json::value_t::number_float:
    return kNumber;
  case Json::value_t::string:
    return kString;
  case Json::value_t::array:
    return kArray;
  case Json::value_t::discarded:
    return 0;
  default:
    return kObject;
  }
}

uint32_t JsonSchemaReader::typesNamed(const Json &type, const std::string &path) {
  static const std::pair<const char *, uint32_t> kNames[] = {{"null", kNull}, {"boolean", kBoolean}, {"integer", kInteger}, {"number", kInteger | kNumber}, {"string", kString}, {"array", kArray}, {"object", kObject}};
  uint32_t types = 0;
  for (const Json &name : type.is_array() ? type : Json::array({type})) {
    const auto known = std::ranges::find_if(kNames, [&](const auto &known) { return name == known.first; });
    if (known == std::end(kNames))
      fail(path, "expected null, boolean, integer, number, string, array, object or a list of them, got " + shown(type));
    types |= known->second;
  }
  if (!types)
    fail(path, "expected at least one type, got none");
  return types;
}

/// What it refers to, if it does.
const Json &JsonSchemaReader::followed(const Json &schema) const {
  const Json *at = &schema;
  for (uint32_t i = 0; i < kMaxFollowed && at->is_object() && at->contains("$ref"); ++i)
    at = &target((*at)["$ref"], "schema");
  return *at;
}

/// The types that a schema says, or that its keywords are about; of one that says nothing, all.
uint32_t JsonSchemaReader::typesOf(const Json &schema, uint32_t depth) const {
  const Json &s = followed(schema);
  if (!s.is_object() || depth > kMaxFollowed)
    return s == false ? 0 : kAnyType;
  if (s.contains("type"))
    return typesNamed(s["type"], "schema.type");
  uint32_t types = 0;
  if (const auto values = valuesOf(s, depth)) {
    for (const Json &value : *values)
      types |= typeOf(value);
    return types;
  }
  for (const char *keyword : {"anyOf", "oneOf", "allOf"})
    if (s.contains(keyword) && s[keyword].is_array()) {
      for (const Json &alternative : s[keyword])
        types |= typesOf(alternative, depth + 1);
      return types;
    }
  const auto about = [&](std::initializer_list<const char *> keywords, uint32_t type) {
    if (std::ranges::any_of(keywords, [&](const char *keyword) { return s.contains(keyword); }))
      types |= type;
  };
  about({"minLength", "maxLength", "pattern", "format"}, kString);
  about({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}, kInteger | kNumber);
  about({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}, kArray);
  about({"properties", "required", "additionalProperties"}, kObject);
  return types ? types : kAnyType;
}

/// The values of a schema that lists them.
std::optional<std::vector<Json>> JsonSchemaReader::valuesOf(const Json &schema, uint32_t depth) const {
  const Json &s = followed(schema);
  if (!s.is_object() || depth > kMaxFollowed)
    return std::nullopt;
  if (s.contains("const"))
    return std::vector<Json>{s["const"]};
  if (s.contains("enum") && s["enum"].is_array())
    return std::vector<Json>(s["enum"].begin(), s["enum"].end());
  return std::nullopt;
}

/// No value fulfils both, as far as types, lists of values and required properties tell.
bool JsonSchemaReader::apart(const Json &first, const Json &second) const {
  if (!(typesOf(first, 0) & typesOf(second, 0)))
    return true;
  const auto none = [](const std::vector<Json> &a, const std::vector<Json> &b) {
    return std::ranges::none_of(a, [&](const Json &x) { return std::ranges::find(b, x) != b.end(); });
  };
  const auto valuesOfFirst = valuesOf(first, 0), valuesOfSecond = valuesOf(second, 0);
  if (valuesOfFirst && valuesOfSecond)
    return none(*valuesOfFirst, *valuesOfSecond);
  const Json &a = followed(first), &b = followed(second);
  const auto isRequired = [](const Json &s, const std::string &name) {
    return s.contains("required") && s["required"].is_array() && std::ranges::find(s["required"], Json(name)) != s["required"].end();
  };
  if (typesOf(a, 0) != kObject || typesOf(b, 0) != kObject || !a.contains("properties") || !b.contains("properties") || !a["properties"].is_object() ||
      !b["properties"].is_object())
    return false;
  for (const auto &[name, property] : a["properties"].items()) {
    if (!b["properties"].contains(name) || !isRequired(a, name) || !isRequired(b, name))
      continue;
    const auto x = valuesOf(property, 0), y = valuesOf(b["properties"][name], 0);
    if (x && y && none(*x, *y))
      return true;
  }
  return false;
}

uint32_t jsonTypeOf(const Json &value) { return JsonSchemaReader::typeOf(value); }

uint32_t jsonTypesOf(const Json &root, const Json &schema) {
  GrammarBuilder unused;
  return JsonSchemaReader(unused, root).typesOf(schema, 0);
}

} // namespace llmc
