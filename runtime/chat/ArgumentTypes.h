//===- ArgumentTypes.h - of which JSON types arguments are ------*- C++ -*-===//
//
// Formats that write arguments between marks write strings as they are: what a text is
// shows in the function's schema.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_ARGUMENTTYPES_H
#define LLMC_RUNTIME_CHAT_ARGUMENTTYPES_H

#include "runtime/grammar/JsonSchema.h"

#include <map>

namespace llmc {

struct ArgumentTypes {
  std::map<std::string, uint32_t, std::less<>> named; // bits of JsonTypes
  uint32_t others = JsonTypes::kAny;

  uint32_t of(std::string_view argument) const {
    const auto found = named.find(argument);
    return found == named.end() ? others : found->second;
  }
};

/// By the names of functions.
using FunctionTypes = std::map<std::string, ArgumentTypes, std::less<>>;

/// `parameters`: a schema of an object, or null. What it does not say, or says wrong, may be anything.
ArgumentTypes argumentTypesOf(const nlohmann::ordered_json &parameters);

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_ARGUMENTTYPES_H
