//===- Routes.cpp ---------------------------------------------------------===//
#include "runtime/server/Routes.h"

#include <malloc.h>
#include <new>

namespace llmc {

static constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", &Service::chatCompletions, false, Place::Text},
    {"POST", "/v1/completions", &Service::completions, false, Place::Text},
    {"POST", "/v1/responses", &Service::responses, false, Place::Text},
    {"GET", "/v1/models", &Service::models, false, Place::Here},
    {"GET", "/v1/models/{name}", &Service::model, false, Place::Here},
    {"POST", "/tokenize", &Service::tokenize, false, Place::Text},
    {"POST", "/detokenize", &Service::detokenize, false, Place::Text},
    {"GET", "/health", &Service::health, true, Place::Here},
    {"GET", "/ready", &Service::ready, true, Place::Here},
    {"GET", "/metrics", &Service::metrics, false, Place::Here},
    {"GET", "/openapi.json", &Service::openApi, true, Place::Here},
    {"GET", "/", &Service::page, true, Place::Here},
    {"GET", "/page.css", &Service::page, true, Place::Here},
    {"GET", "/page.js", &Service::page, true, Place::Here},
    {"POST", "/v1/files", &Service::createFile, false, Place::Disk, Body::Form},
    {"GET", "/v1/files", &Service::files, false, Place::Disk},
    {"GET", "/v1/files/{id}", &Service::file, false, Place::Disk},
    {"DELETE", "/v1/files/{id}", &Service::deleteFile, false, Place::Disk},
    {"GET", "/v1/files/{id}/content", &Service::fileContent, false, Place::Disk},
    {"POST", "/v1/batches", &Service::createBatch, false, Place::Disk},
    {"GET", "/v1/batches", &Service::listBatches, false, Place::Disk},
    {"GET", "/v1/batches/{id}", &Service::batch, false, Place::Disk},
    {"POST", "/v1/batches/{id}/cancel", &Service::cancelBatch, false, Place::Disk, Body::Any},
};

static constexpr size_t kLongBody = 1 << 20;

std::span<const Route> routes() { return kRoutes; }

bool Route::matches(std::string_view given, std::string *param) const {
  const std::string_view own = path;
  const size_t open = own.find('{');
  if (open == std::string_view::npos)
    return given == own;
  const size_t close = own.find('}', open);
  const std::string_view before = own.substr(0, open), name = own.substr(open + 1, close - open - 1), behind = own.substr(close + 1);
  if (given.size() < before.size() + behind.size() || !given.starts_with(before) || !given.ends_with(behind))
    return false;
  const std::string_view value = given.substr(before.size(), given.size() - before.size() - behind.size());
  if (name == "id" && (value.empty() || value.find('/') != std::string_view::npos))
    return false;
  if (param)
    *param = value;
  return true;
}

std::string methodsOf(std::string_view path) {
  std::string methods;
  for (const Route &route : kRoutes)
    if (route.matches(path))
      methods += (methods.empty() ? "" : ", ") + std::string(route.method);
  return methods;
}

const Route &findRoute(std::string_view method, std::string_view path) {
  for (const Route &route : kRoutes)
    if (route.method == method && route.matches(path))
      return route;
  const std::string allowed = methodsOf(path);
  if (allowed.empty())
    throw HttpError(404, "path: expected one of those in /openapi.json, such as /v1/chat/completions, got " + std::string(path.substr(0, 100)), "",
                    "not_found");
  throw HttpError(405, "method: expected " + allowed + ", got " + std::string(method.substr(0, 20)), "", "method_not_allowed",
                  {{"Allow", allowed}});
}

HttpResponse answer(Service &service, const Route &route, const HttpRequest &request) {
  // Reading a long text takes many times its bytes, which the allocator would keep for the next one.
  const std::shared_ptr<void> trim(nullptr, [&](void *) {
    if (request.body.size() > kLongBody)
      malloc_trim(0);
  });
  std::unique_lock turn(service.turn(), std::defer_lock);
  if (route.place == Place::Text)
    turn.lock();
  try {
    return (service.*route.answer)(request);
  } catch (const HttpError &error) {
    return errorResponse(error);
  } catch (const BadRequest &bad) {
    return errorResponse(400, bad.what(), bad.param);
  } catch (const std::bad_alloc &) {
    return errorResponse(503, "out of memory");
  } catch (const std::exception &error) {
    return errorResponse(500, error.what());
  }
}

} // namespace llmc
