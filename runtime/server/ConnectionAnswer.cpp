//===- ConnectionAnswer.cpp - sends answers -------------------------------===//
//
// While an answer is generated two coroutines run for it: one sends what has come,
// the other waits for the client to leave. The first to end ends the other.
//
//===----------------------------------------------------------------------===//
#include "runtime/server/Exchange.h"
#include "runtime/server/Gzip.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>
#include <cstdio>

namespace llmc {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

static constexpr uint64_t kPiece = 256 << 10; // of a file
static constexpr size_t kPackFrom = 1 << 10, kLongBody = 256 << 10; // bytes of a body
// Of requests that come before the answer to an earlier one: read at a time, and in all.
static constexpr size_t kAhead = 1024, kMostAhead = 16 << 10;

// Status line and header. Beast's serializers would do this in 400 KB of code. No value has a line break: those of clients come
// out of a parser that lets none through.
std::string Connection::headerOf(const Exchange &x) const {
  const HttpResponse &r = x.response;
  std::string text = std::string("HTTP/1.") + (x.http10() ? "0 " : "1 ") + std::to_string(r.status) + " " +
                     std::string(std::string_view(http::obsolete_reason(http::status(r.status)))) + "\r\n";
  auto add = [&](std::string_view name, std::string_view value) { text.append(name).append(": ").append(value).append("\r\n"); };
  add("Connection", x.keepAlive ? "keep-alive" : "close");
  add("x-request-id", x.request.id);
  if (r.status != 204)
    add("Content-Type", r.type);
  if (x.stream && !x.http10())
    add("Transfer-Encoding", "chunked");
  if (!x.stream && r.status != 204)
    add("Content-Length", std::to_string(r.file ? r.file->size() : r.body.size()));
  const std::vector<std::string> &origins = hub_.options.corsOrigins;
  const bool any = std::find(origins.begin(), origins.end(), "*") != origins.end();
  if (!x.origin.empty() && (any || std::find(origins.begin(), origins.end(), x.origin) != origins.end())) {
    add("Access-Control-Allow-Origin", any ? "*" : x.origin);
    add("Access-Control-Expose-Headers", "x-request-id");
  }
  if (!origins.empty() && !any)
    add("Vary", "Origin");
  for (const auto &[name, value] : r.headers)
    add(name, value);
  return text + "\r\n";
}

asio::awaitable<bool> Connection::write(std::string text) {
  expire(hub_.options.stallSeconds);
  auto [error, bytes] = co_await asio::async_write(stream_, asio::buffer(text), kTuple);
  co_return !error;
}

// Sends what x.response is or becomes. True: another request may follow.
asio::awaitable<bool> Connection::finish(Exchange &x) {
  if (x.response.completion)
    co_await await(x);
  if (!x.cut && !x.stream) {
    co_await pack(x);
    x.keepAlive &= !hub_.draining;
    x.cut = !co_await write(headerOf(x) + x.response.body) || (x.response.file && !co_await writeFile(x));
  }
  hub_.service->counters().answered(x.route, x.response.status);
  log(x);
  if (x.cut) {
    close();
    co_return false;
  }
  if (!x.keepAlive)
    co_await linger();
  co_return x.keepAlive;
}

// Piece by piece: it may be long.
asio::awaitable<bool> Connection::writeFile(Exchange &x) {
  const InputFile &file = *x.response.file;
  for (uint64_t at = 0; at < file.size(); at += kPiece) {
    std::string piece(size_t(std::min<uint64_t>(kPiece, file.size() - at)), '\0');
    try {
      file.read(at, piece.data(), piece.size());
    } catch (const Error &) { // somebody has cut it short: the client sees that, too
      co_return false;
    }
    if (!co_await write(std::move(piece)))
      co_return false;
  }
  co_return true;
}

// As gzip, if that is smaller. A very long body has the thread for text meanwhile.
asio::awaitable<void> Connection::pack(Exchange &x) {
  std::string &body = x.response.body;
  if (body.size() < kPackFrom)
    co_return;
  x.response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!x.mayPack)
    co_return;
  std::string packed;
  if (body.size() < kLongBody)
    packed = packGzip(body);
  else
    packed = co_await asio::co_spawn(hub_.text, [&]() -> asio::awaitable<std::string> { co_return packGzip(body); }, asio::use_awaitable);
  if (packed.size() >= body.size())
    co_return;
  body = std::move(packed);
  x.response.headers.emplace_back("Content-Encoding", "gzip");
}

