//===- ApiKeys.h - who may ask ----------------------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_APIKEYS_H
#define LLMC_RUNTIME_SERVER_APIKEYS_H

#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class ApiKeys {
public:
  /// `file`: a key a line, none if empty. Throws Error for a file that cannot be read or has no key, and for a key that a
  /// header cannot carry.
  ApiKeys(std::vector<std::string> keys, const std::string &file);
  ApiKeys() = default;

  bool none() const { return keys_.empty(); }
  /// `authorization`: "Bearer KEY". The time that it takes does not tell how much of a key is right.
  bool allow(std::string_view authorization) const;

private:
  std::vector<std::string> keys_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_APIKEYS_H
