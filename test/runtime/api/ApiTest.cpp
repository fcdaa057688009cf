// llmc.h, llmc.hpp and the programs in examples/.
#include "RunTool.h"
#include "llmc/llmc.hpp"

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

using namespace fake;
using Json = nlohmann::json;

namespace {

class Api : public Tool {
protected:
  std::string package() { return *folder_ / "model"; }
  Json run1(std::vector<std::string> flags) { return Json::parse(run(flags).out); }
};

std::string completion(int kind, int tokens) {
  return Json{{"prompt", "common beginning of all " + std::to_string(kind)}, {"temperature", 0.7}, {"seed", kind}, {"max_tokens", tokens}}.dump();
}

TEST_F(Api, AnswersAsRunDoes) {
  const Json want = run1({"run", "--json", "-n", "12", "Hello"});
  llmc::api::Model model(package());
  llmc::api::Request request = model.chat(R"({"messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 12})");
  EXPECT_EQ(request.rest(), want["text"].get<std::string>());
  const llmc::api::End end = request.end();
  EXPECT_EQ(end.finish, want["finish"].get<std::string>());
  EXPECT_EQ(end.promptTokens, want["prompt_tokens"]);
  EXPECT_EQ(end.completionTokens, want["completion_tokens"]);
  EXPECT_EQ(request.end().finish, end.finish) << "it stays at its end";
  uint64_t bytes = 0;
  for (const llmc_ledger_item &item : model.ledger()) {
    EXPECT_TRUE(std::strcmp(item.kind, "process") == 0 || std::strcmp(item.kind, "file") == 0) << item.name;
    bytes += item.bytes;
  }
  EXPECT_GT(bytes, kWeightsBytes);
  llmc_metrics m = model.metrics();
  while (m.finished < 1)
    m = model.metrics();
  EXPECT_EQ(m.submitted, 1u);
  EXPECT_EQ(m.completion_tokens, want["completion_tokens"]);
  EXPECT_EQ(m.kv_blocks_free, m.kv_blocks);
}

TEST_F(Api, SaysWhatIsWrong) {
  char error[LLMC_ERROR_BYTES];
  EXPECT_EQ(llmc_load((*folder_ / "none").c_str(), nullptr, error), nullptr);
  EXPECT_NE(std::string(error).find("none"), std::string::npos) << error;
  EXPECT_EQ(llmc_load((*folder_ / "none").c_str(), nullptr, nullptr), nullptr);
  llmc_options options;
  llmc_options_init(&options);
  options.policy = "lifo";
  EXPECT_EQ(llmc_load(package().c_str(), &options, error), nullptr);
  EXPECT_STREQ(error, "policy: expected fcfs, priority or shortest-first, got 'lifo'");
  llmc_model *model = llmc_load(package().c_str(), nullptr, error);
  ASSERT_NE(model, nullptr) << error;
  EXPECT_STREQ(error, "");
  for (const auto &[url, body, part] : std::vector<std::array<const char *, 3>>{
           {"/v1/x", "{}", "url: expected /v1/chat/completions or /v1/completions, got /v1/x"},
           {"/v1/completions", "{", "expected JSON: parse error"},
           {"/v1/completions", "{}", "prompt: expected a string"},
           {"/v1/completions", R"({"prompt": ""})", "prompt: expected at least one token"},
           {"/v1/completions", R"({"prompt": "a", "n": 2})", "n: expected 1, got 2"},
           {"/v1/completions", R"({"prompt": [1, 300]})", "prompt: expected token ids below 260, got 300"},
           {"/v1/completions", R"({"prompt": "a", "top_p": 2})", "top_p: expected a number from 0 to 1, got 2"}}) {
    EXPECT_EQ(llmc_submit(model, url, body, error), nullptr);
    EXPECT_NE(std::string(error).find(part), std::string::npos) << error;
  }
  llmc_request *request = llmc_submit(model, "/v1/completions", R"({"prompt": [97, 259], "temperature": 0})", error);
  ASSERT_NE(request, nullptr);
  llmc_event event;
  EXPECT_EQ(llmc_next(request, &event, -1), LLMC_EVENT_END);
  EXPECT_STREQ(event.finish, "error");
  EXPECT_NE(std::string(event.error).find("not finite"), std::string::npos);
  llmc_request_free(request);
  llmc_request_free(nullptr);
  llmc_model_free(nullptr);
  llmc_model_free(model);
}

TEST_F(Api, AnOlderProgramsStructsAreShorter) {
  llmc_options options;
  llmc_options_init(&options);
  options.struct_size = offsetof(llmc_options, context); // no policy yet
  options.policy = "what a later library would read here";
  llmc_model *model = llmc_load(package().c_str(), &options, nullptr);
  ASSERT_NE(model, nullptr);
  llmc_metrics metrics;
  std::memset(&metrics, 0xff, sizeof metrics);
  metrics.struct_size = offsetof(llmc_metrics, finished);
  llmc_get_metrics(model, &metrics);
  EXPECT_EQ(metrics.submitted, 0u);
  EXPECT_EQ(metrics.finished, UINT64_MAX) << "not written";
  llmc_model_free(model);
}

