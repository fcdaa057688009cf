//===- Http.cpp -----------------------------------------------------------===//
#include "runtime/server/Http.h"
#include "runtime/tool/CompletionResponse.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <random>

namespace llmc {

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

static int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string pathOf(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  std::string path;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] != '%') {
      path += target[i];
      continue;
    }
    const int high = i + 2 < target.size() ? digit(target[i + 1]) : -1, low = high < 0 ? -1 : digit(target[i + 2]);
    if (low < 0)
      throw HttpError(400, "path: expected two hexadecimal digits behind %");
    path += char(high * 16 + low);
    i += 2;
  }
  if (path.empty() || path[0] != '/')
    throw HttpError(400, "path: expected one that begins with /");
  return path;
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
