// What clients get wrong, by accident or not: B61 and its kind. After each the server still answers.
#include "Serving.h"
#include "runtime/server/Gzip.h"

#include <fstream>

using namespace fake;

namespace {

class Hostile : public Serving {
protected:
  void SetUp() override {
    llmc::HttpOptions http;
    http.maxBody = 1 << 20;
    http.idleSeconds = 2;
    http.stallSeconds = 1;
    start(http);
    want_ = control();
    ASSERT_NE(want_, "");
  }
  /// A fixed request's answer.
  std::string control() {
    const Response r = post("/v1/completions", textBody("control"));
    return r.status == 200 ? r.json()["choices"].dump() : "";
  }
  void TearDown() override {
    EXPECT_EQ(control(), want_);
    EXPECT_EQ(get("/health").status, 200);
    EXPECT_TRUE(idle());
    Serving::TearDown();
  }
  std::string want_;
};

TEST_F(Hostile, Bodies) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  std::string keys = "{\"prompt\": \"a\"";
  for (int i = 0; i < 50000; ++i)
    keys += ",\"k" + std::to_string(i) + "\":1";
  keys += "}";
  for (const auto &[body, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "expected JSON"},
           {"{", "expected JSON"},
           {"{\"prompt\": \"abc\"", "expected JSON"},
           {"[1]", "body: expected an object, got [1]"},
           {"null", "body: expected an object"},
           {deep, "expected JSON nested at most 64 deep"},
           {"{\"ignored\": " + deep + ", \"prompt\": \"a\"}", "expected JSON nested at most 64 deep"},
           {"{\"prompt\": \"a\", \"tools\": " + deep + "}", "expected JSON nested at most 64 deep"},
           {"{\"prompt\": \"a\", \"response_format\": " + deep + "}", "expected JSON nested at most 64 deep"},
           {keys, "objects of at most 2048 keys"},
           {"{\"prompt\": \"a\", \"temperature\": 1e999}", "expected JSON"},
           {"{\"prompt\": \"\\ud800\"}", "expected JSON"},
           {"{\"prompt\": \"\xff\xfe\"}", "expected JSON"},
           {"{\"prompt\": \"\xc3\"}", "expected JSON"},
           {"{\"prompt\": \"a\", \"temperature\": NaN}", "expected JSON"},
           {"{\"prompt\": \"a\", \"max_tokens\": 99999999999999999999999}", "max_tokens: expected a whole number"},
           {"{\"prompt\": \"a\", \"seed\": \"x\"}", "seed: expected a whole number"},
           {"{\"prompt\": [[[1]]]}", "prompt: expected"},
           {"{\"prompt\": {\"a\": 1}}", "prompt: expected"}}) {
    const auto begin = std::chrono::steady_clock::now();
    const Response r = post("/v1/completions", Json(body));
    EXPECT_EQ(r.status, 400) << body.substr(0, 100);
    EXPECT_NE(errorOf(r).find(part), std::string::npos) << errorOf(r);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << body.substr(0, 100);
  }
  // The last of equal keys counts; a NUL is a character.
  EXPECT_EQ(post("/v1/completions", Json("{\"prompt\": \"a\", \"max_tokens\": 3, \"max_tokens\": 5}")).json()["usage"]["completion_tokens"], 5);
  EXPECT_EQ(post("/v1/completions", Json("{\"prompt\": \"a\\u0000b\"}")).json()["usage"]["prompt_tokens"], 3);
}

