//===- Connection.cpp - reads requests ------------------------------------===//
//
// In order: the header; what can be refused by it (path, key, type and size of the
// body); the body; the route, on the thread for text where it takes time; the answer
// (ConnectionAnswer.cpp).
//
//===----------------------------------------------------------------------===//
#include "runtime/server/Exchange.h"
#include "runtime/server/Gzip.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <cstdio>

namespace llmc {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

static constexpr unsigned kMostUploads = 2; // at a time: each is held in memory

Connection::Connection(asio::ip::tcp::socket socket, ConnectionHub &hub) : hub_(hub), stream_(std::move(socket), hub.options.tls.get()) {
  hub_.open.insert(this);
  ++hub_.service->counters().connections;
  boost::system::error_code ignored;
  stream_.tcp().socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  stream_.tcp().socket().set_option(asio::socket_base::keep_alive(true), ignored);         // a peer that has vanished is noticed
  stream_.tcp().socket().set_option(asio::socket_base::send_buffer_size(64 << 10), ignored); // what the system keeps for a slow reader
}

Connection::~Connection() {
  hub_.open.erase(this);
  --hub_.service->counters().connections;
}

void Connection::closeIfIdle() {
  if (!busy_)
    close();
}

void Connection::cancelAnswer() {
  if (completion_)
    completion_->cancel("the server is shutting down");
}

void Connection::close() {
  boost::system::error_code ignored;
  stream_.tcp().socket().close(ignored);
}

void Connection::expire(double seconds) {
  stream_.tcp().expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds)));
}

asio::awaitable<void> Connection::run() {
  bool more = !stream_.encrypted() || co_await handshake();
  while (more && !hub_.draining)
    more = co_await exchange();
  completion_ = nullptr;
}

asio::awaitable<bool> Connection::handshake() {
  expire(hub_.options.stallSeconds);
  auto [error] = co_await stream_.handshake(kTuple);
  if (!error)
    co_return true;
  if (error.category() != asio::error::get_ssl_category() || ERR_GET_REASON(error.value()) != SSL_R_HTTP_REQUEST)
    co_return false;
  Exchange x(hub_.options.maxHeader, hub_.options.maxBody); // the only request that is understood without TLS
  x.request.id = newId();
  x.response = errorResponse(400, "expected https://, got a request without TLS");
  const std::string text = headerOf(x) + x.response.body;
  co_await asio::async_write(stream_.tcp(), asio::buffer(text), kTuple);
  hub_.service->counters().answered(x.route, x.response.status);
  co_await drain();
  co_return false;
}

// One request and its answer; true: another may follow.
asio::awaitable<bool> Connection::exchange() {
  Exchange x(hub_.options.maxHeader, hub_.service->hasBatches() ? std::max(hub_.options.maxBody, hub_.options.maxFile) : hub_.options.maxBody);
  busy_ = false;
  if (buffer_.size() == 0)
    buffer_.shrink_to_fit();
  if (!co_await receive(x))
    co_return false;
  co_return co_await finish(x);
}

// The status that a client gets for what it sent; 0: nobody is there to get one, or has asked for anything.
static unsigned statusOf(const boost::system::error_code &error) {
  if (error == http::error::header_limit)
    return 431;
  if (error == http::error::body_limit)
    return 413;
  if (error == http::error::end_of_stream)
    return 0;
  return error.category() == make_error_code(http::error::bad_method).category() ? 400 : 0;
}

static std::string tooLong(uint64_t most) { return "body: expected at most " + std::to_string(most) + " bytes, got more"; }

static std::string messageOf(unsigned status, const HttpOptions &options, uint64_t maxBody, const boost::system::error_code &error) {
  switch (status) {
  case 431:
    return "header: expected at most " + std::to_string(options.maxHeader) + " bytes, got more";
  case 413:
    return tooLong(maxBody);
  default:
    return "expected an HTTP request, got something else (" + error.message() + ")";
  }
}

// False: the client has gone. Otherwise x.response is there, at least the error of a request that is not worth reading on.
asio::awaitable<bool> Connection::receive(Exchange &x) {
  expire(hub_.options.idleSeconds);
  auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, x.parser, kTuple);
  busy_ = true;
  x.request.arrival = std::chrono::steady_clock::now();
  x.keepAlive = !error && x.message().keep_alive() && !hub_.draining;
  const Route *route = nullptr;
  if (!error)
    route = admit(x);
  const std::shared_ptr<void> uploaded(nullptr, [&](void *) { hub_.uploads -= x.upload; });
  if (!error && route && !x.parser.is_done()) {
    expire(hub_.options.stallSeconds);
    if (equalNoCase(std::string_view(x.message()[http::field::expect]), "100-continue"))
      co_await write("HTTP/1.1 100 Continue\r\n\r\n");
    std::tie(error, bytes) = co_await http::async_read(stream_, buffer_, x.parser, kTuple);
  }
  if (error) {
    const unsigned status = statusOf(error); // none for one that took too long: it is closed by then
    if (!status)
      co_return false;
    x.keepAlive = false;
    x.request.id = requestId(std::string_view(x.message()["x-request-id"]));
    x.response = errorResponse(status, messageOf(status, hub_.options, x.maxBody, error));
    co_return true;
  }
  if (!route) {
    x.keepAlive &= x.parser.is_done(); // a body is not read, so no request can follow it
    co_return true;
  }
  x.request.body = std::move(x.parser.get().body());
  x.response = co_await ask(*route, x);
  co_return true;
}

