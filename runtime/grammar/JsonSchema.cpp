//===- JsonSchema.cpp -----------------------------------------------------===//
#include "runtime/grammar/JsonSchema.h"
#include "runtime/grammar/JsonSchemaReader.h"
#include "runtime/grammar/GrammarLimits.h"
#include "runtime/grammar/Regex.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace llmc {

using Json = nlohmann::ordered_json;

namespace {

constexpr uint32_t kMaxSchemaDepth = 64;
// Deep ones become rules now and then, so that expressions do not get as deep.
constexpr uint32_t kDepthOfRules = 6;

constexpr const char *kAnnotations[] = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id", "$defs", "definitions"};
constexpr const char *kStringKeywords[] = {"minLength", "maxLength", "pattern", "format"};
constexpr const char *kNumberKeywords[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
constexpr const char *kArrayKeywords[] = {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"};
constexpr const char *kObjectKeywords[] = {"properties", "required", "additionalProperties"};
constexpr const char *kOtherKeywords[] = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"};

template <size_t N> bool among(const std::string &key, const char *const (&keys)[N]) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}
template <size_t N> bool hasAny(const Json &schema, const char *const (&keys)[N]) {
  return std::any_of(std::begin(keys), std::end(keys), [&](const char *key) { return schema.contains(key); });
}

} // namespace

std::string JsonSchemaReader::shown(const Json &value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

void JsonSchemaReader::fail(const std::string &path, const std::string &what) { throw GrammarError(path + ": " + what); }

//===----------------------------------------------------------------------===//
// A schema
//===----------------------------------------------------------------------===//

Expression JsonSchemaReader::read() {
  const Expression root = schema(root_, "schema", 0);
  definePending();
  return root;
}

void JsonSchemaReader::definePending() {
  while (!pending_.empty()) {
    const Pending next = pending_.back();
    pending_.pop_back();
    g_.define(next.rule, schema(*next.schema, next.path, 0));
  }
}

Expression JsonSchemaReader::schema(const Json &s, const std::string &path, uint32_t depth) {
  if (depth > kMaxSchemaDepth)
    fail(path, "expected schemas in each other at most " + std::to_string(kMaxSchemaDepth) + " deep, got more");
  if (s.is_boolean())
    return s.get<bool>() ? json_.value() : g_.choice({});
  if (!s.is_object())
    fail(path, "expected a schema (an object, true or false), got " + shown(s));
  if (depth % kDepthOfRules == kDepthOfRules - 1) {
    const Expression rule = g_.rule(path);
    g_.define(rule, body(s, path, depth));
    return rule;
  }
  return body(s, path, depth);
}

void JsonSchemaReader::checkKeywords(const Json &s, const std::string &path) {
  for (const auto &[key, value] : s.items())
    if (!among(key, kAnnotations) && !among(key, kStringKeywords) && !among(key, kNumberKeywords) && !among(key, kArrayKeywords) &&
        !among(key, kObjectKeywords) && !among(key, kOtherKeywords) && !key.starts_with("x-"))
      fail(path + "." + key, "this keyword is not supported");
}

/// What stands alone: nothing that asserts may be beside it but `beside`.
void JsonSchemaReader::expectAlone(const Json &s, const std::string &path, const std::string &keyword, const std::string &beside) {
  for (const auto &[key, value] : s.items())
    if (key != keyword && key != beside && !among(key, kAnnotations) && !key.starts_with("x-"))
      fail(path + "." + key, "not supported beside " + keyword);
}

Expression JsonSchemaReader::body(const Json &s, const std::string &path, uint32_t depth) {
  checkKeywords(s, path);
  if (s.contains("$ref")) {
    expectAlone(s, path, "$ref", "");
    return reference(s["$ref"], path + ".$ref");
  }
  for (const char *keyword : {"const", "enum"})
    if (s.contains(keyword))
      return values(s, path, keyword);
  for (const char *keyword : {"anyOf", "oneOf", "allOf"})
    if (s.contains(keyword))
      return alternatives(s, path, keyword, depth);
  return ofTypes(s, path, depth);
}

Expression JsonSchemaReader::values(const Json &s, const std::string &path, const std::string &keyword) {
  expectAlone(s, path, keyword, "type");
  const Json all = keyword == "const" ? Json::array({s["const"]}) : s["enum"];
  if (!all.is_array() || all.empty())
    fail(path + ".enum", "expected a list of at least one value, got " + shown(all));
  const uint32_t allowed = s.contains("type") ? typesNamed(s["type"], path + ".type") : kAnyType;
  std::vector<Expression> ways;
  for (const Json &value : all)
    if (typeOf(value) & allowed)
      ways.push_back(g_.literal(value.dump()));
  if (ways.empty())
    fail(path + "." + keyword, "expected a value of the type beside it, got " + shown(s[keyword]));
  return g_.choice(std::move(ways));
}

Expression JsonSchemaReader::alternatives(const Json &s, const std::string &path, const std::string &keyword, uint32_t depth) {
  expectAlone(s, path, keyword, "type");
  const Json &all = s[keyword];
  const std::string place = path + "." + keyword;
  if (!all.is_array() || all.empty())
    fail(place, "expected a list of at least one schema, got " + shown(all));
  if (s.contains("type"))
    for (size_t i = 0; i < all.size(); ++i)
      if (typesOf(all[i], 0) & ~typesNamed(s["type"], path + ".type"))
        fail(place + "[" + std::to_string(i) + "]", "expected the type to be said here, too, and to be one of those beside " + keyword);
  if (keyword == "allOf" && all.size() > 1)
    fail(place, "expected one schema, got " + std::to_string(all.size()) + "; more are not supported");
  if (keyword == "oneOf")
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (!apart(all[j], all[i]))
          fail(place, "expected schemas that no value fulfils two of (by type, const, enum, or a required property's const), got " + std::to_string(j) + " and " +
                          std::to_string(i) + "; anyOf has no such condition");
  std::vector<Expression> ways;
  for (size_t i = 0; i < all.size(); ++i)
    ways.push_back(schema(all[i], place + "[" + std::to_string(i) + "]", depth + 1));
  return g_.choice(std::move(ways));
}

Expression JsonSchemaReader::ofTypes(const Json &s, const std::string &path, uint32_t depth) {
  uint32_t types = s.contains("type") ? typesNamed(s["type"], path + ".type") : typesOf(s, 0);
  std::vector<Expression> ways;
  if (types == kAnyType && !s.contains("type")) // nothing is said
    return json_.value();
  if (types & kNull)
    ways.push_back(g_.literal("null"));
  if (types & kBoolean)
    ways.push_back(g_.choice({g_.literal("true"), g_.literal("false")}));
  if (types & (kInteger | kNumber))
    ways.push_back(number(s, path, !(types & kNumber)));
  if (types & kString)
    ways.push_back(string(s, path));
  if (types & kArray)
    ways.push_back(array(s, path, depth));
  if (types & kObject)
    ways.push_back(object(s, path, depth));
  return g_.choice(std::move(ways));
}

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

const Json &JsonSchemaReader::target(const Json &ref, const std::string &path) const {
  if (!ref.is_string() || !ref.get<std::string>().starts_with("#"))
    fail(path, "expected a place in this schema (#, #/$defs/...), got " + shown(ref));
  const std::string text = ref.get<std::string>().substr(1);
  std::string pointer;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(&text[i + 1], &text[i + 3], value, 16).ptr == &text[i + 3]) {
      pointer += char(value);
      i += 2;
    } else {
      pointer += text[i];
    }
  }
  try {
    return root_.at(Json::json_pointer(pointer));
  } catch (const Json::exception &) {
    fail(path, "expected a place in this schema (#, #/$defs/...), got " + shown(ref));
  }
}

