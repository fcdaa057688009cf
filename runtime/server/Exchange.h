//===- Exchange.h - a request and its answer on a connection ----*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_EXCHANGE_H
#define LLMC_RUNTIME_SERVER_EXCHANGE_H

#include "runtime/server/Connection.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace llmc {

/// Errors come as the first of what an operation gives, not as exceptions: a client that leaves is nothing exceptional.
inline constexpr auto kTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

struct Connection::Exchange {
  Exchange(uint32_t maxHeader, uint64_t maxBody) : maxBody(maxBody) {
    parser.header_limit(maxHeader);
    parser.body_limit(maxBody);
  }
  const Parser::value_type &message() const { return parser.get(); }
  bool http10() const { return message().version() == 10; } // knows no chunks

  Parser parser;
  uint64_t maxBody;
  bool upload = false; // counts in hub.uploads
  HttpRequest request;
  std::string origin;        // of a page in a browser
  std::string route = "other"; // its path in the table
  HttpResponse response;
  bool packed = false;    // the body came as gzip
  bool mayPack = false;   // the client takes an answer as gzip
  bool keepAlive = false;
  bool stream = false; // the header of a stream has been sent
  bool cut = false;    // the client has not got all, or was not there to get it
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_EXCHANGE_H
