//===- Connection.h - one client's requests, one after another --*- C++ -*-===//
//
// A coroutine: it costs memory while it waits, and no thread. Only the server's
// library includes this.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_CONNECTION_H
#define LLMC_RUNTIME_SERVER_CONNECTION_H

#include "runtime/server/ClientStream.h"
#include "runtime/server/HttpServer.h"
#include "runtime/server/Routes.h"
#include "runtime/server/StreamEvents.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <unordered_set>

namespace llmc {

class Connection;

/// What connections share: the thread's that does input and output.
struct ConnectionHub {
  explicit ConnectionHub(const HttpOptions &options) : options(options) {}

  const HttpOptions &options;
  Service *service = nullptr;
  boost::asio::thread_pool text{1}, disk{1};
  unsigned uploads = 0; // that are being read or kept
  std::unordered_set<Connection *> open;
  bool draining = false;
};

class Connection {
public:
  Connection(boost::asio::ip::tcp::socket socket, ConnectionHub &hub);
  ~Connection();

  boost::asio::awaitable<void> run();

  // While the server drains:
  void closeIfIdle();
  void cancelAnswer();
  void close();

private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  struct Exchange; // a request and what is known of its answer

  boost::asio::awaitable<bool> handshake();
  boost::asio::awaitable<bool> exchange();
  boost::asio::awaitable<bool> receive(Exchange &exchange);
  const Route *admit(Exchange &exchange);
  void bound(Exchange &exchange, bool file);
  HttpResponse preflight(const Exchange &exchange) const;
  boost::asio::awaitable<HttpResponse> ask(const Route &route, Exchange &exchange);
  boost::asio::awaitable<bool> finish(Exchange &exchange);
  boost::asio::awaitable<void> await(Exchange &exchange);
  boost::asio::awaitable<void> pump(Exchange &exchange);
  boost::asio::awaitable<void> pumpAll(Exchange &exchange);
  boost::asio::awaitable<void> pack(Exchange &exchange);
  boost::asio::awaitable<bool> writeFile(Exchange &exchange);
  boost::asio::awaitable<bool> write(std::string text);
  std::string headerOf(const Exchange &exchange) const;
  std::string eventsText(Exchange &exchange, const std::string &events, bool last);
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<void> drain();
  void log(const Exchange &exchange) const;
  void expire(double seconds);

  ConnectionHub &hub_;
  ClientStream stream_;
  boost::beast::flat_buffer buffer_;
  bool busy_ = false;
  std::shared_ptr<Completion> completion_; // that is awaited
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_CONNECTION_H
