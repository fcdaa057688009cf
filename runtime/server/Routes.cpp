//===- Routes.cpp ---------------------------------------------------------===//
#include "runtime/server/Routes.h"

#include <malloc.h>
#include <new>

namespace llmc {

static constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", &Service::chatCompletions, false, true},
    {"POST", "/v1/completions", &Service::completions, false, true},
    {"GET", "/v1/models", &Service::models, false, false},
    {"GET", "/v1/models/", &Service::model, false, false},
    {"POST", "/tokenize", &Service::tokenize, false, true},
    {"POST", "/detokenize", &Service::detokenize, false, true},
    {"GET", "/health", &Service::health, true, false},
    {"GET", "/ready", &Service::ready, true, false},
    {"GET", "/metrics", &Service::metrics, false, false},
    {"GET", "/openapi.json", &Service::openApi, true, false},
    {"GET", "/", &Service::page, true, false},
    {"GET", "/page.css", &Service::page, true, false},
    {"GET", "/page.js", &Service::page, true, false},
};

static constexpr size_t kLongBody = 1 << 20;

std::span<const Route> routes() { return kRoutes; }

static bool matches(const Route &route, std::string_view path) {
  const std::string_view own = route.path;
  return own.size() > 1 && own.back() == '/' ? path.starts_with(own) : path == own;
}

std::string methodsOf(std::string_view path) {
  std::string methods;
  for (const Route &route : kRoutes)
    if (matches(route, path))
      methods += (methods.empty() ? "" : ", ") + std::string(route.method);
  return methods;
}

const Route &findRoute(std::string_view method, std::string_view path) {
  for (const Route &route : kRoutes)
    if (route.method == method && matches(route, path))
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
