//===- Error.h - the one exception of the MLIR-free parts -------*- C++ -*-===//
//
// Bad input (a file, a flag, a request) is reported by throwing Error; the
// command line turns it into one line on stderr and exit code 1. The message is
// complete: it names the file, key, tensor or flag, with the expected and the
// actual value ("expected X, got Y"), in lower case and without a final period.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_SUPPORT_ERROR_H
#define LLMC_SUPPORT_ERROR_H

#include <stdexcept>
#include <string>

namespace llmc {

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message) : std::runtime_error(message) {}
};

} // namespace llmc

#endif // LLMC_SUPPORT_ERROR_H