// A request outlives the model's handle, is cancelled by being freed, and times out while nothing comes.
TEST_F(Api, LifetimesAndTimeouts) {
  char error[LLMC_ERROR_BYTES];
  llmc_options options;
  llmc_options_init(&options);
  options.max_running = 1;
  llmc_model *model = llmc_load(package().c_str(), &options, error);
  ASSERT_NE(model, nullptr) << error;
  llmc_request *requests[3];
  for (llmc_request *&request : requests)
    request = llmc_submit(model, "/v1/completions", R"({"prompt": "a", "max_tokens": 90, "ignore_eos": true})", error);
  llmc_model_free(model);
  llmc_event event;
  EXPECT_NE(llmc_next(requests[2], &event, 0), LLMC_EVENT_END);
  llmc_cancel(requests[2]);
  llmc_cancel(requests[2]);
  while (llmc_next(requests[2], &event, -1) == LLMC_EVENT_TEXT)
    ;
  EXPECT_TRUE(std::strcmp(event.finish, "cancelled") == 0 || std::strcmp(event.finish, "length") == 0) << event.finish;
  llmc_request_free(requests[0]); // in the middle
  llmc_request_free(requests[2]);
  while (llmc_next(requests[1], &event, 10000) == LLMC_EVENT_TEXT)
    ;
  EXPECT_STREQ(event.finish, "length");
  llmc_request_free(requests[1]);
}

// Readers that are slow, fast or leave; each text is that of the request alone.
TEST_F(Api, ManyThreads) {
  std::vector<std::string> alone;
  {
    llmc::api::Model model(package());
    for (int kind = 0; kind < 6; ++kind)
      alone.push_back(model.complete(completion(kind, 20)).rest());
  }
  llmc::api::Model model(package());
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (unsigned client = 0; client < 6; ++client)
    clients.emplace_back([&, client] {
      std::mt19937 random(client);
      for (int round = 0; round < 40; ++round) {
        const int kind = int(random() % 6);
        llmc::api::Request request = model.complete(completion(kind, 20));
        if (random() % 4 == 0)
          continue; // leaves
        if (random() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
        wrong += request.rest() != alone[size_t(kind)];
      }
    });
  for (std::thread &client : clients)
    client.join();
  EXPECT_EQ(wrong, 0);
  llmc_metrics m = model.metrics();
  while (m.finished + m.cancelled < 240)
    m = model.metrics();
  EXPECT_EQ(m.kv_blocks_free, m.kv_blocks);
}

TEST_F(Api, Examples) {
  const Json want = run1({"run", "--json", "-n", "9", "Hello"});
  auto system = [&](const std::string &line) {
    const int status = std::system((line + " >" + quoted(*folder_ / "out") + " 2>" + quoted(*folder_ / "err")).c_str());
    return Outcome{WEXITSTATUS(status), readFile(*folder_ / "out"), readFile(*folder_ / "err")};
  };
  const std::string generate = quoted(LLMC_EXAMPLE_GENERATE) + " ", many = quoted(LLMC_EXAMPLE_MANY) + " ";
  Outcome got = system(generate + quoted(package()) + " " +
                       quoted(R"({"messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 9})"));
  EXPECT_EQ(got.code, want["finish"] == "stop" ? 0 : 3) << got.err;
  EXPECT_EQ(got.out, want["text"].get<std::string>());
  EXPECT_NE(got.err.find("kv pool"), std::string::npos) << got.err;
  got = system(generate + quoted(package()) + " '{}'");
  EXPECT_EQ(got.code, 1);
  EXPECT_NE(got.err.find("messages: expected a list"), std::string::npos) << got.err;
  EXPECT_EQ(system(generate).code, 2);
  const Json raw = run1({"run", "--raw", "--json", "-n", "6", "abc"}), other = run1({"run", "--raw", "--json", "-n", "6", "x \"y\""});
  got = system("printf 'abc\\nx \"y\"\\nabc\\n' | " + many + quoted(package()) + " 6");
  EXPECT_EQ(got.code, 0) << got.err;
  const std::string first = "abc" + raw["text"].get<std::string>() + "\n", second = "x \"y\"" + other["text"].get<std::string>() + "\n";
  EXPECT_EQ(got.out, first + second + first);
  EXPECT_NE(got.err.find("3 requests in "), std::string::npos) << got.err;
  EXPECT_EQ(system(many + "/nowhere </dev/null").code, 1);
}

} // namespace
