//===- Routes.h - which function answers which path -------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_ROUTES_H
#define LLMC_RUNTIME_SERVER_ROUTES_H

#include "runtime/server/Service.h"

#include <span>

namespace llmc {

/// What a POST has.
enum class Body { Json, Form, Any };
/// Where an answer is made: at once, where JSON and text are read, or where files are.
enum class Place { Here, Text, Disk };

struct Route {
  const char *method, *path; // "{id}" stands for anything without a slash, "{name}" for anything
  HttpResponse (Service::*answer)(const HttpRequest &);
  bool open; // needs no API key
  Place place;
  Body body = Body::Json;

  /// Whether it is this one's; `param` becomes what stands for the name in braces.
  bool matches(std::string_view path, std::string *param = nullptr) const;
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
