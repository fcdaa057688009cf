// What the routes answer: fields, streams, headers, keys, metrics.
#include "Serving.h"
#include "runtime/server/Gzip.h"

using namespace fake;

namespace {

TEST_F(Serving, AnswersChatsAndTexts) {
  start();
  const Response chat = post("/v1/chat/completions", chatBody("Hello", {{"model", "fake"}}), "X-Request-Id: abc-1\r\n");
  ASSERT_EQ(chat.status, 200) << chat.body;
  EXPECT_EQ(chat.headers.at("x-request-id"), "abc-1");
  EXPECT_EQ(chat.headers.at("content-type"), "application/json");
  const Json c = chat.json();
  EXPECT_EQ(c["object"], "chat.completion");
  EXPECT_EQ(c["model"], "fake");
  EXPECT_EQ(c["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(c["usage"]["completion_tokens"], 8);
  EXPECT_EQ(c["choices"][0]["finish_reason"], "length");
  const Json t = post("/v1/completions", textBody("abc")).json();
  EXPECT_EQ(t["object"], "text_completion");
  EXPECT_EQ(t["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(post("/v1/completions", textBody({97, 98.0, 99}, {{"max_tokens", 8.0}})).json()["choices"], t["choices"]) << "ids and their text";
  const Json n = post("/v1/completions", textBody("abc", {{"n", 3}, {"temperature", 0.9}, {"seed", 4}})).json();
  ASSERT_EQ(n["choices"].size(), 3u);
  for (int k = 0; k < 3; ++k)
    EXPECT_EQ(post("/v1/completions", textBody("abc", {{"temperature", 0.9}, {"seed", 4 + k}})).json()["choices"][0]["text"], n["choices"][k]["text"]);
  EXPECT_EQ(post("/v1/completions", textBody("abc", {{"logit_bias", {{"65", 100}}}, {"stop", "AAA"}, {"max_tokens", 50}})).json()["choices"][0]["finish_reason"], "stop");
}

// Streamed and not, the text, the reasons, the log-probabilities and the usage are the same.
TEST_F(Serving, StreamsWhatItAnswers) {
  start();
  for (const Json &more : {Json::object(), Json{{"n", 3}, {"temperature", 0.8}}, Json{{"stop", "AAA"}, {"logit_bias", {{"65", 3}}}, {"max_tokens", 60}},
                           Json{{"max_tokens", 0}}, Json{{"max_tokens", 1}}}) {
    for (bool chat : {true, false}) {
      Json body = chat ? chatBody("Hello", more) : textBody("Hello", more);
      if (chat) {
        body["logprobs"] = true;
        body["top_logprobs"] = 2;
      } else {
        body["logprobs"] = 2;
      }
      const std::string path = chat ? "/v1/chat/completions" : "/v1/completions";
      const Json whole = post(path, body).json();
      body["stream"] = true;
      body["stream_options"] = {{"include_usage", true}};
      const Response streamed = post(path, body);
      ASSERT_EQ(streamed.status, 200) << streamed.body;
      EXPECT_EQ(streamed.headers.at("content-type"), "text/event-stream");
      EXPECT_TRUE(streamed.done());
      const size_t n = whole["choices"].size();
      std::vector<std::string> text(n), finish(n);
      std::vector<Json> rows(n, Json::array());
      Json usage;
      for (const Json &event : streamed.events()) {
        EXPECT_EQ(event["object"], chat ? "chat.completion.chunk" : "text_completion");
        for (const Json &choice : event["choices"]) {
          const size_t i = choice["index"];
          EXPECT_EQ(finish[i], "") << "nothing comes behind the end";
          text[i] += chat ? choice["delta"].value("content", "") : choice["text"].get<std::string>();
          if (choice["finish_reason"].is_string())
            finish[i] = choice["finish_reason"];
          if (!choice["logprobs"].is_null())
            for (const Json &row : choice["logprobs"][chat ? "content" : "tokens"])
              rows[i].push_back(row);
        }
        usage = event["usage"];
      }
      for (size_t i = 0; i < n; ++i) {
        const Json &want = whole["choices"][i];
        EXPECT_EQ(text[i], (chat ? want["message"]["content"] : want["text"]).get<std::string>());
        EXPECT_EQ(finish[i], want["finish_reason"].get<std::string>());
        EXPECT_EQ(rows[i], want["logprobs"][chat ? "content" : "tokens"]);
      }
      for (const char *key : {"prompt_tokens", "completion_tokens", "total_tokens"})
        EXPECT_EQ(usage[key], whole["usage"][key]) << key;
    }
  }
  const Response bare = post("/v1/chat/completions", chatBody("x", {{"stream", true}}));
  EXPECT_FALSE(bare.events().back().contains("usage"));
  EXPECT_EQ(bare.events()[0]["choices"][0]["delta"]["role"], "assistant");
}

TEST_F(Serving, RefusesByName) {
  start();
  const std::vector<std::tuple<Json, std::string, std::string>> bad{
      {chatBody("x", {{"temperature", -1}}), "temperature", "temperature: expected a number from 0"},
      {chatBody("x", {{"top_p", "1"}}), "top_p", "top_p: expected a number"},
      {chatBody("x", {{"max_tokens", 1.5}}), "max_tokens", "max_tokens: expected a whole number"},
      {chatBody("x", {{"stream", 1}}), "stream", "stream: expected true or false, got 1"},
      {chatBody("x", {{"stream_options", {{"include_usage", true}}}}), "stream_options", "expected \"stream\": true with it"},
      {chatBody("x", {{"stream", true}, {"stream_options", {{"every", 1}}}}), "stream_options.every", "unknown or not supported"},
      {chatBody("x", {{"tools", {1}}}), "tools[0]", "expected an object"},
      {chatBody("x", {{"foo", 1}}), "foo", "foo: unknown or not supported"},
      {chatBody("x", {{"prompt", "x"}}), "prompt", "prompt: unknown or not supported"},
      {chatBody("x", {{"messages", Json::array()}}), "messages", "at least one message"},
      {chatBody(std::string(97, 'a')), "messages", "expected at most 96 tokens (the context length)"},
      {chatBody("x", {{"model", "gpt"}}), "model", "model: expected fake, got gpt"}};
  for (const auto &[body, param, part] : bad) {
    const Response r = post("/v1/chat/completions", body);
    EXPECT_EQ(r.status, param == "model" ? 404 : 400) << r.body;
    EXPECT_NE(errorOf(r).find(part), std::string::npos) << errorOf(r);
    EXPECT_EQ(r.json()["error"]["param"], param);
    EXPECT_EQ(r.json()["error"]["type"], "invalid_request_error");
  }
  EXPECT_EQ(post("/v1/completions", textBody("")).json()["error"]["message"].get<std::string>().find("prompt: expected at least one token"), 0u);
  EXPECT_EQ(post("/v1/completions", textBody({1, 300})).json()["error"]["param"], "prompt");
}

// Prompts around the context of 96 (B59).
TEST_F(Serving, LongPrompts) {
  start();
  auto ask = [&](size_t length, bool stream) { return post("/v1/completions", textBody(std::string(length, 'a'), {{"max_tokens", 100}, {"ignore_eos", true}, {"stream", stream}})); };
  EXPECT_EQ(ask(95, false).json()["usage"]["completion_tokens"], 1);
  EXPECT_EQ(ask(96, false).json()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(ask(96, false).json()["usage"]["completion_tokens"], 0);
  for (size_t length : {97, 10000}) {
    const Response r = ask(length, true);
    EXPECT_EQ(r.status, 400);
    EXPECT_EQ(r.headers.at("content-type"), "application/json") << "before any event";
    EXPECT_NE(errorOf(r).find("expected at most 96 tokens (the context length), got " + std::to_string(length)), std::string::npos) << errorOf(r);
  }
  EXPECT_EQ(ask(10, true).status, 200);
}

TEST_F(Serving, TheModelsOwnFailureIsTheRequestsAlone) {
  start();
  const Response whole = post("/v1/completions", textBody({97, kNanToken}));
  EXPECT_EQ(whole.status, 500);
  EXPECT_NE(errorOf(whole).find("not finite"), std::string::npos);
  EXPECT_EQ(whole.json()["error"]["type"], "server_error");
  EXPECT_EQ(post("/v1/completions", textBody({97, kNanToken}, {{"stream", true}})).status, 500) << "nothing was sent yet";
  EXPECT_EQ(post("/v1/completions", textBody("abc")).status, 200);
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(Serving, TokensAndModels) {
  llmc::ServiceOptions options;
  options.names = {"org/fake", "alias"};
  start({}, options);
  EXPECT_EQ(post("/tokenize", Json{{"prompt", "abc"}}).json()["tokens"], Json({97, 98, 99}));
  const Json chat = post("/tokenize", Json{{"messages", {{{"role", "user"}, {"content", "x"}}}}}).json();
  EXPECT_EQ(chat["tokens"][0], 256);
  EXPECT_EQ(chat["count"], chat["tokens"].size());
  EXPECT_LT(post("/tokenize", Json{{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"add_generation_prompt", false}}).json()["count"], chat["count"]);
  EXPECT_EQ(post("/detokenize", Json{{"tokens", {97, 98.0}}}).json()["prompt"], "ab") << "JSON's schemas take 98.0 for a whole number";
  for (const auto &[path, body, param] : std::vector<std::tuple<std::string, Json, std::string>>{
           {"/tokenize", Json{{"prompt", 1}}, "prompt"}, {"/tokenize", Json{{"prompt", "a"}, {"messages", 1}}, "prompt"}, {"/tokenize", Json{{"x", 1}}, "x"}, {"/tokenize", Json{{"prompt", "a"}, {"add_special_tokens", 1}}, "add_special_tokens"},
           {"/tokenize", Json{{"messages", 1}}, "messages"}, {"/detokenize", Json{{"tokens", {260}}}, "tokens"}, {"/detokenize", Json{{"tokens", {-1}}}, "tokens"},
           {"/detokenize", Json{{"tokens", "a"}}, "tokens"}, {"/detokenize", Json::array(), "body"}}) {
    const Response r = post(path, body);
    EXPECT_EQ(r.status, 400) << r.body;
    EXPECT_EQ(r.json()["error"]["param"], param);
  }
  const Json models = get("/v1/models").json();
  ASSERT_EQ(models["data"].size(), 2u);
  EXPECT_EQ(models["data"][0]["id"], "org/fake");
  EXPECT_EQ(get("/v1/models/org%2Ffake").json()["id"], "org/fake");
  EXPECT_EQ(get("/v1/models/org/fake").json()["id"], "org/fake");
  EXPECT_EQ(get("/v1/models/other").status, 404);
  EXPECT_EQ(post("/v1/completions", textBody("a", {{"model", "alias"}})).json()["model"], "alias");
  EXPECT_EQ(post("/v1/completions", textBody("a")).json()["model"], "org/fake");
}

TEST_F(Serving, Keys) {
  llmc::HttpOptions http;
  http.keys = llmc::ApiKeys({"secret", "other"}, "");
  start(http);
  const Response refused = post("/v1/completions", textBody("a"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
  EXPECT_EQ(refused.json()["error"]["code"], "invalid_api_key");
  for (const char *key : {"secre", "secrets", "SECRET", ""})
    EXPECT_EQ(get("/v1/models", std::string("Authorization: Bearer ") + key + "\r\n").status, 401) << key;
  EXPECT_EQ(get("/v1/models", "Authorization: Basic secret\r\n").status, 401);
  EXPECT_EQ(get("/v1/models", "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(get("/v1/models", "Authorization: bearer other\r\n").status, 200);
  EXPECT_EQ(get("/metrics").status, 401);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ready").status, 200);
}

TEST_F(Serving, OtherOrigins) {
  start();
  EXPECT_FALSE(get("/health", "Origin: http://a.example\r\n").headers.count("access-control-allow-origin"));
  stop();
  llmc::HttpOptions http;
  http.corsOrigins = {"http://a.example"};
  start(http);
  EXPECT_EQ(get("/health", "Origin: http://a.example\r\n").headers.at("access-control-allow-origin"), "http://a.example");
  EXPECT_FALSE(get("/health", "Origin: http://b.example\r\n").headers.count("access-control-allow-origin"));
  const Response preflight = talk("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nOrigin: http://a.example\r\nAccess-Control-Request-Method: POST\r\n"
                                  "Access-Control-Request-Headers: authorization, x-stainless-os\r\n\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.at("access-control-allow-headers"), "authorization, x-stainless-os");
  EXPECT_EQ(preflight.headers.at("access-control-allow-origin"), "http://a.example");
  EXPECT_EQ(preflight.headers.at("access-control-allow-methods"), "POST, OPTIONS");
  EXPECT_EQ(talk("OPTIONS /health HTTP/1.1\r\nHost: x\r\n\r\n").headers.at("allow"), "GET, OPTIONS");
  EXPECT_EQ(talk("OPTIONS /nowhere HTTP/1.1\r\nHost: x\r\n\r\n").status, 404);
}

TEST_F(Serving, Page) {
  llmc::HttpOptions http;
  http.keys = llmc::ApiKeys({"secret"}, "");
  start(http);
  for (const auto &[path, type] : std::vector<std::pair<std::string, std::string>>{{"/", "text/html"}, {"/page.css", "text/css"}, {"/page.js", "text/javascript"}}) {
    const Response r = get(path);
    EXPECT_EQ(r.status, 200) << "it needs no key: it asks for one";
    EXPECT_TRUE(r.headers.at("content-type").starts_with(type));
    EXPECT_TRUE(r.headers.at("content-security-policy").starts_with("default-src 'none'; script-src 'self';"));
    EXPECT_EQ(r.headers.at("x-content-type-options"), "nosniff");
    EXPECT_GT(r.body.size(), 1000u);
  }
}

TEST_F(Serving, LongAnswersArePacked) {
  start();
  const Response plain = get("/openapi.json"), packed = get("/openapi.json", "Accept-Encoding: br, gzip;q=0.5\r\n");
  EXPECT_EQ(plain.headers.count("content-encoding"), 0u);
  EXPECT_EQ(plain.headers.at("vary"), "Accept-Encoding") << "for caches on the way";
  EXPECT_EQ(packed.headers.at("content-encoding"), "gzip");
  EXPECT_LT(packed.body.size() * 4, plain.body.size());
  EXPECT_EQ(llmc::unpackGzip(packed.body, 1 << 20), plain.body);
  EXPECT_EQ(get("/health", "Accept-Encoding: gzip\r\n").headers.count("content-encoding"), 0u) << "too short to be worth it";
  const Json body = textBody("abc", {{"n", 64}, {"logprobs", 20}, {"max_tokens", 60}, {"ignore_eos", true}}); // some MB: on the other thread
  const Response answer = post("/v1/completions", body, "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(answer.headers.at("content-encoding"), "gzip");
  EXPECT_EQ(Json::parse(llmc::unpackGzip(answer.body, 64 << 20))["choices"], post("/v1/completions", body).json()["choices"]);
  const Response stream = post("/v1/completions", textBody("abc", {{"stream", true}}), "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(stream.headers.count("content-encoding"), 0u) << "an event must not wait for the next";
  EXPECT_TRUE(stream.done());
}

TEST_F(Serving, ConnectionsAreKept) {
  start();
  Client client(port_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(httpText("POST", "/v1/completions", textBody("abc", {{"stream", i == 1}}).dump())));
    EXPECT_EQ(client.receive().status, 200);
  }
  client.send(httpText("GET", "/health", "") + httpText("GET", "/nowhere", "") + httpText("GET", "/ready", "", "Connection: close\r\n"));
  EXPECT_EQ(client.receive().status, 200) << "three at once are answered in order";
  EXPECT_EQ(client.receive().status, 404);
  const Response last = client.receive();
  EXPECT_EQ(last.status, 200);
  EXPECT_EQ(last.headers.at("connection"), "close");
  EXPECT_TRUE(client.closedByServer());
  // HTTP/1.0 knows neither chunks nor kept connections.
  Client old(port_);
  const std::string body = textBody("abc", {{"stream", true}}).dump();
  old.send("POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const Response r = old.receive();
  EXPECT_FALSE(r.headers.count("transfer-encoding"));
  EXPECT_TRUE(r.done()) << r.body;
  Client polite(port_);
  polite.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(polite.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  polite.send(body);
  EXPECT_EQ(polite.receive().status, 200);
}

TEST_F(Serving, Metrics) {
  start();
  for (int i = 0; i < 3; ++i)
    post("/v1/completions", textBody(std::string(40, 'a'), {{"n", 2}}));
  post("/v1/completions", textBody(""));
  ASSERT_TRUE(idle());
  EXPECT_EQ(metric("llmc_requests_submitted_total"), 6);
  EXPECT_EQ(metric("llmc_requests_ended_total{outcome=\"finished\"}"), 6);
  EXPECT_EQ(metric("llmc_generated_tokens_total"), 48);
  EXPECT_EQ(metric("llmc_time_to_first_token_seconds_count"), 6);
  EXPECT_EQ(metric("llmc_inter_token_seconds_count"), 42);
  EXPECT_EQ(metric("llmc_inter_token_seconds_bucket{le=\"+Inf\"}"), 42);
  EXPECT_EQ(metric("llmc_prompt_tokens_total"), 240);
  EXPECT_GE(metric("llmc_prefix_hit_tokens_total"), 4 * 32);
  EXPECT_EQ(metric("llmc_step_seconds_count"), metric("llmc_steps_total"));
  EXPECT_EQ(metric("llmc_http_responses_total{route=\"/v1/completions\",status=\"200\"}"), 3);
  EXPECT_EQ(metric("llmc_http_responses_total{route=\"/v1/completions\",status=\"400\"}"), 1);
  EXPECT_EQ(metric("llmc_http_connections"), 1);
  EXPECT_GT(metric("llmc_kv_blocks"), 0);
  EXPECT_EQ(metric("llmc_preemptions_total"), 0);
  // Every line is a comment or a sample.
  std::istringstream lines(get("/metrics").body);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.starts_with("# HELP llmc_") || line.starts_with("# TYPE llmc_") || (line.starts_with("llmc_") && line.find(' ') != std::string::npos)) << line;
}

} // namespace
