//===- Json.h - JSON from untrusted files -----------------------*- C++ -*-===//
//
// A JSON text as a tree that remembers byte positions, so that every complaint
// names the file, the key and the byte. Rules: UTF-8, a byte-order mark at the
// start is skipped, CRLF is white space; members keep their order; a repeated key,
// more than 128 levels or 2^23 values, UTF-16, comments, trailing commas, NaN and
// numbers beyond a double are errors. A whole number of any spelling (64, 64.0, 6.4e1)
// is an integer if it is below 2^53 in size, or is written as one below 2^63.
//
// The parser is nlohmann_json's; it is hidden in Json.cpp to keep this header light.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_SUPPORT_JSON_H
#define LLMC_SUPPORT_JSON_H

#include "llmc/Support/Error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace llmc {

struct JsonMember;

struct JsonNode {
  using Array = std::vector<JsonNode>;
  using Object = std::vector<JsonMember>;
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value;
  uint64_t position = 0; // byte in the file just after the value's first token

  bool isNull() const { return value.index() == 0; }
  const std::string *string() const { return std::get_if<std::string>(&value); }
  const Array *array() const { return std::get_if<Array>(&value); }
  const Object *object() const { return std::get_if<Object>(&value); }
};

struct JsonMember {
  std::string key;
  JsonNode node;
};

/// A node and how it was reached. Cheap to copy; valid as long as the document.
class JsonView {
public:
  JsonView(const std::string &file, const JsonNode &node, std::string path)
      : file(&file), json(&node), keyPath(std::move(path)) {}

  const JsonNode &node() const { return *json; }
  const std::string &path() const { return keyPath; } // "rope_scaling.factor"

  /// The member `key`: get throws when it is absent, find gives nothing when it is
  /// absent or null. Both throw if this is no object.
  JsonView get(std::string_view key) const;
  std::optional<JsonView> find(std::string_view key) const;
  /// The i-th element of an array; a member that iteration over object() gave.
  JsonView at(size_t index) const;
  JsonView at(const JsonMember &member) const;

  const JsonNode::Array &array() const;
  const JsonNode::Object &object() const;
  const std::string &string() const;
  bool boolean() const;
  double number() const;
  /// An integer; 64.0 counts as one, 64.5 is refused.
  int64_t integer() const;

  bool isString() const { return json->string() != nullptr; }
  bool isArray() const { return json->array() != nullptr; }
  bool isObject() const { return json->object() != nullptr; }

  /// "FILE: KEY: message (byte N)" as an exception to throw.
  Error error(const std::string &message) const;
  /// error("expected X, got <this value>").
  Error expected(const std::string &what) const;

private:
  const std::string *file;
  const JsonNode *json;
  std::string keyPath;
};

class JsonDocument {
public:
  /// Parses `text`; `file` is used in messages only. Throws Error.
  static JsonDocument parse(std::string_view text, std::string file);
  static JsonDocument readFile(const std::string &path);

  JsonView root() const { return JsonView(file, *tree, ""); }

private:
  std::string file;
  std::unique_ptr<JsonNode> tree;
};

} // namespace llmc

#endif // LLMC_SUPPORT_JSON_H
