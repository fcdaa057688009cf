//===- JsonObject.h - checked reading of a package's JSON -------*- C++ -*-===//
#ifndef LLMC_RUNTIME_PACKAGE_JSONOBJECT_H
#define LLMC_RUNTIME_PACKAGE_JSONOBJECT_H

#include "llmc/Support/Error.h"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace llmc {

using Json = nlohmann::ordered_json;

/// A hash as 16 hexadecimal digits.
inline std::string hexDigits(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// Reads keys of one object and names them in errors.
class JsonObject {
public:
  JsonObject(const Json &json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object())
      throw Error(where_ + ": expected an object, got " + json.type_name());
  }

  JsonObject object(const char *key) const { return JsonObject(at(key), where_ + "." + key); }
  const Json &array(const char *key) const {
    const Json &value = at(key);
    if (!value.is_array())
      wrong(key, "an array", value);
    return value;
  }
  std::string text(const char *key) const {
    const Json &value = at(key);
    if (!value.is_string())
      wrong(key, "a string", value);
    return value.get<std::string>();
  }
  bool boolean(const char *key) const {
    const Json &value = at(key);
    if (!value.is_boolean())
      wrong(key, "true or false", value);
    return value.get<bool>();
  }
  template <typename T> T number(const char *key) const { return toNumber<T>(at(key), key); }
  template <typename T> T toNumber(const Json &value, const char *key) const {
    if constexpr (std::is_signed_v<T>) {
      if (value.is_number_integer() && value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max())
        return value.get<T>();
    } else if (value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<T>::max()) {
      return value.get<T>();
    }
    wrong(key, std::is_signed_v<T> ? "an integer" : "a non-negative integer", value);
  }
  /// A number of at least 0, of any spelling.
  double amount(const char *key) const {
    const Json &value = at(key);
    if (!value.is_number() || !(value.get<double>() >= 0))
      wrong(key, "a number of at least 0", value);
    return value.get<double>();
  }
  uint64_t hash(const char *key) const {
    const std::string digits = text(key);
    if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
      wrong(key, "16 hexadecimal digits", at(key));
    return std::stoull(digits, nullptr, 16);
  }
  std::vector<std::string> texts(const char *key) const {
    std::vector<std::string> result;
    for (const Json &item : array(key)) {
      if (!item.is_string())
        wrong(key, "strings", item);
      result.push_back(item.get<std::string>());
    }
    return result;
  }
  bool has(const char *key) const { return json_.contains(key); }
  const std::string &where() const { return where_; }
  [[noreturn]] void wrong(const char *key, const std::string &expected, const Json &value) const {
    throw Error(where_ + "." + key + ": expected " + expected + ", got " +
                value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80));
  }

private:
  const Json &at(const char *key) const {
    auto it = json_.find(key);
    if (it == json_.end())
      throw Error(where_ + ": no key '" + key + "'");
    return *it;
  }

  const Json &json_;
  std::string where_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_JSONOBJECT_H
