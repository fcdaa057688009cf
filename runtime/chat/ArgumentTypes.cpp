//===- ArgumentTypes.cpp --------------------------------------------------===//
#include "runtime/chat/ArgumentTypes.h"

namespace llmc {

using Json = nlohmann::ordered_json;

static uint32_t typesOr(uint32_t otherwise, const Json &root, const Json &schema) {
  try {
    const uint32_t types = jsonTypesOf(root, schema);
    return types ? types : otherwise;
  } catch (const GrammarError &) { // the grammar says what is wrong where one is asked for
    return otherwise;
  }
}

ArgumentTypes argumentTypesOf(const Json &parameters) {
  ArgumentTypes types;
  if (!parameters.is_object())
    return types;
  if (const auto others = parameters.find("additionalProperties"); others != parameters.end() && others->is_object())
    types.others = typesOr(types.others, parameters, *others);
  if (const auto properties = parameters.find("properties"); properties != parameters.end() && properties->is_object())
    for (const auto &[name, schema] : properties->items())
      types.named[name] = typesOr(JsonTypes::kAny, parameters, schema);
  return types;
}

} // namespace llmc
