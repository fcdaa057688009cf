// batch and simulate.
#include "RunTool.h"
#include "ScriptedPackage.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sys/file.h>
#include <thread>

using namespace fake;
using Json = nlohmann::json;

namespace {

Json chat(const std::string &id, const std::string &text, Json more = Json::object()) {
  Json body{{"model", "m"}, {"messages", {{{"role", "user"}, {"content", text}}}}, {"temperature", 0}, {"max_tokens", 8}};
  body.update(more);
  return {{"custom_id", id}, {"method", "POST"}, {"url", "/v1/chat/completions"}, {"body", body}};
}

Json completion(const std::string &id, const Json &prompt, Json more = Json::object()) {
  Json body{{"prompt", prompt}, {"temperature", 0}, {"max_tokens", 8}};
  body.update(more);
  return {{"custom_id", id}, {"method", "POST"}, {"url", "/v1/completions"}, {"body", body}};
}

class BatchTool : public Tool {
protected:
  void write(const std::string &name, const std::vector<Json> &lines) {
    std::ofstream file(*folder_ / name);
    for (const Json &line : lines)
      file << line.dump() << "\n";
  }
  std::string path(const std::string &name) { return *folder_ / name; }

  /// Results by custom_id; each comes once.
  std::map<std::string, Json> results(const std::string &name) {
    std::map<std::string, Json> all;
    std::ifstream file(path(name));
    for (std::string line; std::getline(file, line);) {
      Json json = Json::parse(line);
      const std::string id = json["custom_id"].is_string() ? json["custom_id"] : json["id"];
      EXPECT_TRUE(all.emplace(id, json["response"]).second) << id << " twice";
    }
    return all;
  }
  std::map<std::string, Json> answer(const std::vector<Json> &lines, std::vector<std::string> flags = {}) {
    write("in.jsonl", lines);
    std::filesystem::remove(path("out.jsonl"));
    flags.insert(flags.begin(), {"batch", path("in.jsonl"), "-o", path("out.jsonl")});
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("out.jsonl.partial")));
    return results("out.jsonl");
  }
};

std::string textOf(const Json &response, size_t choice = 0) {
  const Json &c = response["body"]["choices"][choice];
  return c.contains("message") ? c["message"]["content"] : c["text"];
}

TEST_F(BatchTool, AnswersAsRunDoes) {
  const Json want = Json::parse(run({"run", "--json", "-n", "8", "Hello"}).out), raw = Json::parse(run({"run", "--raw", "--json", "-n", "5", "abc"}).out);
  std::vector<Json> lines{chat("a", "Hello"), completion("b", "abc", {{"max_tokens", 5}}), completion("c", {97, 98, 99}, {{"max_tokens", 5}}),
                          completion("d", {"abc"}, {{"max_tokens", 5}})};
  for (const auto &flags : std::vector<std::vector<std::string>>{
           {}, {"--prefix-cache=off"}, {"--policy=shortest-first", "--chunk", "3"}, {"--batching=static"}, {"--max-running", "1", "--token-budget", "2"}}) {
    auto got = answer(lines, flags);
    ASSERT_EQ(got.size(), 4u);
    EXPECT_EQ(got["a"]["status_code"], 200);
    EXPECT_EQ(textOf(got["a"]), want["text"].get<std::string>());
    EXPECT_EQ(got["a"]["body"]["usage"]["prompt_tokens"], want["prompt_tokens"]);
    EXPECT_EQ(got["a"]["body"]["usage"]["completion_tokens"], want["completion_tokens"]);
    EXPECT_EQ(got["a"]["body"]["choices"][0]["finish_reason"], want["finish"]);
    EXPECT_EQ(got["a"]["body"]["object"], "chat.completion");
    EXPECT_EQ(got["a"]["body"]["model"], "m");
    for (const char *id : {"b", "c", "d"})
      EXPECT_EQ(textOf(got[id]), raw["text"].get<std::string>()) << id;
    EXPECT_EQ(got["b"]["body"]["object"], "text_completion");
  }
}

