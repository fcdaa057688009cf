//===- JsonFields.cpp -----------------------------------------------------===//
#include "runtime/tool/JsonFields.h"
#include "runtime/tool/CompletionRequest.h"

#include <algorithm>
#include <cmath>

namespace llmc::fields {

using Json = nlohmann::ordered_json;

void wrong(const std::string &field, const std::string &expected, const Json &got) {
  std::string text = jsonText(got);
  if (text.size() > 60)
    text = text.substr(0, 60) + "...";
  throw BadRequest(field, "expected " + expected + ", got " + text);
}

// 5.0 is a whole number, as in JSON's schemas.
int64_t whole(const std::string &field, const Json &value, int64_t least, int64_t most) {
  if (value.is_number_float() && std::abs(value.get<double>()) <= 0x1p53 && std::trunc(value.get<double>()) == value.get<double>())
    return whole(field, Json(int64_t(value.get<double>())), least, most);
  const std::string expected = "a whole number from " + std::to_string(least) + (most == INT64_MAX ? " on" : " to " + std::to_string(most));
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)) {
    if (most != INT64_MAX)
      wrong(field, expected, value);
    return most; // more than any limit
  }
  if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > most)
    wrong(field, expected, value);
  return value.get<int64_t>();
}

bool boolean(const std::string &field, const Json &value) {
  if (!value.is_boolean())
    wrong(field, "true or false", value);
  return value.get<bool>();
}

std::string text(const std::string &field, const Json &value) {
  if (!value.is_string())
    wrong(field, "a string", value);
  return value.get<std::string>();
}

void object(const std::string &field, const Json &value, std::initializer_list<std::string_view> keys) {
  if (!value.is_object())
    wrong(field, "an object", value);
  for (const auto &[key, item] : value.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw BadRequest(field + "." + key, "unknown or not supported");
}

} // namespace llmc::fields
