// Which values a schema lets through, which keywords are refused, and that it takes no time.
#include "../../ErrorOf.h"
#include "Grammars.h"
#include "runtime/grammar/ConstraintSource.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace llmc;
using namespace llmc::grammars;

namespace {

std::shared_ptr<const Grammar> schema(const std::string &text) { return compileGrammar({ConstraintSource::Kind::JsonSchema, text}); }

TEST(JsonSchema, Texts) {
  const struct {
    const char *schema;
    std::vector<std::string> good, bad;
  } cases[] = {
      {R"({"type": "string"})", {R"("")", R"("a\n\u00e9é\ud83d\ude00")"}, {R"("\ud83d")", R"("\ude00")", "\"\n\"", R"("\x")", "1"}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})", {R"("日é")", R"("\ud83d\ude00ab")", R"("\\\"")"}, {R"("a")", R"("abcd")"}},
      {R"({"type": "integer"})", {"0", "-12", "123456789012345678"}, {"01", "-0", "1.0", "+1"}},
      {R"({"type": "number"})", {"0", "-0.5", "1e-9", "2.5E+10"}, {".5", "1.", "1e999", "NaN"}},
      {R"({"type": "integer", "minimum": -12, "maximum": 205})", {"-12", "-9", "0", "7", "99", "100", "205"}, {"-13", "-20", "206", "210", "1000", "-0"}},
      {R"({"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 21})", {"10", "20"}, {"9", "21", "8"}},
      {R"({"type": "number", "minimum": 0.25, "maximum": 1.5})", {"0.25", "0.250", "1", "1.5", "1.50", "0.9"}, {"0.249", "1.51", "0", "0.2", "-0.5", "2"}},
      {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})", {"0.1", "0.001", "0.999"}, {"0", "0.0", "0.000", "1", "1.0", "-0.1"}},
      {R"({"type": "number", "minimum": -1.5, "exclusiveMaximum": -0.5})", {"-1.5", "-1", "-0.51"}, {"-0.5", "-0.50", "-1.51", "0", "-0.4"}},
      {R"({"type": "number", "minimum": 1e3})", {"1000", "1000.5", "20000"}, {"999", "999.9"}},
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2})", {"[1]", "[ 1, 2 ]", "[\n  1,\n  2\n]"}, {"[]", "[1, 2, 3]", "[1,]"}},
      {R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false})", {"[]", "[1]", "[1, 2]"}, {"[2]", "[1, 2, 3]"}},
      {R"({"properties": {"a": {"type": "null"}, "b": {"const": 1}}, "required": ["b"]})", {R"({"a": null, "b": 1})", R"({"b":1})"}, {"{}", R"({"b": 1, "a": null})", R"({"b": 1, "c": 1})"}},
      {R"({"type": "object", "properties": {"ab": {"const": 1}}, "additionalProperties": {"const": 2}})",
       {"{}", R"({"ab": 1})", R"({"ab": 1, "a": 2, "abc": 2, "": 2, "é": 2})", R"({"x": 2})"},
       {R"({"ab": 2})", R"({"a": 1})", R"({"x": 2, "ab": 2})", R"({"\u0061b": 2})"}},
      {R"({"$defs": {"n": {"properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}, "required": ["next"]}}, "$ref": "#/$defs/n"})",
       {R"({"next": {"next": null}})"}, {R"({"next": 1})"}},
      {R"({"pattern": "^\"[\\\\n]\\n$"})", {R"("\"\\\n")", R"("\"n\n")"}, {R"("\"n")"}},
      {R"({"type": ["null", "boolean", "integer", "number", "string", "array", "object"], "minLength": 3, "minItems": 1})", {R"("abc")", "[1]", "{}", "1"}, {R"("ab")", "[]"}},
      {R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"}},
      {R"({"type": "string", "format": "date"})", {R"("2024-02-28")"}, {R"("2024-02-30")"}},
      {"{}", {"1", R"({"a": [true, null, {"b": []}]})"}, {"", "tru"}},
  };
  for (const auto &c : cases) {
    const auto grammar = schema(c.schema);
    for (const std::string &text : c.good)
      EXPECT_TRUE(matches(*grammar, text)) << c.schema << " : " << text;
    for (const std::string &text : c.bad)
      EXPECT_FALSE(matches(*grammar, text)) << c.schema << " : " << text;
  }
}

