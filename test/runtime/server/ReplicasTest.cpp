// Several engines behind one server.
#include "Serving.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "test/ErrorOf.h"

#include <filesystem>
#include <fstream>
#include <set>

using namespace fake;

namespace {

class TwoReplicas : public Serving {
protected:
  void SetUp() override {
    if (llmc::ThreadPool::availableCpus() < 2)
      GTEST_SKIP() << "one CPU";
  }
  llmc::ServiceOptions two(llmc::ServiceOptions options = {}) {
    options.replicas = 2;
    return options;
  }
};

// CPUs of each thread of this process: "0", "0-3,5".
std::multiset<std::string> affinities() {
  std::multiset<std::string> all;
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("Cpus_allowed_list:"))
        all.insert(line.substr(line.find_last_of(" \t") + 1));
  }
  return all;
}

TEST_F(TwoReplicas, AnswerAsOne) {
  auto body = [](int i) { return textBody("prompt " + std::to_string(i), {{"temperature", 0.8}, {"seed", i}, {"max_tokens", 30}}); };
  start();
  std::vector<Json> want;
  for (int i = 0; i < 16; ++i)
    want.push_back(post("/v1/completions", body(i)).json()["choices"]);
  stop();
  const auto before = affinities();
  start({}, two());
  std::vector<std::thread> clients;
  std::vector<Json> got(16);
  for (size_t i = 0; i < 16; ++i)
    clients.emplace_back([&, i] { got[i] = post("/v1/completions", body(int(i))).json()["choices"]; });
  for (std::thread &client : clients)
    client.join();
  EXPECT_EQ(got, want);
  EXPECT_TRUE(idle());
  EXPECT_EQ(metric("llmc_requests_ended_total{outcome=\"finished\"}"), 16);
  // Two threads more than before have a CPU or half of them each, all others what they had.
  std::multiset<std::string> now = affinities();
  std::set<std::string> shares;
  for (const std::string &list : now)
    if (!before.count(list))
      shares.insert(list);
  EXPECT_EQ(shares.size(), 2u);
}

// Both work at a time, and who has computed a beginning gets what begins so.
TEST_F(TwoReplicas, ShareTheWork) {
  start({}, two(slow()));
  std::vector<Client> clients;
  const Json endless = textBody("abc", {{"n", 64}, {"max_tokens", 90}, {"ignore_eos", true}, {"stream", true}});
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(port_);
    clients.back().send(httpText("POST", "/v1/completions", endless.dump()));
    EXPECT_NE(clients.back().until("data: "), "") << "neither waits for the other";
  }
  EXPECT_TRUE(reaches("llmc_requests_running", kMaxSeqs + 1)) << "more than one can run";
  clients.clear();
  EXPECT_TRUE(idle());
  const std::string prompt(80, 'p');
  const double before = metric("llmc_prefix_hit_tokens_total");
  for (int i = 0; i < 5; ++i)
    post("/v1/completions", textBody(prompt, {{"max_tokens", 1}}));
  EXPECT_TRUE(idle());
  EXPECT_GE(metric("llmc_prefix_hit_tokens_total") - before, 4 * 64) << "all but the first find it";
}

TEST_F(TwoReplicas, NeedCpus) {
  const uint64_t cpus = llmc::ThreadPool::availableCpus();
  EXPECT_EQ(llmc::Replicas::threadsOfEach(1, 0), 0u);
  EXPECT_EQ(llmc::Replicas::threadsOfEach(2, 0), cpus / 2);
  EXPECT_EQ(llmc::Replicas::threadsOfEach(2, 2), 1u);
  EXPECT_ERROR(llmc::Replicas::threadsOfEach(2, 1), "--replicas: expected at most 1 (--threads), got 2");
  EXPECT_ERROR(llmc::Replicas::threadsOfEach(cpus + 1, 0), "(CPUs that this process may use), got " + std::to_string(cpus + 1));
}

} // namespace
