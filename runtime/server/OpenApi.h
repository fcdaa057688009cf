//===- OpenApi.h - the routes, for programs ---------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_OPENAPI_H
#define LLMC_RUNTIME_SERVER_OPENAPI_H

#include <string_view>

namespace llmc {

/// openapi.json, which lies beside this.
std::string_view openApiText();

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_OPENAPI_H
