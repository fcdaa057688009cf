//===- Tls.h - the server's certificate -------------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_TLS_H
#define LLMC_RUNTIME_SERVER_TLS_H

#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}

namespace llmc {

using TlsContext = boost::asio::ssl::context;

/// TLS 1.2 and 1.3 with the certificates of `certificates` (PEM, the server's own first) and the private key of `key` (PEM,
/// without a passphrase). Throws Error for a file that cannot be read, holds none, or a key of another certificate.
std::shared_ptr<TlsContext> loadTls(const std::string &certificates, const std::string &key);

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_TLS_H
