//===- Tls.cpp ------------------------------------------------------------===//
#include "runtime/server/Tls.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdio>

namespace llmc {

namespace ssl = boost::asio::ssl;

static constexpr uint64_t kMostBytes = 1 << 20;

static std::string readFile(const char *flag, const std::string &path) {
  try {
    return readTextFile(path, kMostBytes);
  } catch (const Error &error) {
    throw Error(std::string(flag) + ": " + error.what());
  }
}

static void addCertificates(ssl::context &context, const std::string &path) {
  const std::string text = readFile("--tls-cert", path);
  boost::system::error_code error;
  context.use_certificate_chain(boost::asio::buffer(text), error);
  if (error)
    throw Error("--tls-cert: " + path + ": expected certificates in PEM, got something else (" + error.message() + ")");
  const X509 *own = SSL_CTX_get0_certificate(context.native_handle());
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0)
    std::fprintf(stderr, "warning: --tls-cert: %s: the certificate has expired\n", path.c_str());
}

static void addKey(ssl::context &context, const std::string &path, const std::string &certificates) {
  const std::string text = readFile("--tls-key", path);
  auto asked = std::make_shared<bool>(false); // without this OpenSSL asks on the terminal
  context.set_password_callback([asked](size_t, ssl::context::password_purpose) {
    *asked = true;
    return std::string();
  });
  boost::system::error_code error;
  context.use_private_key(boost::asio::buffer(text), ssl::context::pem, error);
  if (*asked)
    throw Error("--tls-key: " + path + ": expected a private key without a passphrase, got an encrypted one");
  const bool other = error && ERR_GET_LIB(error.value()) == ERR_LIB_X509; // read, but not the certificate's
  if (error && !other)
    throw Error("--tls-key: " + path + ": expected a private key in PEM, got something else (" + error.message() + ")");
  if (other || SSL_CTX_check_private_key(context.native_handle()) != 1)
    throw Error("--tls-key: " + path + ": expected the private key of the certificate in " + certificates + ", got another one");
}

std::shared_ptr<TlsContext> loadTls(const std::string &certificates, const std::string &key) {
  if (certificates.empty() != key.empty())
    throw Error(certificates.empty() ? "--tls-key: expected --tls-cert with it, got none" : "--tls-cert: expected --tls-key with it, got none");
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); // the machine's own settings are not meant for this
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION);
  addCertificates(*context, certificates);
  addKey(*context, key, certificates);
  return context;
}

} // namespace llmc
