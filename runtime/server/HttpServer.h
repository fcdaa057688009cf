//===- HttpServer.h - listens and hands requests to a service ---*- C++ -*-===//
//
// One thread does all input and output, a second one reads requests (JSON, templates,
// tokens), the engine has its own: a connection or a stream costs no thread, and no
// client delays another or a step.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_HTTPSERVER_H
#define LLMC_RUNTIME_SERVER_HTTPSERVER_H

#include "runtime/server/ApiKeys.h"
#include "runtime/server/Service.h"
#include "runtime/server/Tls.h"

namespace llmc {

struct HttpOptions {
  std::string host = "127.0.0.1"; // an address or a name
  uint16_t port = 8080;           // 0: any
  ApiKeys keys;
  std::shared_ptr<TlsContext> tls; // none: plain HTTP
  std::vector<std::string> corsOrigins; // of pages in browsers that may ask; "*": all
  uint64_t maxBody = 8 << 20;           // bytes
  uint64_t maxFile = 64 << 20;          // of the body that brings a file
  uint32_t maxHeader = 16 << 10;        // bytes
  uint64_t maxConnections = 4096;
  double idleSeconds = 75;      // for a request's header to come
  double stallSeconds = 30;     // for a request's body to come, and for a client to take what it is sent
  double heartbeatSeconds = 15; // between signs of life on a stream
  double drainSeconds = 30;     // for answers to end after SIGTERM
  bool log = false;             // a line on stderr for each request
};

class HttpServer {
public:
  /// Listens: connections wait from now on. Throws Error where it cannot.
  explicit HttpServer(const HttpOptions &options);
  ~HttpServer();

  /// "http://127.0.0.1:8080", or "https://..."
  std::string url() const;
  uint16_t port() const;
  /// What the service's completions call. The server outlives them.
  Completion::Notify notify();
  /// SIGTERM and SIGINT are as drain() from now on.
  void catchSignals();
  /// Answers until it has been told to drain, and all is answered or given up.
  void run(Service &service);
  /// Any thread.
  void drain();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_HTTPSERVER_H
