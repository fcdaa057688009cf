//===- Http.cpp -----------------------------------------------------------===//
#include "runtime/server/Http.h"
#include "llmc/Support/HexDigit.h"
#include "runtime/tool/CompletionResponse.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <random>

namespace llmc {

HttpResponse jsonResponse(const nlohmann::ordered_json &body) {
  HttpResponse response;
  response.body = jsonText(body);
  return response;
}

HttpResponse errorResponse(unsigned status, const std::string &message, const std::string &param, const std::string &code) {
  const char *type = status >= 500 ? "server_error" : "invalid_request_error";
  HttpResponse response;
  response.status = status;
  response.body = jsonText(errorBody(message, type, param, code));
  return response;
}

HttpResponse errorResponse(const HttpError &error) {
  HttpResponse response = errorResponse(error.status, error.what(), error.param, error.code);
  response.headers = error.headers;
  return response;
}

static std::string decoded(std::string_view text, const char *what, bool plusIsSpace) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += plusIsSpace && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hexDigit(text[i + 1]) : -1, low = high < 0 ? -1 : hexDigit(text[i + 2]);
    if (low < 0)
      throw HttpError(400, std::string(what) + ": expected two hexadecimal digits behind %");
    result += char(high * 16 + low);
    i += 2;
  }
  return result;
}

std::string pathOf(std::string_view target) {
  const std::string path = decoded(target.substr(0, target.find_first_of("?#")), "path", false);
  if (path.empty() || path[0] != '/')
    throw HttpError(400, "path: expected one that begins with /");
  return path;
}

std::map<std::string, std::string> queryOf(std::string_view target) {
  std::map<std::string, std::string> query;
  target = target.substr(0, target.find('#'));
  const size_t mark = target.find('?');
  if (mark == std::string_view::npos)
    return query;
  for (target.remove_prefix(mark + 1); !target.empty();) {
    const size_t end = std::min(target.find('&'), target.size());
    const std::string_view item = target.substr(0, end);
    target.remove_prefix(std::min(end + 1, target.size()));
    const size_t equals = std::min(item.find('='), item.size());
    if (!item.empty())
      query[decoded(item.substr(0, equals), "query", true)] = decoded(item.substr(std::min(equals + 1, item.size())), "query", true);
  }
  return query;
}

std::string newId() {
  static const uint64_t process = [] {
    std::random_device random;
    return uint64_t(random()) << 32 | random();
  }();
  static std::atomic<uint32_t> next{0};
  char text[25];
  std::snprintf(text, sizeof text, "%016llx%08x", static_cast<unsigned long long>(process), unsigned(next++));
  return text;
}

std::string requestId(std::string_view given) {
  const bool good = !given.empty() && given.size() <= 128 && std::all_of(given.begin(), given.end(), [](char c) { return c > 32 && c < 127; });
  return good ? std::string(given) : newId();
}

static char lower(char c) { return char(std::tolower(static_cast<unsigned char>(c))); }

bool equalNoCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string mediaType(std::string_view contentType) {
  contentType = contentType.substr(0, contentType.find(';'));
  while (!contentType.empty() && contentType.back() == ' ')
    contentType.remove_suffix(1);
  std::string type(contentType);
  std::transform(type.begin(), type.end(), type.begin(), lower);
  return type;
}

} // namespace llmc