Expression JsonSchemaReader::reference(const Json &ref, const std::string &path) {
  const Json &there = target(ref, path);
  const auto [at, isNew] = references_.try_emplace(&there, Expression{0});
  if (isNew) {
    const std::string name = "schema" + ref.get<std::string>();
    at->second = g_.rule(name);
    pending_.push_back({at->second, &there, name});
  }
  return at->second;
}

//===----------------------------------------------------------------------===//
// Values of one type
//===----------------------------------------------------------------------===//

uint32_t JsonSchemaReader::count(const Json &s, const char *keyword, const std::string &path, uint32_t otherwise) {
  if (!s.contains(keyword))
    return otherwise;
  const Json &value = s[keyword];
  const bool whole = value.is_number_unsigned() || (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()) && value.get<double>() >= 0);
  if (!whole || value.get<double>() > kMaxRepeats)
    fail(path + "." + keyword, "expected a whole number from 0 to " + std::to_string(kMaxRepeats) + ", got " + shown(value));
  return uint32_t(value.get<double>());
}

std::pair<uint32_t, uint32_t> JsonSchemaReader::counts(const Json &s, const char *least, const char *most, const std::string &path) {
  const std::pair<uint32_t, uint32_t> bounds{count(s, least, path, 0), count(s, most, path, GrammarBuilder::kUnbounded)};
  if (bounds.first > bounds.second)
    fail(path + "." + most, "expected at least " + std::to_string(bounds.first) + " (" + least + "), got " + std::to_string(bounds.second));
  return bounds;
}

