//===- Page.h - the page at / -----------------------------------*- C++ -*-===//
//
// Its files lie in page/ and are in the executable. They need no other: the page
// works on a machine without a network.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_PAGE_H
#define LLMC_RUNTIME_SERVER_PAGE_H

#include <span>
#include <string_view>

namespace llmc {

struct PageFile {
  std::string_view path, type, text;
};
std::span<const PageFile> pageFiles();

/// What the page may do, as Content-Security-Policy: load these files and ask this server, no more.
inline constexpr const char *kPagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
                                           "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_PAGE_H