TEST_F(Hostile, HugeBodies) {
  // By its length: refused before it is read. Without one: as soon as it is too long.
  Client client(port_);
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 67108864\r\n\r\n");
  Response r = client.receive();
  EXPECT_EQ(r.status, 413);
  EXPECT_EQ(errorOf(r), "body: expected at most 1048576 bytes, got more");
  EXPECT_EQ(r.headers.at("connection"), "close");
  Client eager(port_);
  eager.send(httpText("POST", "/v1/completions", "{\"prompt\": \"" + std::string(8 << 20, 'a') + "\"}"));
  EXPECT_EQ(eager.receive().status, 413) << "it is read on, so that the client gets this";
  Client chunks(port_);
  chunks.send(httpText("POST", "/v1/completions", "", "Transfer-Encoding: chunked\r\n"));
  const std::string chunk = "10000\r\n" + std::string(65536, ' ') + "\r\n";
  for (int i = 0; i < 40 && chunks.send(chunk); ++i)
    ;
  EXPECT_EQ(chunks.receive().status, 413);
  const Response good = talk(httpText("POST", "/v1/completions", "d\r\n{\"prompt\":\"a\"\r\n1\r\n}\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(good.status, 200) << good.body;
  EXPECT_EQ(post("/v1/completions", textBody(std::string(1000000, 'a'))).status, 400) << "the limit's own size is read";
}

// Bodies as gzip: bounded by what they unpack to, and whole.
TEST_F(Hostile, PackedBodies) {
  auto packed = [&](const std::string &bytes) { return talk(httpText("POST", "/v1/completions", bytes, "Content-Type: application/json\r\nContent-Encoding: gzip\r\n")); };
  const std::string good = llmc::packGzip(textBody("abc").dump());
  EXPECT_EQ(packed(good).json()["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(packed(llmc::packGzip("{\"prompt\":") + llmc::packGzip("\"abc\"}")).status, 200) << "two members";
  const std::string bomb = llmc::packGzip(std::string(200 << 20, ' '));
  ASSERT_LT(bomb.size(), size_t(1) << 20) << "its packed length alone is allowed";
  const auto begin = std::chrono::steady_clock::now();
  const Response r = packed(bomb);
  EXPECT_EQ(r.status, 413);
  EXPECT_EQ(errorOf(r), "body: expected at most 1048576 bytes when unpacked, got more");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << "it is not unpacked to its end";
  std::string flipped = good;
  flipped[flipped.size() - 6] ^= 1; // of the checksum
  for (const auto &[bytes, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "got the beginning of it"}, {good.substr(0, good.size() - 1), "got the beginning of it"}, {good.substr(0, 5), "got the beginning of it"},
           {flipped, "incorrect data check"}, {textBody("abc").dump(), "incorrect header check"}, {good + "x", "expected gzip"}, {good + good, "expected JSON"}}) {
    const Response bad = packed(bytes);
    EXPECT_EQ(bad.status, 400) << bad.body;
    EXPECT_NE(errorOf(bad).find(part), std::string::npos) << errorOf(bad);
  }
}

TEST_F(Hostile, Headers) {
  EXPECT_EQ(talk("GET /health HTTP/1.1\r\nHost: x\r\nA: " + std::string(100000, 'b')).status, 431) << "a line without an end";
  std::string many = "GET /health HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 5000; ++i)
    many += "A" + std::to_string(i) + ": b\r\n";
  EXPECT_EQ(talk(many + "\r\n").status, 431);
  for (const char *bad : {"\r\n\r\n\r\n\r\n", "GET\r\n\r\n", "GET /health\r\n\r\n", "GET /health HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                          "GET /health HTTP/1.1\r\nbad header\r\n\r\n", "POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                          "POST /v1/completions HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                          "POST /v1/completions HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                          "POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"})
    EXPECT_EQ(talk(bad).status, 400) << bad;
  EXPECT_EQ(get("/v1/models/%zz").status, 400);
  EXPECT_EQ(get("/v1/chat").status, 404);
  const Response wrong = get("/v1/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST");
  for (const char *type : {"Content-Type: text/plain\r\n", "Content-Type: \r\n", "Content-Type: application/x-www-form-urlencoded\r\n"}) {
    const Response r = post("/v1/completions", textBody("a"), type);
    EXPECT_EQ(r.status, 415) << r.body;
    EXPECT_NE(errorOf(r).find("content-type: expected application/json, got"), std::string::npos);
  }
  EXPECT_EQ(post("/v1/completions", textBody("a"), "Content-Type: Application/JSON; charset=utf-8\r\n").status, 200);
  const Response other = post("/v1/completions", textBody("a"), "Content-Encoding: br\r\n");
  EXPECT_EQ(other.status, 415);
  EXPECT_EQ(other.headers.at("accept-encoding"), "gzip");
  const Response id = get("/health", "X-Request-Id: a b\x7f\r\n");
  EXPECT_EQ(id.headers.at("x-request-id").size(), 24u) << "not one that could be logged: a new one";
}

TEST_F(Hostile, ClientsThatStop) {
  const std::string text = httpText("POST", "/v1/completions", textBody("abc").dump());
  Client silent(port_), half(port_), cut(port_), gone(port_), reset(port_);
  half.send(text.substr(0, text.size() - 3));
  cut.send(text.substr(0, text.size() - 3));
  cut.halfClose();
  EXPECT_EQ(cut.receive().status, 400) << "a body that is cut short";
  gone.send(text.substr(0, 20));
  { Client closes(std::move(gone)); }
  reset.send(text);
  reset.abort();
  EXPECT_TRUE(half.closedByServer()) << "within --stall-seconds";
  EXPECT_TRUE(silent.closedByServer()) << "within --idle-seconds";
}

TEST(ApiKeys, Files) {
  TemporaryFolder folder;
  auto file = [&](const std::string &text) {
    std::ofstream(folder / "keys") << text;
    return folder / "keys";
  };
  const llmc::ApiKeys keys({"a"}, file("b\r\n\nc\n"));
  for (const char *key : {"a", "b", "c"})
    EXPECT_TRUE(keys.allow(std::string("Bearer ") + key));
  EXPECT_FALSE(keys.allow("Bearer "));
  for (const auto &[text, part] : {std::pair("\n\n", "expected a key a line, got none"), {"a b\n", "keys:1: expected a key of visible ASCII"}}) {
    const std::string path = file(text);
    try {
      llmc::ApiKeys({}, path);
      ADD_FAILURE() << text;
    } catch (const llmc::Error &error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(llmc::ApiKeys({}, folder / "none"), llmc::Error);
  EXPECT_THROW(llmc::ApiKeys({""}, ""), llmc::Error);
}

} // namespace
