//===- Metadata.cpp - typed look-up of GGUF keys --------------------------===//
#include "../FactsChecks.h"
#include "GGUF.h"
#include "llmc/Support/Text.h"

#include <cstring>

using namespace llmc;
using namespace llmc::gguf;

const char *gguf::toString(ValueType type) {
  static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<uint32_t>(type)];
}

const Value *Metadata::find(const std::string &key) const {
  auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

void Metadata::fail(const std::string &key, const std::string &message) const {
  const Value *value = find(key);
  throw Error(path + ": key " + quote(key) + (value ? " at byte " + std::to_string(value->position) : "") +
              ": " + message);
}

void Metadata::failType(const std::string &key, const Value &value, const std::string &expected) const {
  std::string actual = toString(value.type);
  if (value.type == ValueType::Array)
    actual += std::string(" of ") + toString(value.elementType);
  fail(key, "expected " + expected + ", got type " + actual);
}

std::optional<int64_t> Metadata::integer(const std::string &key) const {
  const Value *value = find(key);
  if (!value)
    return std::nullopt;
  if (auto *number = std::get_if<uint64_t>(&value->data)) {
    if (*number > static_cast<uint64_t>(INT64_MAX))
      fail(key, "expected an integer below 2^63, got " + std::to_string(*number));
    return static_cast<int64_t>(*number);
  }
  if (auto *number = std::get_if<int64_t>(&value->data))
    return *number;
  failType(key, *value, "an integer");
}

std::optional<double> Metadata::real(const std::string &key) const {
  const Value *value = find(key);
  if (!value)
    return std::nullopt;
  if (auto *number = std::get_if<double>(&value->data))
    return *number;
  failType(key, *value, "an f32 or f64");
}

std::optional<bool> Metadata::boolean(const std::string &key) const {
  const Value *value = find(key);
  if (!value)
    return std::nullopt;
  if (auto *flag = std::get_if<bool>(&value->data))
    return *flag;
  failType(key, *value, "a bool");
}

const std::string *Metadata::string(const std::string &key) const {
  const Value *value = find(key);
  if (!value)
    return nullptr;
  auto *text = std::get_if<std::string>(&value->data);
  if (!text)
    failType(key, *value, "a string");
  if (!isValidUtf8(*text))
    fail(key, "expected UTF-8, got " + quote(*text));
  return text;
}

const std::vector<std::string> *Metadata::strings(const std::string &key) const {
  const Value *value = find(key);
  if (!value)
    return nullptr;
  if (auto *texts = std::get_if<std::vector<std::string>>(&value->data))
    return texts;
  failType(key, *value, "an array of strings");
}

std::optional<std::vector<int64_t>> Metadata::integers32(const std::string &key) const {
  const Value *value = find(key);
  if (!value)
    return std::nullopt;
  bool isSigned = value->elementType == ValueType::I32;
  if (value->type != ValueType::Array || (!isSigned && value->elementType != ValueType::U32))
    failType(key, *value, "an array of i32 or u32");
  const auto &bytes = std::get<std::vector<unsigned char>>(value->data);
  std::vector<int64_t> numbers(value->count);
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, bytes.data() + 4 * i, 4);
    numbers[i] = isSigned ? static_cast<int64_t>(static_cast<int32_t>(bits)) : static_cast<int64_t>(bits);
  }
  return numbers;
}

void Metadata::checkArray(const std::string &key, ValueType element) const {
  const Value *value = find(key);
  if (value && (value->type != ValueType::Array || value->elementType != element))
    failType(key, *value, std::string("an array of ") + toString(element));
}

std::optional<int64_t> Metadata::optionalExtent(const std::string &key) const {
  auto value = integer(key);
  if (value && (*value < 1 || *value > frontend::maxExtent))
    fail(key, "expected a number from 1 to " + std::to_string(frontend::maxExtent) + ", got " +
                  std::to_string(*value));
  return value;
}

int64_t Metadata::extent(const std::string &key) const {
  auto value = optionalExtent(key);
  if (!value)
    fail(key, "expected a number, got no such key");
  return *value;
}
