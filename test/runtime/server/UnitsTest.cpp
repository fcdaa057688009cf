// Parts that need no socket.
#include "Serving.h"
#include "runtime/server/Gzip.h"
#include "runtime/server/PrometheusText.h"
#include "runtime/server/OpenApi.h"
#include "runtime/server/Page.h"
#include "runtime/server/Routes.h"
#include "runtime/tool/ResponsesRequest.h"
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

TEST(Http, Queries) {
  EXPECT_EQ(queryOf("/a"), (std::map<std::string, std::string>{}));
  EXPECT_EQ(queryOf("/a?b=c%20d&e=+&f&&g==#h=i"), (std::map<std::string, std::string>{{"b", "c d"}, {"e", " "}, {"f", ""}, {"g", "="}}));
  EXPECT_THROW(queryOf("/a?b=%"), HttpError);
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

TEST(Gzip, WhoTakesIt) {
  for (const char *yes : {"gzip", "GZIP", "x-gzip", "deflate, gzip", "gzip;q=0.5", "br;q=1.0, gzip; q=0.1 , *;q=0", "*"})
    EXPECT_TRUE(acceptsGzip(yes)) << yes;
  for (const char *no : {"", "identity", "br, deflate", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *", "gzipped", ",,;"})
    EXPECT_FALSE(acceptsGzip(no)) << no;
}

TEST(Routes, MethodsAndPaths) {
  EXPECT_STREQ(findRoute("GET", "/v1/models").path, "/v1/models");
  EXPECT_STREQ(findRoute("GET", "/v1/models/a/b").path, "/v1/models/{name}");
  EXPECT_STREQ(findRoute("GET", "/v1/files/a/content").path, "/v1/files/{id}/content");
  EXPECT_STREQ(findRoute("DELETE", "/v1/files/a").path, "/v1/files/{id}");
  std::string id;
  EXPECT_TRUE(findRoute("POST", "/v1/batches/b/cancel").matches("/v1/batches/b/cancel", &id));
  EXPECT_EQ(id, "b");
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
  for (const char *none : {"/v1/files/", "/v1/files/a/b", "/v1/files//content", "/v1/batches/content/a"})
    EXPECT_EQ(status("GET", none), 404u) << none;
  EXPECT_STREQ(findRoute("GET", "/").path, "/");
  EXPECT_EQ(status("GET", "/page"), 404u) << "/ is no beginning";
}

// The file says what the code does: the same routes, and the same fields of a request.
TEST(OpenApi, IsWhatIsServed) {
  const fake::Json file = fake::Json::parse(openApiText());
  std::set<std::string> wanted, got;
  for (const auto &[path, methods] : file["paths"].items())
    for (const auto &[method, operation] : methods.items()) {
      std::string upper = method;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return char(std::toupper(c)); });
      wanted.insert(upper + " " + path + (operation.contains("security") ? " open" : ""));
    }
  for (const Route &route : routes())
    got.insert(std::string(route.method) + " " + route.path + (route.open ? " open" : ""));
  EXPECT_EQ(got, wanted);
  for (const auto &[schema, taken] : {std::pair("ChatRequest", completionFields(true, true)), {"TextRequest", completionFields(false, true)}, {"ResponsesRequest", responsesFields()}}) {
    std::set<std::string> fields;
    for (const auto &[name, field] : file["components"]["schemas"][schema]["properties"].items())
      fields.insert(name);
    EXPECT_EQ(std::set<std::string>(taken.begin(), taken.end()), fields);
  }
}

// Tags are closed in the order in which they were opened.
std::string firstWrongTag(std::string_view html) {
  std::vector<std::string_view> open;
  for (size_t at = 0; (at = html.find('<', at)) != std::string_view::npos;) {
    const std::string_view tag = html.substr(at + 1, html.find('>', at) - at - 1);
    at += tag.size();
    const std::string_view name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag.starts_with('!') || tag.ends_with('/'))
      continue;
    if (!tag.starts_with('/'))
      open.push_back(name);
    else if (open.empty() || open.back() != tag.substr(1))
      return std::string(tag);
    else
      open.pop_back();
  }
  return open.empty() ? "" : std::string(open.back());
}

// The page loads its own files and asks routes that there are; text never becomes HTML.
TEST(Page, NamesOnlyWhatIsServed) {
  EXPECT_EQ(firstWrongTag("<a><b c='d'></b><br /></a>"), "");
  EXPECT_EQ(firstWrongTag("<a><b></a></b>"), "/a");
  ASSERT_EQ(pageFiles().size(), 3u);
  std::set<std::string> asked;
  for (const PageFile &file : pageFiles()) {
    EXPECT_NO_THROW(findRoute("GET", file.path)) << file.path;
    if (file.path == "/")
      EXPECT_EQ(firstWrongTag(file.text), "");
    EXPECT_EQ(file.text.find("://"), std::string_view::npos) << "nothing from elsewhere: " << file.path;
    for (const char *quote : {"'/", "\"/"})
      for (size_t at = 0; (at = file.text.find(quote, at)) != std::string_view::npos; ++at) {
        const std::string_view path = file.text.substr(at + 1, file.text.find(quote[0], at + 1) - at - 1);
        EXPECT_NE(methodsOf(path), "") << path;
        asked.emplace(path);
      }
  }
  EXPECT_EQ(asked, (std::set<std::string>{"/metrics", "/page.css", "/page.js", "/v1/chat/completions", "/v1/models"}));
  const std::string_view script = pageFiles()[2].text;
  for (const char *html : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser", ".style"})
    EXPECT_EQ(script.find(html), std::string_view::npos) << html;
  // Ids that the script asks for are in the page.
  for (size_t at = 0; (at = script.find("$('", at)) != std::string_view::npos; ++at) {
    const std::string id(script.substr(at + 3, script.find('\'', at + 3) - at - 3));
    if (script[at + 4 + id.size()] == ')')
      EXPECT_NE(pageFiles()[0].text.find(" id=\"" + id + "\""), std::string_view::npos) << id;
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