TEST(JsonSchema, RefusesByNameAndPlace) {
  const struct {
    const char *schema, *message;
  } cases[] = {
      {R"({"type": "object", "properties": {"a": {"type": "string", "contentEncoding": "x"}}})", "schema.properties.a.contentEncoding: this keyword is not supported"},
      {R"({"not": {}})", "schema.not: this keyword"}, {R"({"if": {}})", "schema.if"}, {R"({"multipleOf": 2})", "schema.multipleOf"},
      {R"({"patternProperties": {}})", "schema.patternProperties"}, {R"({"minProperties": 1})", "schema.minProperties"},
      {R"({"type": "array", "items": {"uniqueItems": true}})", "schema.items.uniqueItems: not supported"}, {R"({"contains": {}})", "schema.contains"},
      {R"({"$ref": "#/x"})", "schema.$ref: expected a place in this schema"}, {R"({"$ref": "other.json"})", "schema.$ref: expected a place"}, {R"({"$ref": 1})", "schema.$ref"},
      {R"({"$ref": "#", "type": "string"})", "schema.type: not supported beside $ref"}, {R"({"$ref": "#"})", "calls itself"},
      {R"({"type": "str"})", "schema.type: expected null, boolean"}, {R"({"type": []})", "at least one type"}, {R"([])", "schema: expected a schema"}, {"1", "schema: expected a schema"},
      {R"({"enum": []})", "schema.enum: expected a list"}, {R"({"enum": [1], "minimum": 0})", "schema.minimum: not supported beside enum"},
      {R"({"type": "string", "const": 1})", "schema.const: expected a value of the type"},
      {R"({"anyOf": []})", "schema.anyOf: expected a list"}, {R"({"anyOf": [{"type": "string"}], "minLength": 1})", "schema.minLength: not supported beside anyOf"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "schema.oneOf: expected schemas that no value fulfils two of"},
      {R"({"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object"}]})", "schema.oneOf"}, {R"({"allOf": [{}, {}]})", "schema.allOf: expected one schema, got 2"},
      {R"({"type": "integer", "minimum": 5, "maximum": 4})", "schema: expected bounds that leave an integer"}, {R"({"minimum": "1"})", "schema.minimum: expected a number"},
      {R"({"exclusiveMinimum": true})", "schema.exclusiveMinimum: expected a number, got true"},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", "schema.maxLength: expected at least 3"}, {R"({"minLength": -1})", "whole number"}, {R"({"maxLength": 100001})", "from 0 to 100000"},
      {R"x({"type": "string", "pattern": "(?=a)"})x", "schema.pattern: regex, byte 2"}, {R"({"pattern": "a", "minLength": 1})", "schema.minLength: not supported beside pattern"},
      {R"({"format": "regex"})", "schema.format: expected one of date"},
      {R"({"type": "array", "prefixItems": [{}], "items": false, "minItems": 2})", "schema.minItems: expected at most 1"}, {R"({"type": "array", "items": [{}]})", "schema.items: expected a schema"},
      {R"({"type": "object", "required": ["a"], "additionalProperties": false})", "schema.required: expected names of properties"}, {R"({"required": "a"})", "schema.required"},
      {R"({"type": "object", "properties": {"a": false}, "required": ["a"]})", "allows none"}, {"false", "allows none"}, {"{", "expected JSON"}, {"\"\xff\"", "expected JSON"},
      {R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})", "allows none"},
  };
  for (const auto &c : cases)
    EXPECT_NE(errorOf([&] { schema(c.schema); }).find(c.message), std::string::npos) << c.schema << ": " << errorOf([&] { schema(c.schema); });
}

std::string repeated(const std::string &text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i)
    out += text;
  return out;
}