TEST_F(BatchTool, ParametersAndChoices) {
  auto sampled = [&](const std::string &seed) {
    return Json::parse(run({"run", "--json", "-n", "8", "-t", "0.9", "--seed", seed, "Hi"}).out)["text"].get<std::string>();
  };
  auto got = answer({chat("n", "Hi", {{"n", 3}, {"temperature", 0.9}, {"seed", 5}}),
                     chat("p", "Hi", {{"logprobs", true}, {"top_logprobs", 2}, {"max_completion_tokens", 4}, {"max_tokens", 4}}),
                     completion("q", "abc", {{"logprobs", 3}, {"stop", {"zzz"}}, {"logit_bias", {{"65", 100}}}, {"ignore_eos", true}}),
                     chat("zero", "Hi", {{"max_tokens", 0}}), chat("null", "Hi", {{"stop", nullptr}, {"n", nullptr}, {"user", "u"}})});
  ASSERT_EQ(got["n"]["body"]["choices"].size(), 3u) << got["n"];
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(textOf(got["n"], i), sampled(std::to_string(5 + i)));
  const Json &content = got["p"]["body"]["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), got["p"]["body"]["usage"]["completion_tokens"]);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(textOf(got["q"]), "AAAAAAAA");
  EXPECT_EQ(got["q"]["body"]["choices"][0]["logprobs"]["tokens"].size(), 8u);
  EXPECT_EQ(got["q"]["body"]["choices"][0]["logprobs"]["top_logprobs"][0].size(), 3u);
  EXPECT_EQ(textOf(got["zero"]), "");
  EXPECT_EQ(got["zero"]["body"]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(got["null"]["status_code"], 200);
}

// The fields that hold an answer; with enough tokens it is whole.
TEST_F(BatchTool, AnswersAreHeld) {
  const Json schema{{"type", "object"}, {"properties", {{"n", {{"type", "integer"}, {"minimum", 0}, {"maximum", 9}}}}}, {"required", {"n"}}};
  const Json format{{"type", "json_schema"}, {"json_schema", {{"name", "digit"}, {"schema", schema}, {"strict", true}}}};
  auto got = answer({chat("schema", "x", {{"response_format", format}, {"n", 2}, {"temperature", 1}, {"max_tokens", 72}}), chat("object", "x", {{"response_format", {{"type", "json_object"}}}, {"max_tokens", 5}}),
                     chat("text", "x", {{"response_format", {{"type", "text"}}}, {"max_tokens", 2}}), completion("json", "x", {{"guided_json", schema}, {"max_tokens", 90}}),
                     completion("regex", "x", {{"guided_regex", "[ab]{3}!"}}), completion("choice", "x", {{"guided_choice", {"yes", "no"}}}),
                     completion("grammar", "x", {{"guided_grammar", "root ::= [0-9] root2\nroot2 ::= \"ok\""}}),
                     completion("structured", "x", {{"structured_outputs", {{"regex", "q{4}"}, {"json", nullptr}}}})});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got["schema"]["body"]["choices"][i]["finish_reason"], "stop") << got["schema"];
    EXPECT_TRUE(Json::parse(textOf(got["schema"], i))["n"].is_number_integer());
  }
  EXPECT_EQ(textOf(got["object"])[0], '{');
  EXPECT_EQ(got["object"]["body"]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(got["text"]["status_code"], 200);
  EXPECT_TRUE(Json::parse(textOf(got["json"])).contains("n"));
  EXPECT_TRUE(std::regex_match(textOf(got["regex"]), std::regex("[ab]{3}!")));
  EXPECT_TRUE(textOf(got["choice"]) == "yes" || textOf(got["choice"]) == "no") << textOf(got["choice"]);
  EXPECT_EQ(textOf(got["grammar"]).substr(1), "ok");
  EXPECT_EQ(textOf(got["structured"]), "qqqq");
  std::ofstream(path("schema.json")) << schema.dump();
  std::ofstream(path("g.gbnf")) << "root ::= \"a\" | \"b\"";
  EXPECT_TRUE(Json::parse(run({"run", "--json-schema", path("schema.json"), "-n", "72", "x"}).out).contains("n"));
  EXPECT_EQ(run({"run", "--regex", "z{3}", "x"}).out, "zzz\n");
  EXPECT_EQ(run({"run", "--grammar", path("g.gbnf"), "x"}).out.size(), 2u);
  EXPECT_EQ(run({"run", "--json-object", "-n", "1", "x"}).out, "{\n");
  EXPECT_NE(run({"run", "--regex", "(", "x"}).err.find("--regex: regex, byte 1: expected )"), std::string::npos);
  EXPECT_NE(run({"run", "--grammar", path("schema.json"), "x"}).err.find("schema.json: grammar, line 1"), std::string::npos);
  EXPECT_NE(run({"run", "--regex", "a", "--json-object", "x"}).code, 0);
}

// Every mistake has its line, with the field; the others are answered (B41, B55, B56, B59, B61).
TEST_F(BatchTool, ErrorsAreInTheirLines) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  std::vector<std::pair<Json, std::string>> bad{
      {chat("", "x", {{"temperature", -1}}), "temperature: expected a number from 0 to"},
      {chat("", "x", {{"top_p", "1"}}), "top_p: expected a number from 0 to 1, got \"1\""},
      {chat("", "x", {{"max_tokens", 1.5}}), "max_tokens: expected a whole number from 0 on, got 1.5"},
      {chat("", "x", {{"max_tokens", -1}}), "max_tokens: expected a whole number from 0 on, got -1"},
      {chat("", "x", {{"max_tokens", 3}, {"max_completion_tokens", 4}}), "max_completion_tokens"},
      {chat("", "x", {{"n", 0}}), "n: expected a whole number from 1 to 128, got 0"},
      {chat("", "x", {{"stream", true}}), "stream: expected false"},
      {chat("", "x", {{"tools", {1}}}), "tools[0]: expected an object, got 1"},
      {chat("", "x", {{"response_format", {{"type", "xml"}}}}), "response_format: expected \"type\": \"text\", \"json_object\" or \"json_schema\", got {\"type\":\"xml\"}"},
      {chat("", "x", {{"response_format", "json"}}), "response_format: expected \"type\""},
      {chat("", "x", {{"response_format", {{"type", "json_schema"}}}}), "response_format.json_schema: expected an object, got null"},
      {chat("", "x", {{"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", {{"not", Json::object()}}}}}}}}),
       "response_format.json_schema.schema: schema.not: this keyword is not supported"},
      {chat("", "x", {{"guided_regex", "(a"}}), "guided_regex: regex, byte 2: expected )"},
      {chat("", "x", {{"guided_grammar", 1}}), "guided_grammar: expected a string, got 1"},
      {chat("", "x", {{"guided_choice", Json::array()}}), "guided_choice: expected a list of strings that are not empty"},
      {chat("", "x", {{"guided_json", "{"}}), "guided_json: schema: expected JSON"},
      {chat("", "x", {{"structured_outputs", {{"lark", "a"}}}}), "structured_outputs.lark: unknown"},
      {chat("", "x", {{"guided_regex", "a"}, {"guided_choice", {"a"}}}), "expected one field that holds the answer, got guided_"},
      {chat("", "x", {{"temperatur", 1}}), "temperatur: unknown or not supported"},
      {chat("", "x", {{"stop", ""}}), "stop: expected strings of 1 to 1024 bytes"},
      {chat("", "x", {{"logit_bias", {{"x", 1}}}}), "logit_bias: expected an object"},
      {chat("", "x", {{"top_logprobs", 2}}), "top_logprobs: expected \"logprobs\": true with it"},
      {chat("", "x", {{"logprobs", true}, {"top_logprobs", 21}}), "top_logprobs: expected a whole number from 0 to 20, got 21"},
      {chat("", "x", {{"messages", Json::array()}}), "messages: expected a list of at least one message"},
      {chat("", "x", {{"messages", {"x"}}}), "messages: expected objects with a \"role\""},
      {completion("", ""), "prompt: expected at least one token, got none"},
      {completion("", Json::array()), "prompt: expected a string or a list of token ids"},
      {completion("", {"", "a"}), "prompt: expected one string or one list of token ids"},
      {completion("", {Json::array()}), "prompt: expected a string or a list of token ids"},
      {completion("", {1, 260}), "prompt: expected token ids below 260, got 260"},
      {completion("", std::string(97, 'a')), "prompt: expected at most 96 tokens (the context length), got 97"},
      {completion("", "a", {{"echo", true}}), "echo: expected false"},
      {Json{{"custom_id", "x"}, {"method", "GET"}, {"url", "/v1/completions"}, {"body", {}}}, "method: expected POST, got GET"},
      {Json{{"custom_id", "x"}, {"method", "POST"}, {"url", "/v1/embeddings"}, {"body", {}}}, "url: expected /v1/chat/completions, /v1/completions or /v1/responses, got"},
      {Json{{"custom_id", 3}, {"method", "POST"}}, "custom_id: expected a string, got number"},
      {Json{1}, "expected an object with custom_id"}};
  std::vector<Json> lines;
  for (size_t i = 0; i < bad.size(); ++i) {
    if (bad[i].first.is_object() && bad[i].first["custom_id"].is_string())
      bad[i].first["custom_id"] = "bad" + std::to_string(i);
    lines.push_back(bad[i].first);
    lines.push_back(chat("good" + std::to_string(i), "Hello"));
  }
  lines.push_back(completion("nan", "a<|nan|>")); // text: control tokens come from ids only
  lines.push_back(completion("nan ids", {97, kNanToken}));
  auto got = answer(lines);
  EXPECT_EQ(got.size(), lines.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(got["good" + std::to_string(i)]["status_code"], 200);
    const std::string id = "bad" + std::to_string(i);
    if (!got.count(id))
      continue; // no custom_id: below
    EXPECT_EQ(got[id]["status_code"], 400);
    const std::string message = got[id]["body"]["error"]["message"];
    EXPECT_NE(message.find(bad[i].second), std::string::npos) << message;
    EXPECT_EQ(got[id]["body"]["error"]["type"], "invalid_request_error");
  }
  EXPECT_EQ(got["nan"]["status_code"], 200);
  EXPECT_EQ(got["nan ids"]["status_code"], 500);
  std::ofstream(path("in.jsonl")) << "{\"custom_id\": \"cut\n\n" << deep << "\n" << chat("ok", "x").dump();
  std::filesystem::remove(path("out.jsonl"));
  const Outcome outcome = run({"batch", path("in.jsonl"), "-o", path("out.jsonl")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("3/3 requests, 2 refused"), std::string::npos) << outcome.err;
  got = results("out.jsonl");
  EXPECT_EQ(got["ok"]["status_code"], 200);
  EXPECT_EQ(got.size(), 3u);
}

