//===- Form.h - bodies of several parts (RFC 7578) --------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_FORM_H
#define LLMC_RUNTIME_SERVER_FORM_H

#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct FormPart {
  std::string name, fileName;
  std::string_view content; // of the body
};

inline constexpr size_t kMaxFormParts = 16, kMaxPartHeader = 4 << 10;

/// The parts of a multipart/form-data body. Throws HttpError 400 for a body that is none, is cut short, has more than kMaxFormParts
/// parts or one with a header longer than kMaxPartHeader, or a part without a name.
std::vector<FormPart> parseForm(std::string_view contentType, std::string_view body);

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_FORM_H
