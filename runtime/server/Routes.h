//===- Routes.h - which function answers which path -------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_ROUTES_H
#define LLMC_RUNTIME_SERVER_ROUTES_H

#include "runtime/server/Service.h"

#include <span>

namespace llmc {

struct Route {
  const char *method, *path; // a path that ends with '/', but for / itself, stands for all that begin so
  HttpResponse (Service::*answer)(const HttpRequest &);
  bool open; // needs no API key
  bool text; // takes time to read: parses JSON, makes tokens
};

std::span<const Route> routes();
/// The methods of a path: "GET, POST"; none: "".
std::string methodsOf(std::string_view path);
/// Throws HttpError 404, and 405 with the methods that there are.
const Route &findRoute(std::string_view method, std::string_view path);
/// The answer, errors included; throws nothing.
HttpResponse answer(Service &service, const Route &route, const HttpRequest &request);

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_ROUTES_H
