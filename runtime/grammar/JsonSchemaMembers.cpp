//===- JsonSchemaMembers.cpp - objects whose members are no JSON ----------===//
#include "runtime/grammar/JsonSchema.h"
#include "runtime/grammar/JsonSchemaReader.h"
#include "runtime/grammar/Regex.h"

#include <algorithm>

namespace llmc {

using Json = nlohmann::ordered_json;

static constexpr uint32_t kMaxTextDepth = 16; // alternatives and references in each other

std::vector<std::string> JsonSchemaReader::requiredOf(const Json &s, const std::string &path) {
  std::vector<std::string> required;
  if (!s.contains("required"))
    return required;
  if (!s["required"].is_array())
    fail(path + ".required", "expected a list of names, got " + shown(s["required"]));
  for (const Json &name : s["required"]) {
    if (!name.is_string())
      fail(path + ".required", "expected a list of names, got " + shown(s["required"]));
    required.push_back(name.get<std::string>());
  }
  return required;
}

Expression JsonSchemaReader::readMembers(const MemberSpelling &spelling) {
  static const Json none = Json::object();
  const std::string path = "schema";
  const Json &s = followed(root_);
  if (!s.is_object() || typesOf(s, 0) != kObject || s.contains("anyOf") || s.contains("oneOf") || s.contains("allOf") || s.contains("enum") || s.contains("const"))
    fail(path, "expected an object with properties, as this model writes arguments one by one, got " + shown(s));
  checkKeywords(s, path);
  const Json &properties = s.contains("properties") ? s["properties"] : none;
  if (!properties.is_object())
    fail(path + ".properties", "expected an object of schemas, got " + shown(properties));
  const std::vector<std::string> required = requiredOf(s, path);
  const bool open = s.contains("additionalProperties") ? s["additionalProperties"] != false : !s.contains("properties");
  std::vector<GrammarBuilder::Item> items;
  for (const auto &[name, value] : properties.items()) {
    const bool needed = std::ranges::find(required, name) != required.end();
    if (value != false || needed)
      items.push_back({memberOf(name, value, path + ".properties." + name, spelling), needed});
  }
  for (const std::string &name : required)
    if (!properties.contains(name)) {
      if (!open)
        fail(path + ".required", "expected names of properties, got " + shown(name));
      items.push_back({memberOf(name, s.contains("additionalProperties") ? s["additionalProperties"] : Json(true), path + ".additionalProperties", spelling), true});
    }
  const bool anyName = items.empty() && open && (!s.contains("additionalProperties") || s["additionalProperties"] == true);
  Expression members = anyName ? g_.repeat(g_.sequence({spelling.openAny, spelling.anyText}), 0) : g_.literal("");
  if (!items.empty()) {
    const bool mayBeEmpty = std::ranges::none_of(items, &GrammarBuilder::Item::required);
    members = g_.list(std::move(items), g_.literal(""));
    if (mayBeEmpty)
      members = g_.optional(members);
  }
  definePending();
  return members;
}

Expression JsonSchemaReader::memberOf(const std::string &name, const Json &s, const std::string &path, const MemberSpelling &spelling) {
  if (const Json &there = followed(s); there.is_object())
    checkKeywords(there, path);
  if (takesAnyString(s, 0))
    return g_.sequence({spelling.open(name, true), spelling.anyText});
  const bool asText = typesOf(s, 0) == kString;
  const Expression value = asText ? text(s, path, spelling, 0) : schema(s, path, 1);
  return g_.sequence({spelling.open(name, asText), spelling.pad, value, spelling.close});
}

/// Whatever comes, read as null or as text, is of the schema.
bool JsonSchemaReader::takesAnyString(const Json &schema, uint32_t depth) const {
  const Json &s = followed(schema);
  if (s == true || (s.is_object() && s.empty()))
    return true;
  if (!s.is_object() || depth > kMaxTextDepth)
    return false;
  const uint32_t types = typesOf(s, 0);
  if ((types & ~(kString | kNull)) || !(types & kString))
    return false;
  for (const char *keyword : {"enum", "const", "pattern", "format", "minLength", "maxLength", "oneOf", "allOf"})
    if (s.contains(keyword))
      return false;
  if (!s.contains("anyOf"))
    return true;
  return !s.contains("type") && std::ranges::any_of(s["anyOf"], [&](const Json &one) { return takesAnyString(one, depth + 1); });
}

Expression JsonSchemaReader::text(const Json &schema, const std::string &path, const MemberSpelling &spelling, uint32_t depth) {
  const Json &s = followed(schema);
  if (depth > kMaxTextDepth)
    fail(path, "expected schemas in each other at most " + std::to_string(kMaxTextDepth) + " deep, got more");
  if (s.is_object())
    checkKeywords(s, path);
  for (const char *keyword : {"const", "enum"})
    if (s.contains(keyword)) {
      expectAlone(s, path, keyword, "type");
      std::vector<Expression> ways;
      const std::optional<std::vector<Json>> all = valuesOf(s, 0);
      if (!all)
        fail(path + ".enum", "expected a list of at least one value, got " + shown(s["enum"]));
      for (const Json &value : *all)
        if (value.is_string() && value.get_ref<const std::string &>().find(spelling.mark) == std::string::npos)
          ways.push_back(g_.literal(value.get<std::string>()));
      if (ways.empty())
        fail(path + "." + keyword, "expected a string without " + spelling.mark + ", got " + shown(s[keyword]));
      return g_.choice(std::move(ways));
    }
  for (const char *keyword : {"anyOf", "oneOf", "allOf"})
    if (s.contains(keyword)) {
      alternatives(s, path, keyword, 1); // complains of what is wrong with them
      std::vector<Expression> ways;
      for (size_t i = 0; i < s[keyword].size(); ++i)
        ways.push_back(text(s[keyword][i], path + "." + keyword + "[" + std::to_string(i) + "]", spelling, depth + 1));
      return g_.choice(std::move(ways));
    }
  const auto spell = [&](const CharacterSet &set) { return g_.character(set & spelling.forbidden.complement()); };
  if (s.contains("pattern") || s.contains("format"))
    return pattern(s, path, spell);
  const auto [least, most] = counts(s, "minLength", "maxLength", path);
  return g_.repeat(spell(CharacterSet::all()), least, most);
}

Expression addJsonSchemaMembers(GrammarBuilder &builder, const Json &schema, const MemberSpelling &spelling) {
  return JsonSchemaReader(builder, schema).readMembers(spelling);
}

} // namespace llmc
