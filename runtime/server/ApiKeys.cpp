//===- ApiKeys.cpp --------------------------------------------------------===//
#include "runtime/server/ApiKeys.h"
#include "llmc/Support/Error.h"
#include "runtime/server/Http.h"

#include <algorithm>
#include <fstream>

namespace llmc {

static bool visible(const std::string &key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) { return c > 32 && c < 127; });
}

ApiKeys::ApiKeys(std::vector<std::string> keys, const std::string &file) : keys_(std::move(keys)) {
  for (const std::string &key : keys_)
    if (!visible(key))
      throw Error("--api-key: expected visible ASCII characters, got something else");
  if (file.empty())
    return;
  std::ifstream in(file);
  if (!in)
    throw Error(file + ": cannot open");
  size_t number = 0;
  const size_t before = keys_.size();
  for (std::string line; std::getline(in, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.pop_back();
    if (line.empty())
      continue;
    if (!visible(line))
      throw Error(file + ":" + std::to_string(number) + ": expected a key of visible ASCII characters, got something else");
    keys_.push_back(line);
  }
  if (keys_.size() == before)
    throw Error(file + ": expected a key a line, got none");
}

static bool equalSlowly(std::string_view a, std::string_view key) {
  unsigned different = a.size() != key.size();
  for (size_t i = 0; i < key.size(); ++i)
    different |= unsigned(static_cast<unsigned char>(i < a.size() ? a[i] : 0)) ^ static_cast<unsigned char>(key[i]);
  return different == 0;
}

bool ApiKeys::allow(std::string_view authorization) const {
  if (none())
    return true;
  const size_t space = authorization.find(' ');
  if (space == std::string_view::npos || !equalNoCase(authorization.substr(0, space), "bearer"))
    return false;
  const std::string_view given = authorization.substr(space + 1);
  bool found = false;
  for (const std::string &key : keys_)
    found |= equalSlowly(given, key);
  return found;
}

} // namespace llmc
