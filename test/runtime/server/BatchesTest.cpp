// Files and batches: OpenAI's interface, what it refuses, and batches that outlive the process.
#include "Serving.h"
#include "runtime/server/Form.h"
#include "test/ErrorOf.h"

#include <fstream>
#include <set>

using namespace fake;

namespace {

std::string line(const std::string &id, Json body, const std::string &url = "/v1/completions") {
  return Json{{"custom_id", id}, {"method", "POST"}, {"url", url}, {"body", body}}.dump() + "\n";
}

std::string form(const std::string &file, const std::string &purpose = "batch", const std::string &more = "") {
  return "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose + "\r\n" + more +
         "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"in put.jsonl\"\r\nContent-Type: application/octet-stream\r\n\r\n" + file + "\r\n--b--\r\n";
}

class BatchServing : public Serving {
protected:
  void startBatches(llmc::ServiceOptions options = {}) {
    options.batchFolder = store_ / "batches";
    llmc::HttpOptions http;
    http.maxFile = 1 << 20;
    http.maxBody = 1 << 16;
    http.drainSeconds = 0.2;
    start(http, options);
  }
  Response upload(const std::string &body, const std::string &type = "multipart/form-data; boundary=b") {
    return talk(httpText("POST", "/v1/files", body, "Content-Type: " + type + "\r\n"));
  }
  Json batchOf(const std::string &lines, const std::string &endpoint = "/v1/completions") {
    const Response file = upload(form(lines));
    EXPECT_EQ(file.status, 200) << file.body;
    const Response batch = post("/v1/batches", {{"input_file_id", file.json()["id"]}, {"endpoint", endpoint}, {"completion_window", "24h"}, {"metadata", {{"a", "b"}}}});
    EXPECT_EQ(batch.status, 200) << batch.body;
    return batch.json();
  }
  Json state(const Json &batch) { return get("/v1/batches/" + batch["id"].get<std::string>()).json(); }
  /// Its state once `good` says so; within some seconds.
  template <typename Good> Json waitFor(const Json &batch, Good good) {
    Json now;
    for (int i = 0; i < 2000 && !good(now = state(batch)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return now;
  }
  Json over(const Json &batch) {
    return waitFor(batch, [](const Json &b) { return b["status"] == "completed" || b["status"] == "failed" || b["status"] == "cancelled"; });
  }
  /// The lines of a file, by custom_id.
  std::map<std::string, Json> results(const Json &id) {
    std::map<std::string, Json> all;
    std::istringstream in(get("/v1/files/" + id.get<std::string>() + "/content").body);
    for (std::string text; std::getline(in, text);) {
      const Json result = Json::parse(text);
      EXPECT_TRUE(all.emplace(result["custom_id"].is_string() ? result["custom_id"].get<std::string>() : "", result).second) << "twice: " << text;
    }
    return all;
  }
  TemporaryFolder store_;
};

TEST_F(BatchServing, AnswersAFile) {
  startBatches();
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += line("t" + std::to_string(i), textBody("abc " + std::to_string(i), {{"temperature", 0.8}, {"seed", i}}));
  lines += "\nnot JSON\n" + line("bad", textBody("x", {{"foo", 1}})) + line("chat", chatBody("Hello"), "/v1/chat/completions") +
           line("long", textBody(std::string(97, 'a'))) + line("nan", textBody({97, kNanToken}));
  const Json made = batchOf(lines);
  EXPECT_EQ(made["object"], "batch");
  EXPECT_EQ(made["status"], "validating");
  const Json done = over(made);
  EXPECT_EQ(done["status"], "completed") << done;
  EXPECT_EQ(done["metadata"]["a"], "b");
  EXPECT_EQ(done["request_counts"], (Json{{"total", 25}, {"completed", 20}, {"failed", 5}}));
  const auto good = results(done["output_file_id"]), bad = results(done["error_file_id"]);
  ASSERT_EQ(good.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    const Json alone = post("/v1/completions", textBody("abc " + std::to_string(i), {{"temperature", 0.8}, {"seed", i}})).json();
    const Json &response = good.at("t" + std::to_string(i))["response"];
    EXPECT_EQ(response["status_code"], 200);
    EXPECT_EQ(response["body"]["choices"], alone["choices"]) << "as alone";
  }
  ASSERT_EQ(bad.size(), 5u);
  for (const auto &[id, status, part] : std::vector<std::tuple<std::string, int, std::string>>{
           {"", 400, "expected JSON"}, {"bad", 400, "foo: unknown"}, {"chat", 400, "url: expected /v1/completions, got /v1/chat/completions"},
           {"long", 400, "expected at most 96 tokens"}, {"nan", 500, "not finite"}}) {
    const Json &response = bad.at(id)["response"];
    EXPECT_EQ(response["status_code"], status);
    EXPECT_NE(response["body"]["error"]["message"].get<std::string>().find(part), std::string::npos) << response;
  }
  EXPECT_TRUE(idle());
  EXPECT_GT(metric("llmc_generated_tokens_total"), 20 * 8);
  // A second process may not serve the folder meanwhile.
  llmc::ServiceOptions second;
  second.load.package = *folder_ / "model";
  second.load.threads = 1;
  second.batchFolder = store_ / "batches";
  EXPECT_ERROR(llmc::Service(second, [](auto) {}), "another process serves it");
}

TEST_F(BatchServing, Lists) {
  startBatches();
  std::vector<Json> batches;
  for (int i = 0; i < 3; ++i)
    batches.push_back(batchOf(line("a", textBody("x"))));
  for (const Json &batch : batches)
    EXPECT_EQ(over(batch)["status"], "completed");
  for (const char *what : {"batches", "files"}) {
    const std::string path = std::string("/v1/") + what;
    std::set<std::string> seen;
    std::string after;
    for (bool more = true; more;) {
      const Json page = get(path + "?limit=2" + (after.empty() ? "" : "&after=" + after)).json();
      EXPECT_LE(page["data"].size(), 2u);
      for (const Json &item : page["data"])
        EXPECT_TRUE(seen.insert(item["id"]).second);
      more = page["has_more"];
      after = page["last_id"];
    }
    EXPECT_EQ(seen.size(), what == std::string("batches") ? 3u : 6u);
    for (const char *bad : {"limit=0", "limit=x", "limit=1000000", "after=none", "after=", "foo=1", "after=%"})
      EXPECT_EQ(get(path + "?" + bad).status, 400) << bad;
  }
  EXPECT_EQ(get("/v1/files?purpose=batch_output").json()["data"].size(), 3u);
  EXPECT_EQ(get("/v1/files?order=x").status, 400);
  const std::string id = get("/v1/files?order=asc").json()["data"][0]["id"];
  EXPECT_EQ(get("/v1/files/" + id).json()["filename"], "in put.jsonl");
  EXPECT_EQ(talk(httpText("DELETE", "/v1/files/" + id, "")).json()["deleted"], true);
  for (const std::string &gone : {"/v1/files/" + id, "/v1/files/" + id + "/content", std::string("/v1/files/..%2fbatches"), std::string("/v1/batches/none")})
    EXPECT_EQ(get(gone).status, 404) << gone;
  EXPECT_EQ(talk(httpText("DELETE", "/v1/files/" + id, "")).status, 404);
  EXPECT_EQ(talk(httpText("POST", "/v1/batches/none/cancel", "")).status, 404);
}

TEST_F(BatchServing, RefusesByName) {
  startBatches();
  const std::string good = line("a", textBody("x"));
  for (const auto &[body, type, part] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {form(good, "fine-tune"), "multipart/form-data; boundary=b", "purpose: expected batch, got fine-tune"},
           {form(""), "multipart/form-data; boundary=b", "file: expected lines"},
           {form(good, "batch", "--b\r\nContent-Disposition: form-data; name=\"expires_after[anchor]\"\r\n\r\nx\r\n"), "multipart/form-data; boundary=b", "expires_after[anchor]: unknown"},
           {form(good), "multipart/form-data", "boundary is not 1 to 70"},
           {form(good), "multipart/form-data; boundary=c", "does not begin with its boundary"},
           {form(good).substr(0, 200), "multipart/form-data; boundary=b", "got the beginning of it"},
           {"", "multipart/form-data; boundary=b", "does not begin"},
           {"--b", "multipart/form-data; boundary=b", "behind a boundary"},
           {"--b\r\n\r\n--b--", "multipart/form-data; boundary=b", "header does not end"},
           {"--b\r\nX: y\r\n\r\nz\r\n--b--", "multipart/form-data; boundary=b", "a part without a name"},
           {"--b\r\n" + std::string(5000, 'x') + "\r\n\r\nz\r\n--b--", "multipart/form-data; boundary=b", "header does not end within 4096"}}) {
    const Response r = upload(body, type);
    EXPECT_EQ(r.status, 400) << r.body;
    EXPECT_NE(errorOf(r).find(part), std::string::npos) << errorOf(r);
  }
  EXPECT_EQ(upload("{}", "application/json").status, 415);
  EXPECT_EQ(upload(form(std::string(2 << 20, 'a'))).status, 413) << "longer than --max-file";
  EXPECT_EQ(upload(form(std::string(500000, 'a'))).status, 200) << "longer than --max-body, which is for other routes";
  EXPECT_EQ(post("/v1/completions", textBody(std::string(100000, 'a'))).status, 413);
  const Json file = upload(form(good)).json()["id"];
  const Json body{{"input_file_id", file}, {"endpoint", "/v1/completions"}, {"completion_window", "24h"}};
  for (const auto &[key, value] : std::vector<std::pair<std::string, Json>>{{"input_file_id", "none"}, {"input_file_id", 1}, {"endpoint", "/v1/embeddings"}, {"completion_window", "1h"},
                                                                           {"metadata", {{"a", 1}}}, {"metadata", {{"a", std::string(600, 'x')}}}, {"foo", 1}, {"endpoint", nullptr}}) {
    Json wrong = body;
    wrong[key] = value;
    const Response r = post("/v1/batches", wrong);
    EXPECT_EQ(r.status, 400) << r.body;
    EXPECT_EQ(r.json()["error"]["param"], key);
  }
  EXPECT_EQ(over(batchOf("\n\n"))["errors"]["data"][0]["message"].get<std::string>().find("expected 1 to 50000 requests"), 0u);
  stop();
  start();
  for (const char *path : {"/v1/files", "/v1/batches", "/v1/batches/a", "/v1/files/a/content"}) {
    EXPECT_EQ(get(path).status, 404);
    EXPECT_NE(errorOf(get(path)).find("--batch-dir"), std::string::npos);
  }
  EXPECT_EQ(upload(form(good)).status, 404);
}

std::string manyLines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += line("t" + std::to_string(i), textBody("abc " + std::to_string(i), {{"max_tokens", 40}, {"ignore_eos", true}}));
  return lines;
}

// What runs is given up, what is done stays; others are answered meanwhile.
TEST_F(BatchServing, Cancels) {
  startBatches(slow());
  const Json batch = batchOf(manyLines(400));
  waitFor(batch, [](const Json &b) { return b["request_counts"]["completed"] > 0; });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(post("/v1/completions", textBody("abc")).status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << "it does not wait for the batch";
  const Json told = talk(httpText("POST", "/v1/batches/" + batch["id"].get<std::string>() + "/cancel", "")).json();
  EXPECT_EQ(told["status"], "cancelling");
  const Json done = over(batch);
  EXPECT_EQ(done["status"], "cancelled");
  EXPECT_FALSE(done["cancelled_at"].is_null());
  const auto good = results(done["output_file_id"]);
  EXPECT_EQ(good.size(), done["request_counts"]["completed"]);
  EXPECT_LT(good.size(), 400u);
  EXPECT_TRUE(done["error_file_id"].is_null());
  EXPECT_TRUE(idle());
}

// The process ends in the middle, in any way: the next one goes on, nothing is lost, nothing comes twice.
TEST_F(BatchServing, OutlivesTheProcess) {
  startBatches(slow());
  const Json batch = batchOf(manyLines(60)), waiting = batchOf(line("w", textBody("x")));
  waitFor(batch, [](const Json &b) { return b["request_counts"]["completed"] > 4; });
  stop();
  const std::string partial = store_ / ("batches/batches/" + batch["id"].get<std::string>() + ".results.partial");
  std::ofstream(partial, std::ios::app) << "{\"id\": \"batch_req_1_"; // killed while it wrote
  std::ofstream(store_ / "batches/files/file-orphan") << "killed before its description was there";
  startBatches();
  const Json done = over(batch);
  EXPECT_EQ(done["status"], "completed") << done;
  EXPECT_EQ(results(done["output_file_id"]).size(), 60u);
  EXPECT_EQ(over(waiting)["status"], "completed");
  EXPECT_FALSE(std::filesystem::exists(store_ / "batches/files/file-orphan"));
  stop();
  std::ofstream(store_ / "batches/batches/batch_x.json") << "{";
  llmc::ServiceOptions options;
  options.load.package = *folder_ / "model";
  options.load.threads = 1;
  options.batchFolder = store_ / "batches";
  EXPECT_ERROR(llmc::Service(options, [](auto) {}), "batch_x.json: expected a batch (remove it to go on without)");
}

TEST(Form, ReadsParts) {
  const std::string body = "--x y\r\nContent-Disposition: form-data; name=a\r\n\r\none\r\n--x\r\n--x y\r\ncontent-disposition: form-data; FileName=\"q\\\"; \"; name=\"b\"\r\n\r\n\r\n--x y--";
  const auto parts = llmc::parseForm("multipart/form-data; charset=utf-8; Boundary=\"x y\"", body);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "a");
  EXPECT_EQ(parts[0].content, "one\r\n--x") << "the beginning of a boundary is none";
  EXPECT_EQ(parts[1].name, "b");
  EXPECT_EQ(parts[1].fileName, "q\"; ");
  EXPECT_EQ(parts[1].content, "");
}

} // namespace