TEST(JsonSchema, HostileOnesAreRefusedInTime) {
  std::string names, refs, wide;
  for (int i = 0; i < 3000; ++i)
    names += (i ? "," : "") + ("\"p" + std::to_string(i) + "\": {\"type\": \"string\", \"maxLength\": " + std::to_string(i + 1) + "}");
  for (int i = 0; i < 2500; ++i)
    refs += "\"d" + std::to_string(i) + "\": {\"anyOf\": [{\"$ref\": \"#/$defs/d" + std::to_string((i * 7 + 1) % 2500) + "\"}, {\"$ref\": \"#/$defs/d" + std::to_string((i * 3 + 2) % 2500) +
            "\"}, {\"type\": \"null\"}]},";
  for (int i = 0; i < 1000; ++i)
    wide += (i ? "," : "") + repeated("x", 20) + std::to_string(i);
  const struct {
    std::string name, schema;
    const char *message; // null: it may compile
  } cases[] = {
      {"arrays", repeated("[", 100000), "nested at most 200 deep"},
      {"items", repeated("{\"items\":", 60) + "{}" + repeated("}", 60), nullptr},
      {"too deep", repeated("{\"items\":", 90) + "{}" + repeated("}", 90), "at most 64 deep"},
      {"doubling", R"({"$defs": {"a": {"items": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}}, "$ref": "#/$defs/a"})", nullptr},
      {"many properties", "{\"properties\": {" + names + "}}", nullptr},
      {"many references", "{\"$defs\": {" + refs + "\"x\": {}}, \"$ref\": \"#/$defs/d0\"}", "calls itself"},
      {"pattern", R"({"pattern": "(a{1000}){1000}"})", "at most 500000 characters"},
      {"redos", R"({"pattern": "^(a+)+(b*)*((c|c)*)*$"})", nullptr},
      {"long names", "{\"properties\": {\"" + wide + "\": {}}, \"additionalProperties\": true}", "names of at most 100 characters"},
      {"too long", "{\"title\": \"" + repeated("x", 300000) + "\"}", "at most 262144 bytes"},
      {"counts", R"({"items": {"items": {"items": {"type": "string", "maxLength": 100000}, "maxItems": 100000}, "maxItems": 100000}, "maxItems": 100000})", nullptr},
  };
  for (const auto &c : cases) {
    const double start = cpuSeconds();
    const std::string message = errorOf([&] { schema(c.schema); });
    const double seconds = cpuSeconds() - start;
    EXPECT_LT(seconds, 5) << c.name << ": one second but for sanitizers";
    if (std::getenv("LLMC_SHOW_TIMES"))
      printf("%-20s %6.1f ms  %s\n", c.name.c_str(), seconds * 1e3, message.c_str());
    if (c.message)
      EXPECT_NE(message.find(c.message), std::string::npos) << c.name << ": " << message;
  }
}

TEST(ConstraintCache, KeepsWhatWasAskedForLast) {
  const auto tokens = std::make_shared<GrammarTokens>(vocabulary());
  ConstraintCache cache(2);
  const ConstraintSource a{ConstraintSource::Kind::Regex, "a"}, b{ConstraintSource::Kind::Regex, "b"}, c{ConstraintSource::Kind::Choice, R"(["x", "y z"])"};
  const auto first = cache.get(a, tokens);
  cache.get(b, tokens);
  EXPECT_EQ(cache.get(a, tokens), first);
  cache.get(c, tokens);
  EXPECT_EQ(cache.get(a, tokens), first);
  EXPECT_TRUE(matches(cache.get(c, tokens)->grammar(), "y z"));
  EXPECT_ERROR(cache.get({ConstraintSource::Kind::Regex, "("}, tokens), "regex");
  EXPECT_ERROR(cache.get({ConstraintSource::Kind::Choice, "[]"}, tokens), "expected a list of strings");
}

} // namespace
