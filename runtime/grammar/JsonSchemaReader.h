//===- JsonSchemaReader.h - one schema on its way to a grammar --*- C++ -*-===//
#ifndef LLMC_RUNTIME_GRAMMAR_JSONSCHEMAREADER_H
#define LLMC_RUNTIME_GRAMMAR_JSONSCHEMAREADER_H

#include "runtime/grammar/JsonSchema.h"
#include "runtime/grammar/JsonText.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace llmc {

/// A regular expression for a `format` of strings; null: not known.
const char *jsonFormatPattern(std::string_view name);
/// "date, time, ..."
std::string jsonFormatNames();

class JsonSchemaReader {
public:
  using Json = nlohmann::ordered_json;
  JsonSchemaReader(GrammarBuilder &builder, const Json &root) : g_(builder), json_(builder), root_(root) {}
  Expression read();
  /// JsonSchemaMembers.cpp
  Expression readMembers(const MemberSpelling &spelling);

private:
  friend uint32_t jsonTypeOf(const Json &value);
  friend uint32_t jsonTypesOf(const Json &root, const Json &schema);
  static constexpr uint32_t kNull = JsonTypes::kNull, kBoolean = JsonTypes::kBoolean, kInteger = JsonTypes::kInteger, kNumber = JsonTypes::kNumber,
                            kString = JsonTypes::kString, kArray = JsonTypes::kArray, kObject = JsonTypes::kObject, kAnyType = JsonTypes::kAny;
  struct Pending {
    Expression rule;
    const Json *schema;
    std::string path;
  };

  static std::string shown(const Json &value);
  [[noreturn]] static void fail(const std::string &path, const std::string &what);

  void definePending();
  Expression schema(const Json &s, const std::string &path, uint32_t depth);
  Expression body(const Json &s, const std::string &path, uint32_t depth);
  static void checkKeywords(const Json &s, const std::string &path);
  static void expectAlone(const Json &s, const std::string &path, const std::string &keyword, const std::string &beside);
  Expression values(const Json &s, const std::string &path, const std::string &keyword);
  Expression alternatives(const Json &s, const std::string &path, const std::string &keyword, uint32_t depth);
  Expression ofTypes(const Json &s, const std::string &path, uint32_t depth);
  const Json &target(const Json &ref, const std::string &path) const;
  Expression reference(const Json &ref, const std::string &path);

  Expression string(const Json &s, const std::string &path);
  Expression pattern(const Json &s, const std::string &path, const std::function<Expression(const CharacterSet &)> &spell);
  Expression number(const Json &s, const std::string &path, bool whole);
  Expression array(const Json &s, const std::string &path, uint32_t depth);
  Expression items(const std::vector<Expression> &first, const std::function<Expression()> &rest, uint32_t least, uint32_t most);
  Expression object(const Json &s, const std::string &path, uint32_t depth);
  Expression otherKey(const std::vector<std::string> &names, const std::string &path);
  static uint32_t count(const Json &s, const char *keyword, const std::string &path, uint32_t otherwise);
  static std::pair<uint32_t, uint32_t> counts(const Json &s, const char *least, const char *most, const std::string &path);
  static std::optional<NumberBound> bound(const Json &s, const char *keyword, const std::string &path, bool strict);

  // JsonSchemaMembers.cpp
  std::vector<std::string> requiredOf(const Json &s, const std::string &path);
  Expression memberOf(const std::string &name, const Json &s, const std::string &path, const MemberSpelling &spelling);
  bool takesAnyString(const Json &s, uint32_t depth) const;
  Expression text(const Json &s, const std::string &path, const MemberSpelling &spelling, uint32_t depth);

  // JsonSchemaTypes.cpp
  static uint32_t typeOf(const Json &value);
  static uint32_t typesNamed(const Json &type, const std::string &path);
  uint32_t typesOf(const Json &schema, uint32_t depth) const;
  std::optional<std::vector<Json>> valuesOf(const Json &schema, uint32_t depth) const;
  const Json &followed(const Json &schema) const;
  bool apart(const Json &a, const Json &b) const;

  GrammarBuilder &g_;
  JsonText json_;
  const Json &root_;
  std::map<const Json *, Expression> references_;
  std::vector<Pending> pending_; // rules of references that are not defined yet
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_JSONSCHEMAREADER_H
