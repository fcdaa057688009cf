// A server around the hand-written model, in this process, and a client that says every byte itself.
#ifndef LLMC_TEST_RUNTIME_SERVER_SERVING_H
#define LLMC_TEST_RUNTIME_SERVER_SERVING_H

#include "FakePackage.h"
#include "runtime/server/HttpServer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace fake {

using Json = nlohmann::json;

struct Response {
  int status = 0; // 0: the connection ended without one
  std::map<std::string, std::string> headers; // names in lower case
  std::string body;                           // of chunks: joined
  Json json() const { return Json::parse(body); }
  /// The data of a stream's events, without "[DONE]".
  std::vector<Json> events() const {
    std::vector<Json> all;
    for (size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
      const size_t end = body.find("\n\n", at);
      const std::string data = body.substr(at + 6, end - at - 6);
      if (data != "[DONE]")
        all.push_back(Json::parse(data));
      at = end;
    }
    return all;
  }
  bool done() const { return body.ends_with("data: [DONE]\n\n"); }
};

/// One connection. Every wait ends after ten seconds.
class Client {
public:
  explicit Client(uint16_t port, int receiveBuffer = 0) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receiveBuffer)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, sizeof receiveBuffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
  }
  Client(const Client &) = delete;
  Client(Client &&other) noexcept : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)), connected_(other.connected_) {}
  virtual ~Client() {
    if (fd_ >= 0)
      ::close(fd_);
  }

  bool connected() const { return connected_; }
  /// False: the server does not take it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = write(bytes);
      if (sent <= 0)
        return false;
      bytes.remove_prefix(size_t(sent));
    }
    return true;
  }
  void halfClose() { shutdown(fd_, SHUT_WR); }
  /// With a reset instead of an end.
  void abort() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(std::exchange(fd_, -1));
  }

  Response receive() {
    Response r;
    const std::string header = until("\r\n\r\n");
    if (header.size() < 12)
      return r;
    r.status = std::stoi(header.substr(9, 3));
    for (size_t at = header.find("\r\n") + 2; at < header.size() && header[at] != '\r'; at = header.find("\r\n", at) + 2) {
      const size_t colon = header.find(": ", at), end = header.find("\r\n", at);
      std::string name = header.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), [](char c) { return char(std::tolower(c)); });
      r.headers[name] = header.substr(colon + 2, end - colon - 2);
    }
    if (r.headers.count("transfer-encoding"))
      for (;;) {
        const std::string size = until("\r\n");
        const size_t bytes = size.empty() ? 0 : std::stoul(size, nullptr, 16);
        r.body += take(bytes);
        if (take(2).size() < 2 || bytes == 0)
          break;
      }
    else if (r.headers.count("content-length"))
      r.body = take(std::stoul(r.headers["content-length"]));
    else if (r.status != 204)
      r.body = rest();
    return r;
  }
  /// All until the server closes.
  std::string rest() {
    while (more())
      ;
    return std::exchange(buffer_, {});
  }
  /// What comes until `mark` has, with it.
  std::string until(const std::string &mark) {
    size_t at;
    while ((at = buffer_.find(mark)) == std::string::npos)
      if (!more())
        return {};
    return take(at + mark.size());
  }
  bool closedByServer() { return rest().empty() && ended_; }

protected:
  virtual ssize_t write(std::string_view bytes) { return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  virtual ssize_t read(char *bytes, size_t most) { return recv(fd_, bytes, most, 0); }
  virtual bool readable() {
    pollfd wait{fd_, POLLIN, 0};
    return poll(&wait, 1, 10000) == 1;
  }
  int fd_;

private:
  std::string take(size_t bytes) {
    while (buffer_.size() < bytes && more())
      ;
    std::string taken = buffer_.substr(0, bytes);
    buffer_.erase(0, taken.size());
    return taken;
  }
  bool more() {
    if (ended_ || !readable())
      return false;
    char bytes[65536];
    const ssize_t got = read(bytes, sizeof bytes);
    ended_ = got <= 0;
    if (got > 0)
      buffer_.append(bytes, size_t(got));
    return got > 0;
  }

  std::string buffer_;
  bool connected_ = false, ended_ = false;
};

