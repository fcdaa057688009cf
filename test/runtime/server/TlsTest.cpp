// The same server behind TLS, and what certificates and keys can be wrong in.
#include "Serving.h"
#include "runtime/server/Tls.h"
#include "test/ErrorOf.h"

#include <fstream>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

using namespace fake;

namespace {

template <typename Write> std::string pem(Write write) {
  BIO *bio = BIO_new(BIO_s_mem());
  EXPECT_EQ(write(bio), 1);
  char *data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, size_t(size));
  BIO_free(bio);
  return text;
}

/// A key and a certificate that vouches for itself.
struct Identity {
  explicit Identity(EVP_PKEY *made) : key(made) {
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char *>("localhost"), -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_sign(x, key, EVP_sha256());
    certificate = pem([&](BIO *bio) { return PEM_write_bio_X509(bio, x); });
    X509_free(x);
  }
  ~Identity() { EVP_PKEY_free(key); }
  std::string keyText(const char *passphrase = nullptr) const {
    return pem([&](BIO *bio) {
      return PEM_write_bio_PKCS8PrivateKey(bio, key, passphrase ? EVP_aes_128_cbc() : nullptr, passphrase, passphrase ? int(strlen(passphrase)) : 0, nullptr, nullptr);
    });
  }
  EVP_PKEY *key;
  std::string certificate;
};

