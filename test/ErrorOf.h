//===- ErrorOf.h - what an Error said ---------------------------*- C++ -*-===//
#ifndef LLMC_TEST_ERROROF_H
#define LLMC_TEST_ERROROF_H

#include "llmc/Support/Error.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace llmc {

/// The message of the Error that `body` throws; empty: it throws none.
inline std::string errorOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace llmc

#define EXPECT_ERROR(body, part)                                                                                       \
  do {                                                                                                                 \
    const std::string got_ = llmc::errorOf([&] { body; });                                                             \
    EXPECT_NE(got_.find(part), std::string::npos) << "got: " << got_;                                                  \
  } while (false)

#endif // LLMC_TEST_ERROROF_H