// Killed again and again, at any moment: in the end every request has been answered once, with the same text.
TEST_F(BatchTool, ToolsAndResponses) {
  ScriptedPackage({{'a', {"Yes.", "<tool_call>{\"name\": \"f\", \"arguments\": {}}", "</tool_call>"}}})
      .write(*folder_ / "tools", "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}"
                                 "<tool_call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</tool_call>{% endfor %}{% endfor %}", LLMC_STUB);
  const Json tool{{"type", "function"}, {"function", {{"name", "f"}}}};
  write("in.jsonl", {chat("1", "a", {{"tools", {tool}}}),
                     {{"custom_id", "2"}, {"method", "POST"}, {"url", "/v1/responses"}, {"body", {{"input", "a"}, {"temperature", 0}, {"tools", {{{"type", "function"}, {"name", "f"}}}}}}},
                     {{"custom_id", "3"}, {"method", "POST"}, {"url", "/v1/responses"}, {"body", {{"input", "a"}, {"stream", true}}}}});
  std::filesystem::remove(path("out.jsonl"));
  ASSERT_EQ(run({"batch", path("in.jsonl"), "-o", path("out.jsonl")}, "", "tools").code, 0);
  const std::map<std::string, Json> all = results("out.jsonl");
  const Json choice = all.at("1")["body"]["choices"][0], output = all.at("2")["body"]["output"];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "Yes.");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "f");
  ASSERT_EQ(output.size(), 2u);
  EXPECT_EQ(output[1]["name"], "f");
  EXPECT_EQ(all.at("3")["status_code"], 400);
  EXPECT_EQ(all.at("3")["body"]["error"]["param"], "stream");
}