// Until the answer is there or sent, or the client has left.
asio::awaitable<void> Connection::await(Exchange &x) {
  using namespace asio::experimental::awaitable_operators;
  completion_ = x.response.completion;
  if (completion_->request().stream)
    ++hub_.service->counters().streams;
  const auto first = co_await (pump(x) || watch());
  x.cut |= first.index() == 1;
  if (x.cut)
    completion_->cancel("the client has left");
  if (completion_->request().stream)
    --hub_.service->counters().streams;
  completion_ = nullptr;
  x.response.completion = nullptr;
}

// An exception must not leave the client waiting for an answer that nobody sends.
asio::awaitable<void> Connection::pump(Exchange &x) {
  try {
    co_await pumpAll(x);
  } catch (const std::exception &) {
    x.cut = true;
  }
}

asio::awaitable<void> Connection::pumpAll(Exchange &x) {
  Completion &completion = *completion_;
  const bool stream = completion.request().stream;
  const std::unique_ptr<AnswerEvents> events = AnswerEvents::make(completion, hub_.service->name());
  asio::steady_timer news(stream_.get_executor());
  completion.onNews = [&news] { news.cancel(); };
  const std::shared_ptr<void> forget(nullptr, [&](void *) { completion.onNews = nullptr; }); // however this ends
  for (;;) {
    const Completion::State state = completion.take();
    if (state.tooSlow) {
      x.cut = true;
      co_return;
    }
    if (!state.error.empty() && !x.stream) {
      x.response = errorResponse(state.status, state.error);
      co_return;
    }
    if (state.ended && !stream) {
      x.response.body = jsonText(completion.body(hub_.service->name()));
      co_return;
    }
    const bool done = state.ended || !state.error.empty();
    if (stream && (done || !state.news.empty())) {
      x.cut = !co_await write(eventsText(x, events->of(state), done));
      if (done || x.cut)
        co_return;
      continue;
    }
    news.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(hub_.options.heartbeatSeconds)));
    auto [woken] = co_await news.async_wait(kTuple);
    if (!woken && stream && !co_await write(eventsText(x, AnswerEvents::heartbeat(), false))) {
      x.cut = true;
      co_return;
    }
  }
}

// A stream's header goes with the first of its events, so that what fails before has a status.
std::string Connection::eventsText(Exchange &x, const std::string &events, bool last) {
  std::string text;
  if (!x.stream) {
    x.stream = true;
    x.keepAlive &= !x.http10() && !hub_.draining;
    x.response.type = "text/event-stream";
    x.response.headers.insert(x.response.headers.end(), {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}); // no: of proxies
    text = headerOf(x);
  }
  if (x.http10())
    return text + events;
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", events.size());
  return text + size + events + (last ? "\r\n0\r\n\r\n" : "\r\n");
}

// Ends when the client has closed its side. What it sends meanwhile is its next request.
asio::awaitable<void> Connection::watch() {
  while (buffer_.size() < kMostAhead) {
    stream_.tcp().expires_never(); // a read that has begun keeps this, whatever deadlines writing sets
    auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(kAhead), kTuple);
    if (error)
      co_return;
    buffer_.commit(bytes);
  }
  // Whether more comes cannot be seen without reading it. Writing will tell.
  asio::steady_timer never(stream_.get_executor(), asio::steady_timer::time_point::max());
  co_await never.async_wait(kTuple);
}

// The end of the last answer, then what comes behind it.
asio::awaitable<void> Connection::linger() {
  expire(2);
  if (stream_.encrypted())
    co_await stream_.sayEnd(kTuple);
  co_await drain();
}

// A connection that is closed with bytes unread is reset, and its client may lose the answer: read on for a while.
asio::awaitable<void> Connection::drain() {
  boost::system::error_code ignored;
  stream_.tcp().socket().shutdown(tcp::socket::shutdown_send, ignored);
  expire(2);
  std::string scratch(16 << 10, '\0');
  for (size_t total = 0; total < size_t(256) << 20;) {
    auto [error, bytes] = co_await stream_.tcp().async_read_some(asio::buffer(scratch), kTuple);
    if (error)
      break;
    total += bytes;
  }
  close();
}

} // namespace llmc
