//===- JsonFields.h - checks of the fields of a request ---------*- C++ -*-===//
//
// Each throws BadRequest with the field's name where the value is not as expected.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_JSONFIELDS_H
#define LLMC_RUNTIME_TOOL_JSONFIELDS_H

#include "llmc/Support/Error.h"

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// A mistake of whoever sent the request: `param` is the field, empty where there is none.
struct BadRequest : Error {
  BadRequest(const std::string &param, const std::string &message) : Error(param.empty() ? message : param + ": " + message), param(param) {}
  std::string param;
};

/// What reads each field of a body; its value is not null.
using FieldReaders = std::map<std::string, std::function<void(const nlohmann::ordered_json &)>>;

namespace fields {

/// "FIELD: expected EXPECTED, got GOT"
[[noreturn]] void wrong(const std::string &field, const std::string &expected, const nlohmann::ordered_json &got);
int64_t whole(const std::string &field, const nlohmann::ordered_json &value, int64_t least, int64_t most = INT64_MAX);
bool boolean(const std::string &field, const nlohmann::ordered_json &value);
std::string text(const std::string &field, const nlohmann::ordered_json &value);
/// An object without other keys than these.
void object(const std::string &field, const nlohmann::ordered_json &value, std::initializer_list<std::string_view> keys);

} // namespace fields

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_JSONFIELDS_H
