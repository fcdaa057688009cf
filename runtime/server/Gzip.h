//===- Gzip.h - compressed bodies (RFC 1952) --------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_GZIP_H
#define LLMC_RUNTIME_SERVER_GZIP_H

#include <cstdint>
#include <string>
#include <string_view>

namespace llmc {

/// Throws HttpError: 413 as soon as there are more than `most` bytes, 400 for what is not gzip, cut short or damaged.
std::string unpackGzip(std::string_view bytes, uint64_t most);
std::string packGzip(std::string_view text);
/// Whether the value of Accept-Encoding allows it: "gzip", "*", "br, gzip;q=0.5", but not "gzip;q=0".
bool acceptsGzip(std::string_view acceptEncoding);

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_GZIP_H
