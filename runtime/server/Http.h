//===- Http.h - requests and responses as handlers see them -----*- C++ -*-===//
//
// Plain structs: who answers a request knows nothing of sockets, and who reads one
// nothing of models.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_HTTP_H
#define LLMC_RUNTIME_SERVER_HTTP_H

#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

class Completion;

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method, path; // path: percent-decoded, without the query
  std::string target;       // as it came
  std::string param;        // what stands in the path for the route's {name}
  std::string type;         // content-type
  std::string body;
  std::string id; // x-request-id: the client's, or a new one
  std::chrono::steady_clock::time_point arrival;
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "application/json", body;
  Headers headers = {};
  std::shared_ptr<InputFile> file = nullptr; // the body, if there is one
  /// An answer that is still being generated; the body is made of it.
  std::shared_ptr<Completion> completion = nullptr;
};

/// A request that gets an error object instead of an answer.
struct HttpError : Error {
  HttpError(unsigned status, const std::string &message, const std::string &param = "", const std::string &code = "", Headers headers = {})
      : Error(message), status(status), param(param), code(code), headers(std::move(headers)) {}
  unsigned status;
  std::string param, code;
  Headers headers;
};

/// {"error": {"message", "type", "param", "code"}}; the type follows from the status.
HttpResponse errorResponse(unsigned status, const std::string &message, const std::string &param = "", const std::string &code = "");
HttpResponse errorResponse(const HttpError &error);

HttpResponse jsonResponse(const nlohmann::ordered_json &body);

/// The parameters of a target's query, decoded; of equal ones the last. Throws HttpError.
std::map<std::string, std::string> queryOf(std::string_view target);
/// Path of a request's target: "/a%20b?c" is "/a b". Throws HttpError for what is none.
std::string pathOf(std::string_view target);
/// 24 hexadecimal digits that nobody else has.
std::string newId();
/// The client's id if it is 1 to 128 visible ASCII characters, else a new one.
std::string requestId(std::string_view given);
bool equalNoCase(std::string_view a, std::string_view b);
/// "application/json" of "Application/JSON; charset=utf-8".
std::string mediaType(std::string_view contentType);

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_HTTP_H