inline std::string httpText(const std::string &method, const std::string &path, const std::string &body, const std::string &headers = "") {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
  if (method == "POST" && headers.find("Content-Type") == std::string::npos)
    text += "Content-Type: application/json\r\n";
  if (method == "POST" && headers.find("Content-Length") == std::string::npos && headers.find("Transfer-Encoding") == std::string::npos)
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

inline Json chatBody(const std::string &text, Json more = Json::object()) {
  Json body{{"messages", {{{"role", "user"}, {"content", text}}}}, {"temperature", 0}, {"max_tokens", 8}};
  body.update(more);
  return body;
}
inline Json textBody(const Json &prompt, Json more = Json::object()) {
  Json body{{"prompt", prompt}, {"temperature", 0}, {"max_tokens", 8}};
  body.update(more);
  return body;
}

class Serving : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    writePackage(*folder_ / "model", "");
    writePackage(*folder_ / "slow", "", LLMC_FAKE_MODULE_SLOW);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void TearDown() override { stop(); }

  void start(llmc::HttpOptions http = {}, llmc::ServiceOptions options = {}) {
    http.port = 0;
    if (options.load.package.empty())
      options.load.package = *folder_ / "model";
    options.load.threads = options.replicas;
    options.engine.prefixCache = true;
    server_.emplace(http);
    service_.emplace(options, server_->notify());
    port_ = server_->port();
    thread_ = std::thread([this] { server_->run(*service_); });
  }
  /// Steps of 2 ms.
  llmc::ServiceOptions slow() {
    llmc::ServiceOptions options;
    options.load.package = *folder_ / "slow";
    return options;
  }
  /// Waits until all is answered; false: longer than `seconds`.
  bool stop(double seconds = 10) {
    if (!thread_.joinable())
      return true;
    const auto begin = std::chrono::steady_clock::now();
    server_->drain();
    thread_.join();
    service_.reset();
    server_.reset();
    return std::chrono::steady_clock::now() - begin < std::chrono::duration<double>(seconds);
  }

  Response get(const std::string &path, const std::string &headers = "") { return talk(httpText("GET", path, "", headers)); }
  Response post(const std::string &path, const Json &body, const std::string &headers = "") {
    return talk(httpText("POST", path, body.is_string() ? body.get<std::string>() : body.dump(), headers));
  }
  Response talk(const std::string &bytes) {
    Client client(port_);
    client.send(bytes);
    return client.receive();
  }
  /// Value of a line of /metrics.
  double metric(const std::string &name) {
    const std::string text = "\n" + get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  /// The engine publishes its numbers after each step, which can be after the answer to the first of its tokens.
  bool reaches(const std::string &name, double least) {
    for (int i = 0; i < 1000; ++i) {
      if (metric(name) >= least)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  /// All blocks are back and nothing runs, within some seconds.
  bool idle() {
    for (int i = 0; i < 500; ++i) {
      if (metric("llmc_requests_running") == 0 && metric("llmc_requests_waiting") == 0 && metric("llmc_kv_use_ratio") == 0)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  static TemporaryFolder *folder_;
  std::optional<llmc::HttpServer> server_;
  std::optional<llmc::Service> service_;
  std::thread thread_;
  uint16_t port_ = 0;
};
inline TemporaryFolder *Serving::folder_ = nullptr;

inline std::string errorOf(const Response &r) {
  try {
    return r.json()["error"]["message"];
  } catch (const std::exception &) {
    return "no error: " + std::to_string(r.status) + " " + r.body;
  }
}

} // namespace fake

#endif // LLMC_TEST_RUNTIME_SERVER_SERVING_H