TEST_F(BatchTool, GoesOnAfterKill9) {
  std::vector<Json> lines;
  for (int i = 0; i < 120; ++i)
    lines.push_back(chat("r" + std::to_string(i), "Hello " + std::to_string(i % 7), {{"max_tokens", 40}, {"seed", i}, {"temperature", 0.7}, {"logit_bias", {{std::to_string(kNanToken), -100}}}}));
  const auto want = answer(lines);
  std::filesystem::remove(path("out.jsonl"));
  size_t before = 0, kills = 0;
  for (; !std::filesystem::exists(path("out.jsonl")) && kills < 200; ++kills) {
    const pid_t child = fork();
    if (child == 0) {
      const int null = open("/dev/null", O_RDWR);
      dup2(null, 0), dup2(null, 1), dup2(null, 2);
      execl(path("model").c_str(), "model", "batch", path("in.jsonl").c_str(), "-o", path("out.jsonl").c_str(), nullptr);
      _exit(127);
    }
    auto lineCount = [&] {
      const std::string text = readFile(path("out.jsonl.partial"));
      return size_t(std::count(text.begin(), text.end(), '\n'));
    };
    int status = 0;
    const auto start = std::chrono::steady_clock::now();
    while (waitpid(child, &status, WNOHANG) == 0) { // until some more results are there
      if (lineCount() > before + 20 || std::chrono::steady_clock::now() - start > std::chrono::seconds(60)) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (std::filesystem::exists(path("out.jsonl")))
      break;
    before = lineCount();
    std::ofstream(path("out.jsonl.partial"), std::ios::app) << "{\"id\": \"batch_req_1"; // the start of a line
  }
  EXPECT_GT(kills, 2u);
  const auto got = results("out.jsonl");
  ASSERT_EQ(got.size(), want.size());
  for (const auto &[id, response] : want) {
    ASSERT_EQ(response["status_code"], 200) << response;
    EXPECT_EQ(textOf(got.at(id)), textOf(response)) << id;
  }
}

TEST_F(BatchTool, FilesThatAreNotItsOwn) {
  answer({chat("a", "x")});
  const std::vector<std::string> command{"batch", path("in.jsonl"), "-o", path("out.jsonl")};
  expectFailure(run(command), 1, "out.jsonl: expected a new file, got one that is there");
  EXPECT_FALSE(std::filesystem::exists(path("out.jsonl.partial")));
  std::filesystem::rename(path("out.jsonl"), path("out.jsonl.partial"));
  write("in.jsonl", {chat("a", "y")});
  expectFailure(run(command), 1, "out.jsonl.partial:1: expected the result of a line of the input, got something else");
  std::ofstream(path("out.jsonl.partial")) << "notes\n";
  expectFailure(run(command), 1, "out.jsonl.partial:1: expected the result");
  std::filesystem::remove(path("out.jsonl.partial"));
  const int fd = open(path("out.jsonl.partial").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  expectFailure(run(command), 1, "another process is writing it");
  close(fd);
  EXPECT_EQ(run(command).code, 0);
  expectFailure(run({"batch", path("none.jsonl"), "-o", path("o")}), 1, "none.jsonl");
  expectFailure(run({"batch", path("in.jsonl"), "-o", path("no/o")}), 1, "no/o.partial: cannot open");
  expectFailure(run({"batch", path("in.jsonl"), "-o", path("o"), "--policy", "lifo"}), 2, "--policy: expected fcfs, priority or shortest-first, got 'lifo'");
  std::ofstream(path("empty.jsonl")) << "\n";
  EXPECT_EQ(run({"batch", path("empty.jsonl"), "-o", path("empty.out")}).code, 0);
  EXPECT_EQ(readFile(path("empty.out")), "");
}

TEST_F(BatchTool, Replay) {
  std::ofstream trace(path("trace.jsonl"));
  for (int i = 0; i < 12; ++i)
    trace << Json{{"arrival", i * 0.001}, {"prompt", i % 2 ? Json(std::vector<int>(1 + i, i)) : Json(20)}, {"output", 3 + i}}.dump() << "\n";
  trace.close();
  const Outcome result = run({"replay", "--trace", path("trace.jsonl"), "--steps", path("steps.csv"), "--requests", path("requests.csv"), "--then", "--batching=static --kv=contiguous",
                              "--then", "--kv-tokens=64 --overlap=on --max-running=3"});
  ASSERT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<Json> runs;
  for (std::string line; std::getline(lines, line);)
    runs.push_back(Json::parse(line));
  ASSERT_EQ(runs.size(), 3u);
  for (const Json &run : runs) {
    EXPECT_EQ(run["finished"], 12);
    EXPECT_EQ(run["output_tokens"], 12 * 3 + 66);
    EXPECT_EQ(run["prompt_tokens"], 6 * 20 + 2 + 4 + 6 + 8 + 10 + 12);
    EXPECT_GT(run["output_tokens_per_second"], 0);
    EXPECT_LE(run["time_to_first_token"]["p50"], run["time_to_first_token"]["p99"]);
  }
  EXPECT_EQ(runs[1]["flags"], "--batching=static --kv=contiguous");
  EXPECT_EQ(runs[2]["pool_tokens"], 64);
  EXPECT_LE(runs[2]["most_running"], 3);
  const std::string steps = readFile(path("steps.csv"));
  EXPECT_EQ(steps.find("start_s,step_s,"), 0u);
  EXPECT_GT(std::count(steps.begin(), steps.end(), '\n'), 20);
  const std::string requests = readFile(path("requests.csv"));
  EXPECT_EQ(requests.find("arrival_s,prompt_tokens,cached_tokens,"), 0u);
  EXPECT_EQ(std::count(requests.begin(), requests.end(), '\n'), 1 + 3 * 12);
  expectFailure(run({"replay", "--trace", path("trace.jsonl"), "--then", "--kv=flat"}), 1, "--then '--kv=flat': --kv: expected paged or contiguous, got 'flat'");
  std::ofstream(path("trace.jsonl")) << "{\"arrival\":0,\"prompt\":[1,-2],\"output\":1}\n";
  expectFailure(run({"replay", "--trace", path("trace.jsonl")}), 1, "trace.jsonl:1: prompt: expected token ids, got -2 at 1");
}

TEST_F(BatchTool, Simulate) {
  std::ofstream trace(path("trace.jsonl"));
  for (int i = 0; i < 50; ++i)
    trace << Json{{"arrival", i * 0.1}, {"prompt", 40}, {"output", 10}, {"prefix", "system"}, {"prefix_tokens", 32}}.dump() << "\n";
  trace.close();
  const Outcome text = run({"simulate", "--trace", path("trace.jsonl"), "--step-times", "1=0.01,32=0.02"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("50 requests: 50 finished, 0 cut by the pool, 0 refused"), std::string::npos) << text.out;
  const Json on = Json::parse(run({"simulate", "--trace", path("trace.jsonl"), "--step-times", "1=0.01,32=0.02", "--json"}).out);
  const Json off = Json::parse(
      run({"simulate", "--trace", path("trace.jsonl"), "--step-times", "1=0.01,32=0.02", "--json", "--prefix-cache=off", "--policy=shortest-first"}).out);
  EXPECT_EQ(on["output_tokens"], 500);
  EXPECT_EQ(on["cached_tokens"], 49 * 32);
  EXPECT_EQ(off["cached_tokens"], 0);
  EXPECT_GT(off["time_to_first_token"]["p50"], on["time_to_first_token"]["p50"]);
  const Outcome profile = run({"bench", "--prompt", "32", "--profile", path("p.json"), "--repeat", "1"});
  ASSERT_EQ(profile.code, 0) << profile.err;
  EXPECT_EQ(run({"simulate", "--trace", path("trace.jsonl"), "--profile", path("p.json")}).code, 0);
  expectFailure(run({"simulate", "--trace", path("trace.jsonl")}), 2, "--profile or --step-times");
  expectFailure(run({"simulate", "--trace", path("trace.jsonl"), "--step-times", "x"}), 1, "expected TOKENS=SECONDS");
  for (const auto &[line, part] : {std::pair("[]", "trace.jsonl:2: expected a JSON object"), {"{\"arrival\":0,\"prompt\":0,\"output\":1}", "prompt: expected a whole number from 1"},
                                   {"{\"arrival\":0,\"prompt\":1,\"output\":1,\"foo\":1}", "foo: expected one of"}, {"{\"prompt\":1,\"output\":1}", "arrival: expected a number from 0"}}) {
    std::ofstream(path("trace.jsonl")) << "\n" << line << "\n";
    expectFailure(run({"simulate", "--trace", path("trace.jsonl"), "--step-times", "1=1"}), 1, part);
  }
}

} // namespace
