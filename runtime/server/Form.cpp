//===- Form.cpp -----------------------------------------------------------===//
#include "runtime/server/Form.h"
#include "runtime/server/Http.h"

#include <algorithm>

namespace llmc {

[[noreturn]] static void fail(const std::string &what) { throw HttpError(400, "body: expected multipart/form-data, got " + what); }

/// The value of a parameter, "b" of `a; key="b"`; empty: there is none. Names are compared without case.
static std::string parameter(std::string_view header, std::string_view key) {
  for (size_t at = header.find(';'); at < header.size();) {
    at = header.find_first_not_of("; \t", at);
    const size_t equals = std::min(header.find('=', std::min(at, header.size())), header.size());
    if (equals == header.size())
      break;
    const std::string_view name = header.substr(at, equals - at);
    std::string value;
    at = equals + 1;
    if (at < header.size() && header[at] == '"') {
      for (++at; at < header.size() && header[at] != '"'; ++at) {
        if (header[at] == '\\' && at + 1 < header.size())
          ++at;
        value += header[at];
      }
      at = header.find(';', at);
    } else {
      const size_t end = std::min(header.find(';', at), header.size());
      value = header.substr(at, end - at);
      value.erase(value.find_last_not_of(" \t") + 1);
      at = end;
    }
    if (equalNoCase(name, key))
      return value;
  }
  return "";
}

static FormPart readPart(std::string_view part) {
  const size_t end = part.find("\r\n\r\n");
  if (end == std::string_view::npos || end > kMaxPartHeader)
    fail("a part whose header does not end within " + std::to_string(kMaxPartHeader) + " bytes");
  FormPart result;
  result.content = part.substr(end + 4);
  std::string_view header = part.substr(0, end + 2);
  for (size_t stop; (stop = header.find("\r\n")) != std::string_view::npos; header.remove_prefix(stop + 2)) {
    const std::string_view line = header.substr(0, stop);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !equalNoCase(line.substr(0, colon), "content-disposition"))
      continue;
    result.name = parameter(line, "name");
    result.fileName = parameter(line, "filename");
  }
  if (result.name.empty())
    fail("a part without a name");
  return result;
}

std::vector<FormPart> parseForm(std::string_view contentType, std::string_view body) {
  const std::string boundary = parameter(contentType, "boundary");
  if (boundary.empty() || boundary.size() > 70)
    fail("a content-type whose boundary is not 1 to 70 characters long");
  const std::string opening = "--" + boundary, delimiter = "\r\n" + opening;
  if (!body.starts_with(opening))
    fail("a body that does not begin with its boundary");
  body.remove_prefix(opening.size());
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) { // behind the last boundary
    if (!body.starts_with("\r\n"))
      fail("something else than a line's end behind a boundary");
    if (parts.size() == kMaxFormParts)
      fail("more than " + std::to_string(kMaxFormParts) + " parts");
    const size_t end = body.find(delimiter, 0);
    if (end == std::string_view::npos)
      fail("the beginning of it");
    parts.push_back(readPart(body.substr(std::min<size_t>(2, end), end - std::min<size_t>(2, end))));
    body.remove_prefix(end + delimiter.size());
  }
  return parts;
}

} // namespace llmc
