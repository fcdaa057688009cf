//===- HttpServer.cpp - accepts, wakes and drains -------------------------===//
#include "runtime/server/HttpServer.h"
#include "runtime/server/Connection.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdio>
#include <sys/resource.h>

namespace llmc {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// Completions with news, from the engine's thread to this one: however many a step has, they cost one wake-up.
class Wakeups {
public:
  explicit Wakeups(asio::io_context &io) : io_(io) {}

  void add(std::shared_ptr<Completion> completion) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(completion));
    if (waiting_.size() == 1)
      asio::post(io_, [this] { deliver(); });
  }

private:
  void deliver() {
    std::vector<std::shared_ptr<Completion>> woken;
    {
      std::lock_guard lock(mutex_);
      woken.swap(waiting_);
    }
    for (const auto &completion : woken)
      if (completion->onNews)
        completion->onNews();
  }

  asio::io_context &io_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Completion>> waiting_;
};

// A connection is a descriptor; many systems allow 1024 until asked for more.
void allowDescriptors(uint64_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count)
    return;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace

struct HttpServer::State {
  explicit State(const HttpOptions &given) : options(given), hub(options) {}

  void listen();
  asio::awaitable<void> accept();
  void start(tcp::socket socket);
  void beginDrain();
  asio::awaitable<void> obeySignals();

  const HttpOptions options;
  asio::io_context io{1};
  Wakeups wakeups{io};
  tcp::acceptor acceptor{io};
  asio::steady_timer deadline{io};
  asio::signal_set signals{io};
  ConnectionHub hub;
  bool over = false;
};

void HttpServer::State::listen() {
  const std::string place = options.host + ":" + std::to_string(options.port);
  auto fail = [&](const std::string &what) { throw Error("--host, --port: cannot listen on " + place + ": " + what); };
  boost::system::error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (error || found.empty())
    fail(error ? error.message() : "no such address");
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error)
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error)
    acceptor.bind(endpoint, error);
  if (!error)
    acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    fail(error.message());
}

asio::awaitable<void> HttpServer::State::accept() {
  asio::steady_timer pause(io);
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor)
      co_return;
    if (!error && hub.open.size() < options.maxConnections) {
      start(std::move(socket));
      continue;
    }
    if (error) { // no descriptors left, say: those who wait keep their place
      pause.expires_after(std::chrono::milliseconds(50));
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    } // else: the socket is closed
  }
}

void HttpServer::State::start(tcp::socket socket) {
  auto connection = std::make_shared<Connection>(std::move(socket), hub);
  asio::co_spawn(io, connection->run(), [connection](std::exception_ptr failed) {
    try {
      if (failed)
        std::rethrow_exception(failed);
    } catch (const std::exception &error) { // out of memory, say: this client's loss alone
      std::fprintf(stderr, "connection: %s\n", error.what());
    }
  });
}

// Nobody new comes in; answers end, or are given up at the deadline.
void HttpServer::State::beginDrain() {
  if (hub.draining) { // told twice: now
    deadline.cancel();
    return;
  }
  hub.draining = true;
  hub.service->drain();
  boost::system::error_code ignored;
  acceptor.close(ignored);
  for (Connection *connection : std::vector(hub.open.begin(), hub.open.end()))
    connection->closeIfIdle();
  asio::co_spawn(
      io,
      [this]() -> asio::awaitable<void> {
        auto wait = [&](double seconds) -> asio::awaitable<void> { // in small steps: the last connection may go at any time
          const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
          while (!hub.open.empty() && std::chrono::steady_clock::now() < end) {
            deadline.expires_after(std::chrono::milliseconds(20));
            auto [error] = co_await deadline.async_wait(asio::as_tuple(asio::use_awaitable));
            if (error)
              break;
          }
        };
        co_await wait(options.drainSeconds);
        for (Connection *connection : hub.open)
          connection->cancelAnswer();
        co_await wait(1); // for them to be told
        for (Connection *connection : std::vector(hub.open.begin(), hub.open.end()))
          connection->close();
        over = true; // nobody may be waiting for a signal just now
        signals.cancel();
      },
      asio::detached);
}

asio::awaitable<void> HttpServer::State::obeySignals() {
  while (!over) {
    auto [error, number] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error)
      co_return;
    beginDrain();
  }
}

HttpServer::HttpServer(const HttpOptions &options) : state_(std::make_unique<State>(options)) {
  allowDescriptors(options.maxConnections + 64);
  state_->listen();
}

HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

std::string HttpServer::url() const {
  const tcp::endpoint endpoint = state_->acceptor.local_endpoint();
  const std::string address = endpoint.address().to_string();
  return (state_->options.tls ? "https://" : "http://") + (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

Completion::Notify HttpServer::notify() {
  return [state = state_.get()](std::shared_ptr<Completion> completion) { state->wakeups.add(std::move(completion)); };
}

void HttpServer::drain() {
  asio::post(state_->io, [state = state_.get()] { state->beginDrain(); });
}

void HttpServer::catchSignals() {
  state_->signals.add(SIGTERM);
  state_->signals.add(SIGINT);
  asio::co_spawn(state_->io, state_->obeySignals(), asio::detached);
}

void HttpServer::run(Service &service) {
  state_->hub.service = &service;
  asio::co_spawn(state_->io, state_->accept(), asio::detached);
  state_->io.run();
  state_->hub.text.join();
  state_->hub.disk.join();
}

} // namespace llmc