class TlsClient : public Client {
public:
  explicit TlsClient(uint16_t port, int most = 0) : Client(port), context_(SSL_CTX_new(TLS_client_method())) {
    if (most)
      SSL_CTX_set_max_proto_version(context_, most);
    SSL_CTX_set_security_level(context_, 0); // old versions are to be refused by the server
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fd_);
    good = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() override {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  void sayEnd() { SSL_shutdown(ssl_); }
  bool good;

private:
  ssize_t write(std::string_view bytes) override { return SSL_write(ssl_, bytes.data(), int(bytes.size())); }
  ssize_t read(char *bytes, size_t most) override { return SSL_read(ssl_, bytes, int(most)); }
  bool readable() override { return SSL_pending(ssl_) > 0 || Client::readable(); }
  SSL_CTX *context_;
  SSL *ssl_;
};

class Tls : public Serving {
protected:
  std::string file(const std::string &name, const std::string &text) {
    std::ofstream(files_ / name) << text;
    return files_ / name;
  }
  void startTls(llmc::ServiceOptions options = {}) {
    llmc::HttpOptions http;
    http.stallSeconds = 1;
    http.tls = llmc::loadTls(file("cert.pem", own_.certificate), file("key.pem", own_.keyText()));
    start(http, options);
    EXPECT_EQ(server_->url(), "https://127.0.0.1:" + std::to_string(port_));
  }
  void TearDown() override {
    // Serving's own questions about the metrics are in plain HTTP.
    for (int i = 0; i < 1000 && service_ && service_->engineMetrics().running + service_->engineMetrics().waiting > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (service_) {
      EXPECT_EQ(service_->engineMetrics().running, 0u);
    }
    Serving::TearDown();
  }
  TemporaryFolder files_;
  Identity own_{EVP_EC_gen("P-256")};
};

TEST_F(Tls, AnswersAndStreams) {
  startTls();
  TlsClient client(port_);
  ASSERT_TRUE(client.good);
  for (bool stream : {false, true, false}) {
    client.send(httpText("POST", "/v1/completions", textBody("abc", {{"stream", stream}, {"max_tokens", 60}, {"ignore_eos", true}}).dump()));
    const Response r = client.receive();
    EXPECT_EQ(r.status, 200);
    if (stream) {
      EXPECT_TRUE(r.done());
    } else {
      EXPECT_EQ(r.json()["usage"]["completion_tokens"], 60);
    }
  }
  // Three at once are answered in order; the end is said, so that nobody can cut an answer short unseen.
  client.send(httpText("POST", "/v1/completions", textBody("abc").dump()) + httpText("POST", "/v1/completions", textBody("abcd").dump()) +
              httpText("GET", "/health", "", "Connection: close\r\n"));
  EXPECT_EQ(client.receive().json()["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(client.receive().json()["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(client.closedByServer());
  TlsClient large(port_);
  large.send(httpText("POST", "/v1/completions", textBody(std::string(200000, 'a')).dump()));
  EXPECT_EQ(large.receive().status, 400) << "many records long";
}

TEST_F(Tls, ClientsThatLeave) {
  startTls(slow());
  for (bool politely : {true, false}) {
    const uint64_t before = service_->engineMetrics().cancelled;
    {
      TlsClient client(port_);
      client.send(httpText("POST", "/v1/completions", textBody("abc", {{"max_tokens", 90}, {"n", 64}, {"ignore_eos", true}, {"stream", true}}).dump()));
      EXPECT_NE(client.until("data: "), "");
      if (politely)
        client.sayEnd();
    }
    for (int i = 0; i < 400 && service_->engineMetrics().cancelled == before; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_GT(service_->engineMetrics().cancelled, before) << politely;
  }
}

TEST_F(Tls, WhatIsNoTls) {
  startTls();
  const Response plain = get("/health");
  EXPECT_EQ(plain.status, 400);
  EXPECT_EQ(errorOf(plain), "expected https://, got a request without TLS");
  Client garbage(port_), silent(port_), cut(port_);
  garbage.send(std::string(100, '\xff'));
  cut.send("\x16\x03\x01\x02");
  for (Client *client : {&garbage, &silent, &cut})
    client->rest(); // until it is closed: within stallSeconds
  EXPECT_TRUE(silent.closedByServer());
  EXPECT_FALSE(TlsClient(port_, TLS1_1_VERSION).good);
  EXPECT_TRUE(TlsClient(port_, TLS1_2_VERSION).good);
}

TEST_F(Tls, FilesThatAreWrong) {
  const Identity other(EVP_EC_gen("P-256")), rsa(EVP_RSA_gen(2048));
  const std::string cert = file("cert.pem", own_.certificate), key = file("key.pem", own_.keyText()), none = files_ / "none";
  EXPECT_NE(llmc::loadTls(cert, key), nullptr);
  EXPECT_NE(llmc::loadTls(file("chain.pem", own_.certificate + other.certificate), key), nullptr);
  EXPECT_NE(llmc::loadTls(file("rsa.pem", rsa.certificate), file("rsa.key", rsa.keyText())), nullptr);
  EXPECT_ERROR(llmc::loadTls(cert, ""), "--tls-cert: expected --tls-key with it, got none");
  EXPECT_ERROR(llmc::loadTls("", key), "--tls-key: expected --tls-cert with it, got none");
  EXPECT_ERROR(llmc::loadTls(none, key), "--tls-cert: " + none + ": cannot open");
  EXPECT_ERROR(llmc::loadTls(cert, none), "--tls-key: " + none + ": cannot open");
  EXPECT_ERROR(llmc::loadTls(files_ / ".", key), "--tls-cert: ");
  EXPECT_ERROR(llmc::loadTls(key, key), "key.pem: expected certificates in PEM, got something else");
  EXPECT_ERROR(llmc::loadTls(file("empty", ""), key), "empty: expected certificates in PEM");
  EXPECT_ERROR(llmc::loadTls(file("cut", own_.certificate.substr(0, 200)), key), "cut: expected certificates in PEM");
  EXPECT_ERROR(llmc::loadTls(cert, cert), "cert.pem: expected a private key in PEM, got something else");
  EXPECT_ERROR(llmc::loadTls(cert, file("cut.key", own_.keyText().substr(0, 100))), "cut.key: expected a private key in PEM");
  EXPECT_ERROR(llmc::loadTls(cert, file("locked.key", own_.keyText("secret"))),
               "locked.key: expected a private key without a passphrase, got an encrypted one");
  for (const Identity *wrong : {&other, &rsa})
    EXPECT_ERROR(llmc::loadTls(cert, file("other.key", wrong->keyText())), "other.key: expected the private key of the certificate in " + cert);
}

} // namespace
