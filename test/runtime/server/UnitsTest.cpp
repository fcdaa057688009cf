// Parts that need no socket.
#include "Serving.h"
#include "runtime/server/PrometheusText.h"
#include "runtime/server/OpenApi.h"
#include "runtime/server/Routes.h"
#include "test/ErrorOf.h"

#include <set>

using namespace llmc;

namespace {

TEST(Http, Paths) {
  EXPECT_EQ(pathOf("/a%20b%2fc?d=e"), "/a b/c");
  EXPECT_EQ(pathOf("/a#b"), "/a");
  for (const char *bad : {"", "a", "*", "http://x/", "/%", "/%1", "/%g0"})
    EXPECT_THROW(pathOf(bad), HttpError) << bad;
}

TEST(Http, Words) {
  EXPECT_EQ(requestId("client-1"), "client-1");
  for (const std::string &bad : {std::string(), std::string(129, 'a'), std::string("a b"), std::string("a\n"), std::string("\xc3\xa4")})
    EXPECT_NE(requestId(bad), bad);
  EXPECT_NE(newId(), newId());
  EXPECT_EQ(mediaType("Text/Plain ; charset=x"), "text/plain");
  EXPECT_TRUE(equalNoCase("Bearer", "bEARER"));
  EXPECT_FALSE(equalNoCase("Bearer", "bear"));
}

TEST(Routes, MethodsAndPaths) {
  EXPECT_STREQ(findRoute("GET", "/v1/models").path, "/v1/models");
  EXPECT_STREQ(findRoute("GET", "/v1/models/a/b").path, "/v1/models/");
  auto status = [](const char *method, const char *path) {
    try {
      findRoute(method, path);
      return 200u;
    } catch (const HttpError &error) {
      return error.status;
    }
  };
  EXPECT_EQ(status("POST", "/v1/models"), 405u);
  EXPECT_EQ(status("GET", "/v1/model"), 404u);
  EXPECT_EQ(status("GET", "/health/"), 404u);
}

// The file says what the code does: the same routes, and the same fields of a request.
TEST(OpenApi, IsWhatIsServed) {
  const fake::Json file = fake::Json::parse(openApiText());
  std::set<std::string> wanted, got;
  for (const auto &[path, methods] : file["paths"].items())
    for (const auto &[method, operation] : methods.items()) {
      std::string name = path.substr(0, path.find('{')), upper = method;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return char(std::toupper(c)); });
      wanted.insert(upper + " " + name + (operation.contains("security") ? " open" : ""));
    }
  for (const Route &route : routes())
    got.insert(std::string(route.method) + " " + route.path + (route.open ? " open" : ""));
  EXPECT_EQ(got, wanted);
  for (bool chat : {true, false}) {
    std::set<std::string> fields;
    for (const auto &[name, schema] : file["components"]["schemas"][chat ? "ChatRequest" : "TextRequest"]["properties"].items())
      fields.insert(name);
    const std::vector<std::string> taken = completionFields(chat, true);
    EXPECT_EQ(std::set<std::string>(taken.begin(), taken.end()), fields);
  }
}

TEST(Histogram, CountsBelowBounds) {
  Histogram h;
  for (double value : {0.0001, 0.0005, 0.00051, 119.0, 500.0})
    h.add(value);
  EXPECT_EQ(h.counts[0], 2u) << "a bound belongs to what is below it";
  EXPECT_EQ(h.counts[1], 1u);
  EXPECT_EQ(h.counts.back(), 1u);
  Latencies::Values latencies;
  latencies.firstToken = h;
  HttpCounters http;
  http.answered("/health", 200);
  const std::string text = prometheusText({}, latencies, http);
  for (const char *line : {"# TYPE llmc_time_to_first_token_seconds histogram\n", "llmc_time_to_first_token_seconds_bucket{le=\"0.0005\"} 2\n",
                           "llmc_time_to_first_token_seconds_bucket{le=\"120\"} 4\n", "llmc_time_to_first_token_seconds_bucket{le=\"+Inf\"} 5\n",
                           "llmc_time_to_first_token_seconds_count 5\n", "llmc_http_responses_total{route=\"/health\",status=\"200\"} 1\n", "llmc_kv_use_ratio 0\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

TEST(HttpServer, PlacesThatAreTaken) {
  HttpOptions options;
  options.port = 0;
  HttpServer server(options);
  EXPECT_EQ(server.url(), "http://127.0.0.1:" + std::to_string(server.port()));
  options.port = server.port();
  EXPECT_ERROR(HttpServer second(options), "--host, --port: cannot listen on 127.0.0.1:" + std::to_string(server.port()));
  options.host = "no such host";
  EXPECT_ERROR(HttpServer second(options), "cannot listen on no such host");
}

} // namespace