Expression JsonSchemaReader::string(const Json &s, const std::string &path) {
  const auto [least, most] = counts(s, "minLength", "maxLength", path);
  if (!s.contains("pattern") && !s.contains("format"))
    return json_.string(least, most);
  return json_.quoted(pattern(s, path, [this](const CharacterSet &set) { return json_.character(set); }));
}

/// Of a `pattern` or `format`, without quotes.
Expression JsonSchemaReader::pattern(const Json &s, const std::string &path, const std::function<Expression(const CharacterSet &)> &spell) {
  const char *keyword = s.contains("pattern") ? "pattern" : "format";
  for (const char *other : {"minLength", "maxLength", "format"})
    if (keyword != std::string(other) && s.contains(other))
      fail(path + "." + other, "not supported beside " + std::string(keyword));
  if (!s[keyword].is_string())
    fail(path + "." + keyword, "expected a string, got " + shown(s[keyword]));
  std::string regex = s[keyword].get<std::string>();
  if (keyword == std::string("format")) {
    const char *known = jsonFormatPattern(regex);
    if (!known)
      fail(path + ".format", "expected one of " + jsonFormatNames() + ", got " + shown(s["format"]));
    regex = known;
  }
  RegexOptions options;
  options.search = true;
  options.spell = spell;
  try {
    return addRegex(g_, regex, options);
  } catch (const GrammarError &error) {
    fail(path + "." + keyword, error.what());
  }
}

std::optional<NumberBound> JsonSchemaReader::bound(const Json &s, const char *keyword, const std::string &path, bool strict) {
  if (!s.contains(keyword))
    return std::nullopt;
  const Json &value = s[keyword];
  if (!value.is_number())
    fail(path + "." + keyword, "expected a number, got " + shown(value));
  char text[400];
  char *end = value.is_number_float() ? std::to_chars(text, text + sizeof text, value.get<double>(), std::chars_format::fixed).ptr
                                      : text + value.dump().copy(text, sizeof text);
  std::string digits(text, end);
  NumberBound b;
  b.strict = strict;
  b.negative = digits[0] == '-';
  digits.erase(0, b.negative);
  const size_t point = std::min(digits.find('.'), digits.size());
  b.integer = digits.substr(0, point);
  if (point < digits.size())
    b.fraction = digits.substr(point + 1);
  while (!b.fraction.empty() && b.fraction.back() == '0')
    b.fraction.pop_back();
  if (b.integer == "0" && b.fraction.empty())
    b.negative = false;
  return b;
}

Expression JsonSchemaReader::number(const Json &s, const std::string &path, bool whole) {
  const auto tighter = [&](const char *keyword, const char *strict, double sign) {
    const auto plain = bound(s, keyword, path, false), exclusive = bound(s, strict, path, true);
    if (plain && exclusive)
      return sign * s[strict].get<double>() >= sign * s[keyword].get<double>() ? exclusive : plain;
    return plain ? plain : exclusive;
  };
  const auto least = tighter("minimum", "exclusiveMinimum", 1), most = tighter("maximum", "exclusiveMaximum", -1);
  if (!least && !most)
    return whole ? json_.integer() : json_.number();
  const Expression range = numberRange(g_, least, most, whole);
  if (!g_.allowsText(range))
    fail(path, "expected bounds that leave " + std::string(whole ? "an integer" : "a number") + " of at most " + (whole ? "18" : "15") + " digits, got none");
  return range;
}