// The route of a request whose body is wanted; null: x.response says why not.
const Route *Connection::admit(Exchange &x) {
  const auto &m = x.message();
  x.request.id = requestId(std::string_view(m["x-request-id"]));
  x.request.method = std::string_view(m.method_string());
  x.origin = std::string_view(m[http::field::origin]);
  x.mayPack = acceptsGzip(std::string_view(m[http::field::accept_encoding]));
  try {
    x.request.path = pathOf(std::string_view(m.target()));
    if (x.request.method == "OPTIONS") {
      x.response = preflight(x);
      return nullptr;
    }
    const Route &route = findRoute(x.request.method, x.request.path);
    x.route = route.path;
    if (!route.open && !hub_.options.keys.allow(std::string_view(m[http::field::authorization])))
      throw HttpError(401, "authorization: expected \"Bearer KEY\" with a key of this server", "", "invalid_api_key",
                      {{"WWW-Authenticate", "Bearer"}});
    const std::string type{std::string_view(m[http::field::content_type])}, encoding{std::string_view(m[http::field::content_encoding])};
    const char *wanted = route.body == Body::Form ? "multipart/form-data" : "application/json";
    if (route.method == std::string_view("POST") && route.body != Body::Any && mediaType(type) != wanted)
      throw HttpError(415, std::string("content-type: expected ") + wanted + ", got " + (type.empty() ? "none" : type.substr(0, 100)));
    x.packed = equalNoCase(encoding, "gzip") || equalNoCase(encoding, "x-gzip");
    if (!x.packed && !encoding.empty() && !equalNoCase(encoding, "identity"))
      throw HttpError(415, "content-encoding: expected gzip or identity, got " + encoding.substr(0, 100), "", "", {{"Accept-Encoding", "gzip"}});
    x.request.target = std::string_view(m.target());
    x.request.type = type;
    route.matches(x.request.path, &x.request.param);
    bound(x, route.body == Body::Form && hub_.service->hasBatches());
    return &route;
  } catch (const HttpError &error) {
    x.response = errorResponse(error);
    return nullptr;
  }
}

// The body's length, now that its route is known.
void Connection::bound(Exchange &x, bool file) {
  x.maxBody = file ? hub_.options.maxFile : hub_.options.maxBody;
  if (const auto length = x.parser.content_length(); length && *length > x.maxBody)
    throw HttpError(413, tooLong(x.maxBody));
  x.parser.body_limit(x.maxBody);
  if (!file)
    return;
  if (hub_.uploads >= kMostUploads)
    throw HttpError(503, "expected at most " + std::to_string(kMostUploads) + " files on their way here, got one more", "", "overloaded", {{"Retry-After", "1"}});
  x.upload = true;
  ++hub_.uploads;
}

// What a browser asks before it lets a page of another origin ask.
HttpResponse Connection::preflight(const Exchange &x) const {
  std::string methods = methodsOf(x.request.path);
  if (methods.empty())
    findRoute(x.request.method, x.request.path); // says what is wrong
  methods += ", OPTIONS";
  HttpResponse response;
  response.status = 204;
  response.headers = {{"Allow", methods}};
  if (x.message().count(http::field::access_control_request_method)) {
    std::string wanted{std::string_view(x.message()[http::field::access_control_request_headers])};
    if (wanted.empty())
      wanted = "authorization, content-type, x-request-id";
    response.headers.insert(response.headers.end(), {{"Access-Control-Allow-Methods", methods},
                                                     {"Access-Control-Allow-Headers", wanted},
                                                     {"Access-Control-Max-Age", "600"}});
  }
  return response;
}

static HttpResponse unpackAndAnswer(Service &service, const Route &route, HttpRequest &request, uint64_t maxBody) {
  try {
    request.body = unpackGzip(request.body, maxBody);
  } catch (const HttpError &error) {
    return errorResponse(error);
  }
  return answer(service, route, request);
}

asio::awaitable<HttpResponse> Connection::ask(const Route &route, Exchange &x) {
  Service &service = *hub_.service;
  if (route.place == Place::Here)
    co_return answer(service, route, x.request);
  co_return co_await asio::co_spawn(
      route.place == Place::Text ? hub_.text : hub_.disk,
      [&]() -> asio::awaitable<HttpResponse> {
        co_return x.packed ? unpackAndAnswer(service, route, x.request, x.maxBody) : answer(service, route, x.request);
      },
      asio::use_awaitable);
}

void Connection::log(const Exchange &x) const {
  if (!hub_.options.log)
    return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - x.request.arrival).count();
  std::fprintf(stderr, "%s %s %s %u %.3f s%s\n", x.request.id.c_str(), x.request.method.empty() ? "-" : x.request.method.c_str(),
               x.route.c_str(), x.response.status, seconds, x.cut ? ", cut" : "");
}

} // namespace llmc
