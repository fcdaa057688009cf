// Many clients, slow ones, ones that leave, and the end of the server.
#include "Serving.h"

#include <atomic>
#include <fstream>
#include <malloc.h>

using namespace fake;

namespace {

Json endless(Json more = Json::object()) { // some seconds with the slow model
  Json body = textBody("abc", {{"n", 64}, {"max_tokens", 90}, {"ignore_eos", true}, {"temperature", 0.9}});
  body.update(more);
  return body;
}

TEST_F(Serving, ManyAtATimeGetWhatTheyGetAlone) {
  start();
  std::vector<std::string> alone;
  auto body = [](int kind, bool stream) {
    return textBody("common beginning " + std::to_string(kind), {{"temperature", 0.8}, {"seed", kind}, {"max_tokens", 20}, {"stream", stream}});
  };
  for (int kind = 0; kind < 8; ++kind)
    alone.push_back(post("/v1/completions", body(kind, false)).json()["choices"][0]["text"]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 16; ++c)
    clients.emplace_back([&, c] {
      Client client(port_);
      for (int i = 0; i < 25; ++i) {
        const int kind = (c + i) % 8;
        const bool stream = (c + i) % 3 == 0;
        client.send(httpText("POST", "/v1/completions", body(kind, stream).dump()));
        const Response r = client.receive();
        std::string text;
        if (r.status == 200 && stream)
          for (const Json &event : r.events())
            text += event["choices"][0]["text"];
        else if (r.status == 200)
          text = r.json()["choices"][0]["text"];
        wrong += text != alone[size_t(kind)];
      }
    });
  for (std::thread &client : clients)
    client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(idle());
}

// Streamed or not, waiting or running: who leaves is not worked for any more, and his blocks come back.
TEST_F(Serving, ClientsThatLeave) {
  start({}, slow());
  for (bool stream : {true, false})
    for (bool reset : {true, false}) {
      std::vector<Client> clients;
      for (int i = 0; i < 3; ++i) {
        clients.emplace_back(port_);
        clients.back().send(httpText("POST", "/v1/completions", endless({{"stream", stream}}).dump()));
      }
      if (stream)
        EXPECT_NE(clients[0].until("data: "), "");
      EXPECT_TRUE(reaches("llmc_requests_running", 1));
      EXPECT_TRUE(reaches("llmc_requests_waiting", 1));
      for (Client &client : clients)
        if (reset)
          client.abort();
      clients.clear();
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_TRUE(idle());
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << "not at their natural end";
    }
  EXPECT_GT(metric("llmc_requests_ended_total{outcome=\"cancelled\"}"), 0);
  EXPECT_EQ(metric("llmc_http_connections"), 1);
}

// B62: streams that nobody reads cost no thread, delay nobody and do not keep the server from ending.
TEST_F(Serving, StreamsThatNobodyReads) {
  llmc::HttpOptions http;
  http.drainSeconds = 0.2;
  start(http, slow());
  std::vector<Client> streams;
  for (int i = 0; i < 40; ++i) {
    streams.emplace_back(port_, 4096);
    streams.back().send(httpText("POST", "/v1/completions", endless({{"stream", true}, {"logprobs", 5}, {"priority", i}}).dump()));
  }
  auto seconds = [begin = std::chrono::steady_clock::now()] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  EXPECT_EQ(get("/health").status, 200);
  for (int i = 0; i < 500 && service_->counters().streams == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(metric("llmc_http_streams"), 1);
  EXPECT_LT(seconds(), 1);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:"))
      EXPECT_LT(std::stoi(line.substr(8)), 12) << line;
  EXPECT_TRUE(stop(3)) << "longer than the time for that";
}

// One that does not read is given up when too much has piled up, and the engine has not waited for it.
TEST_F(Serving, SlowReadersAreGivenUp) {
  start();
  Client slow(port_, 4096);
  Json body = textBody("abc", {{"n", 128}, {"max_tokens", 90}, {"ignore_eos", true}, {"temperature", 0.9}, {"logprobs", 20}, {"stream", true}});
  slow.send(httpText("POST", "/v1/completions", body.dump()));
  EXPECT_NE(slow.until("data: "), "");
  for (int i = 0; i < 1000 && metric("llmc_slow_readers_total") < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(metric("llmc_slow_readers_total"), 1);
  EXPECT_TRUE(idle());
  EXPECT_EQ(slow.rest().find("[DONE]"), std::string::npos) << "it does not look like a whole answer";
}

TEST_F(Serving, FullQueueAndConnections) {
  llmc::ServiceOptions options = slow();
  options.maxQueue = 4;
  llmc::HttpOptions http;
  http.maxConnections = 3;
  http.drainSeconds = 0;
  start(http, options);
  Client first(port_);
  first.send(httpText("POST", "/v1/completions", endless({{"stream", true}}).dump()));
  first.until("data: ");
  EXPECT_TRUE(reaches("llmc_requests_waiting", 4));
  while (service_->counters().connections > 1)
    ;
  const Response full = post("/v1/completions", textBody("abc"));
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(full.headers.at("retry-after"), "1");
  EXPECT_EQ(full.json()["error"]["code"], "overloaded");
  EXPECT_EQ(get("/ready").status, 503);
  EXPECT_EQ(get("/health").status, 200);
  while (service_->counters().connections > 1)
    ;
  Client second(port_), third(port_), fourth(port_);
  second.send(httpText("GET", "/health", ""));
  third.send(httpText("GET", "/health", ""));
  EXPECT_EQ(second.receive().status, 200);
  EXPECT_EQ(third.receive().status, 200);
  EXPECT_TRUE(fourth.closedByServer());
}

// Drained: what runs ends well, who waits for nothing is let go, nobody new comes in.
TEST_F(Serving, Drains) {
  start({}, slow());
  Client running(port_), kept(port_);
  kept.send(httpText("GET", "/ready", ""));
  EXPECT_EQ(kept.receive().status, 200);
  running.send(httpText("POST", "/v1/completions", textBody("abc", {{"max_tokens", 90}, {"ignore_eos", true}, {"stream", true}}).dump()));
  running.until("data: ");
  std::thread ending([&] { EXPECT_TRUE(stop()); });
  EXPECT_TRUE(kept.closedByServer());
  EXPECT_FALSE(Client(port_).connected());
  const std::string rest = running.rest();
  EXPECT_NE(rest.find("[DONE]"), std::string::npos);
  ending.join();
}

TEST_F(Serving, DrainsOnlySoLong) {
  llmc::HttpOptions http;
  http.drainSeconds = 0.1;
  start(http, slow());
  Client stream(port_), whole(port_);
  stream.send(httpText("POST", "/v1/completions", endless({{"stream", true}}).dump()));
  stream.until("data: ");
  whole.send(httpText("POST", "/v1/completions", endless().dump()));
  while (metric("llmc_requests_submitted_total") < 128)
    ;
  EXPECT_TRUE(stop(3));
  EXPECT_NE(stream.rest().find("the server is shutting down"), std::string::npos);
  const Response r = whole.receive();
  EXPECT_EQ(r.status, 503);
  EXPECT_EQ(errorOf(r), "the server is shutting down");
}

// A thousand idle connections and two hundred streams cost memory only, and little.
TEST_F(Serving, ConnectionsAreCheap) {
  llmc::HttpOptions http;
  http.drainSeconds = 0;
  llmc::ServiceOptions options = slow();
  options.maxQueue = 100000;
  start(http, options);
  auto allocated = [] { // 0 with sanitizers, which have an allocator of their own
    const struct mallinfo2 info = mallinfo2();
    return double(info.uordblks + info.hblkhd);
  };
  get("/health");
  const double before = allocated();
  std::vector<Client> clients;
  for (int i = 0; i < 400; ++i) {
    clients.emplace_back(port_);
    clients.back().send(httpText("GET", "/health", ""));
    ASSERT_EQ(clients.back().receive().status, 200) << i;
  }
  const double idleBytes = (allocated() - before) / 400;
  EXPECT_LT(idleBytes, 100e3);
  const double idle = allocated();
  for (int i = 0; i < 200; ++i)
    clients[size_t(i)].send(httpText("POST", "/v1/completions", textBody("abc", {{"stream", true}, {"max_tokens", 90}, {"ignore_eos", true}}).dump()));
  while (metric("llmc_requests_submitted_total") < 200)
    ;
  const double streamBytes = (allocated() - idle) / 200;
  EXPECT_LT(streamBytes, 100e3);
  std::printf("an idle connection: %.1f KB, a stream: %.1f KB\n", idleBytes / 1e3, streamBytes / 1e3);
}

} // namespace
