//===- ClientStream.h - a client's bytes, encrypted or not ------*- C++ -*-===//
//
// What Connection reads and writes: one type, so that its coroutines are compiled
// once. Only the server's library includes this.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_CLIENTSTREAM_H
#define LLMC_RUNTIME_SERVER_CLIENTSTREAM_H

#include "runtime/server/Tls.h"

#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <optional>

namespace llmc {

class ClientStream {
public:
  using Tcp = boost::beast::tcp_stream;
  using executor_type = Tcp::executor_type;

  /// `tls`: null for plain HTTP; outlives it.
  ClientStream(boost::asio::ip::tcp::socket socket, TlsContext *tls) : tcp_(std::move(socket)) {
    if (tls)
      tls_.emplace(tcp_, *tls);
  }

  executor_type get_executor() { return tcp_.get_executor(); }
  /// What lies below: for deadlines and the socket's own business.
  Tcp &tcp() { return tcp_; }
  bool encrypted() const { return tls_.has_value(); }

  template <typename Buffers, typename Token> auto async_read_some(const Buffers &buffers, Token &&token) {
    if (tls_)
      return tls_->async_read_some(buffers, std::forward<Token>(token));
    return tcp_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <typename Buffers, typename Token> auto async_write_some(const Buffers &buffers, Token &&token) {
    if (tls_)
      return tls_->async_write_some(buffers, std::forward<Token>(token));
    return tcp_.async_write_some(buffers, std::forward<Token>(token));
  }
  // Of one that is encrypted.
  template <typename Token> auto handshake(Token &&token) {
    return tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Token>(token));
  }
  template <typename Token> auto sayEnd(Token &&token) { return tls_->async_shutdown(std::forward<Token>(token)); }

private:
  Tcp tcp_;
  std::optional<boost::asio::ssl::stream<Tcp &>> tls_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_CLIENTSTREAM_H