Expression JsonSchemaReader::array(const Json &s, const std::string &path, uint32_t depth) {
  if (s.contains("uniqueItems") && s["uniqueItems"] != false)
    fail(path + ".uniqueItems", "not supported");
  auto [least, most] = counts(s, "minItems", "maxItems", path);
  std::vector<Expression> first;
  if (s.contains("prefixItems")) {
    const Json &prefix = s["prefixItems"];
    if (!prefix.is_array() || prefix.empty())
      fail(path + ".prefixItems", "expected a list of at least one schema, got " + shown(prefix));
    for (size_t i = 0; i < prefix.size() && i < most; ++i)
      first.push_back(schema(prefix[i], path + ".prefixItems[" + std::to_string(i) + "]", depth + 1));
  }
  const bool closed = s.contains("items") && s["items"] == false;
  if (closed)
    most = std::min(most, uint32_t(first.size()));
  if (least > most)
    fail(path + ".minItems", "expected at most " + std::to_string(most) + " items, as there are schemas for, got " + std::to_string(least));
  if (most == 0)
    return g_.sequence({g_.literal("["), json_.space(), g_.literal("]")});
  const auto rest = [&] { return s.contains("items") ? schema(s["items"], path + ".items", depth + 1) : json_.value(); };
  return json_.brackets(items(first, rest, std::max(least, 1u), most), least == 0);
}

/// `least`: at least one.
Expression JsonSchemaReader::items(const std::vector<Expression> &first, const std::function<Expression()> &rest, uint32_t least, uint32_t most) {
  Expression tail = g_.literal("");
  const uint32_t count = uint32_t(first.size());
  const auto minus = [&](uint32_t n) { return n == GrammarBuilder::kUnbounded ? n : n - std::min(n, std::max(count, 1u)); };
  if (most > count) {
    const Expression item = rest();
    tail = g_.repeat(g_.sequence({json_.comma(), item}), minus(least), minus(most));
    if (count == 0)
      return g_.sequence({item, tail});
  }
  for (uint32_t i = count; i-- > 1;) {
    tail = g_.sequence({json_.comma(), first[i], tail});
    if (i >= least)
      tail = g_.optional(tail);
  }
  return g_.sequence({first[0], tail});
}

Expression JsonSchemaReader::object(const Json &s, const std::string &path, uint32_t depth) {
  static const Json none = Json::object(), yes = true;
  const Json &properties = s.contains("properties") ? s["properties"] : none;
  if (!properties.is_object())
    fail(path + ".properties", "expected an object of schemas, got " + shown(properties));
  const std::vector<std::string> required = requiredOf(s, path);
  // What is not said to be open is closed, but for an object of which nothing is said.
  const bool open = s.contains("additionalProperties") ? s["additionalProperties"] != false : !s.contains("properties");
  const Json &others = s.contains("additionalProperties") ? s["additionalProperties"] : yes;
  if (open && properties.empty() && required.empty() && others == true)
    return json_.object();
  const std::string othersPath = path + ".additionalProperties";

  std::vector<GrammarBuilder::Item> items;
  std::vector<std::string> names;
  auto add = [&](const std::string &name, const Json &value, const std::string &valuePath, bool needed) {
    names.push_back(name);
    if (value != false || needed)
      items.push_back({json_.member(g_.literal(Json(name).dump()), schema(value, valuePath, depth + 1)), needed});
  };
  for (const auto &[name, value] : properties.items())
    add(name, value, path + ".properties." + name, std::ranges::find(required, name) != required.end());
  for (const std::string &name : required)
    if (std::ranges::find(names, name) == names.end()) {
      if (!open)
        fail(path + ".required", "expected names of properties, got " + shown(name));
      add(name, others, othersPath, true);
    }
  if (open) {
    const Expression key = names.empty() ? json_.string() : otherKey(names, othersPath), pair = json_.member(key, schema(others, othersPath, depth + 1));
    items.push_back({g_.sequence({pair, g_.repeat(g_.sequence({json_.comma(), pair}), 0)}), false});
  }
  const bool mayBeEmpty = std::ranges::none_of(items, &GrammarBuilder::Item::required);
  if (items.empty())
    return g_.sequence({g_.literal("{"), json_.space(), g_.literal("}")});
  return json_.braces(g_.list(std::move(items), json_.comma()), mayBeEmpty);
}

Expression JsonSchemaReader::otherKey(const std::vector<std::string> &names, const std::string &path) {
  try {
    return json_.otherKey(names);
  } catch (const GrammarError &error) {
    fail(path, error.what());
  }
}

Expression addJsonSchema(GrammarBuilder &builder, const Json &schema) { return JsonSchemaReader(builder, schema).read(); }

Expression addJsonObject(GrammarBuilder &builder) { return JsonText(builder).object(); }

} // namespace llmc
