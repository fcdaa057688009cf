// run's sampling flags, chat, tokenize, detokenize, perplexity.
#include "RunTool.h"

#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <thread>

using namespace fake;
using Json = nlohmann::json;

namespace {

Json parse(const Outcome &outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? Json::parse(outcome.out) : Json();
}

using Words = std::vector<std::string>;

class TextTool : public Tool {
protected:
  /// run --raw --json of "abc".
  Json generate(Words flags) {
    flags.insert(flags.begin(), {"run", "--raw", "--json"});
    flags.push_back("abc");
    return parse(run(flags));
  }
};

TEST_F(TextTool, StopStringsCutTheText) {
  const std::string whole = generate({"-n", "24"})["text"];
  ASSERT_GE(whole.size(), 12u);
  auto boundary = [&](size_t at) { // of characters: a stop string is UTF-8
    while (at < whole.size() && (whole[at] & 0xC0) == 0x80)
      ++at;
    return at;
  };
  const size_t begin = boundary(5), end = boundary(begin + 3);
  const std::string stop = whole.substr(begin, end - begin), want = whole.substr(0, whole.find(stop));
  const Json got = generate({"-n", "24", "--stop", "never there", "--stop", stop});
  EXPECT_EQ(got["text"], want);
  EXPECT_EQ(got["finish"], "stop");
  EXPECT_EQ(got["stop"], stop);
  EXPECT_EQ(run({"run", "--raw", "-n", "24", "--stop", stop, "abc"}).out, want + (want.empty() || want.back() == '\n' ? "" : "\n"));
  const Json prompt = generate({"-n", "3", "--stop", "abc"});
  EXPECT_EQ(prompt["finish"], "length") << "the prompt is not searched";
}

TEST_F(TextTool, StopOnTheLastToken) {
  const Json all = parse(run({"run", "--raw", "--ids", "-n", "24", "abc"}));
  const std::string text = all["text"];
  for (int n = 1; n < 24; ++n) {
    const Json some = generate({"-n", std::to_string(n)});
    const std::string shown = some["text"];
    if (shown.empty() || shown.back() == '\xBD' || text.find(shown.back()) != shown.size() - 1)
      continue; // this token's last byte must be the first of its kind
    const Json got = generate({"-n", std::to_string(n), "--stop", std::string(1, shown.back())});
    EXPECT_EQ(got["finish"], "stop");
    EXPECT_EQ(got["completion_tokens"], n);
  }
}

TEST_F(TextTool, CountsAndLimits) {
  const Json none = generate({"-n", "0"});
  EXPECT_EQ(none["finish"], "length");
  EXPECT_EQ(none["completion_tokens"], 0);
  EXPECT_EQ(none["text"], "");
  EXPECT_EQ(none["prompt_tokens"], 3);
  EXPECT_EQ(generate({"-n", "5", "--min-tokens", "5", "--ignore-eos"})["completion_tokens"], 5);
  expectFailure(run({"run", "-n", "3", "--min-tokens", "4", "x"}), 2, "--min-tokens: expected at most max_tokens, 3, got 4");
}

TEST_F(TextTool, PromptsAtTheContext) {
  auto with = [&](size_t length) { return run({"run", "--raw", "--json", "--context", "64", "-n", "100", std::string(length, 'a')}); };
  EXPECT_EQ(parse(with(63))["completion_tokens"], 1);
  EXPECT_EQ(parse(with(64))["completion_tokens"], 0);
  for (size_t length : {65, 10000})
    expectFailure(with(length), 1, "prompt: expected at most 64 tokens (the context length), got " + std::to_string(length));
}

TEST_F(TextTool, Logprobs) {
  const Json got = generate({"-n", "4", "--logprobs", "3", "-t", "0.01"});
  ASSERT_EQ(got["logprobs"].size(), 4u);
  for (const Json &token : got["logprobs"]) {
    ASSERT_EQ(token["top"].size(), 3u);
    double sum = 0;
    for (const Json &top : token["top"]) {
      EXPECT_TRUE(top["logprob"].is_number());
      sum += std::exp(double(top["logprob"]));
    }
    EXPECT_LE(sum, 1 + 1e-5);
    EXPECT_LE(double(token["logprob"]), double(token["top"][0]["logprob"]));
    EXPECT_EQ(token["bytes"].size(), 1u);
  }
  EXPECT_EQ(generate({"-n", "1", "--logprobs", "0"})["logprobs"][0]["top"].size(), 0u);
  EXPECT_FALSE(generate({"-n", "1"}).contains("logprobs"));
  expectFailure(run({"run", "--json", "--logprobs", "21", "x"}), 2, "--logprobs: expected a whole number from 0 to 20, got 21");
  expectFailure(run({"run", "--json", "--logprobs=-1", "x"}), 2, "--logprobs: expected a whole number from 0 to 20, got '-1'");
  expectFailure(run({"run", "--logprobs", "1", "x"}), 2, "--logprobs: expected --json or --ids with it");
}

TEST_F(TextTool, LogitBias) {
  const Json got = parse(run({"run", "--raw", "--ids", "-n", "3", "--logit-bias", "90=100", "abc"}));
  EXPECT_EQ(got["ids"], Json({90, 90, 90}));
  const int first = parse(run({"run", "--raw", "--ids", "-n", "1", "abc"}))["ids"][0];
  EXPECT_NE(parse(run({"run", "--raw", "--ids", "-n", "1", "--logit-bias", std::to_string(first) + "=-inf", "abc"}))["ids"][0], first);
  expectFailure(run({"run", "--logit-bias", "260=1", "x"}), 2, "--logit-bias: expected token ids below 260, got 260");
  for (const char *bad : {"5", "5=", "=1", "5=x", "5=1e999", "5=nan", "x=1", "5:1"})
    expectFailure(run({"run", "--logit-bias", bad, "x"}), 2, "--logit-bias: expected ID=NUMBER");
  expectFailure(run({"run", "--logit-bias", "5=101", "x"}), 2, "--logit-bias: expected numbers from -100 to 100, or -inf, got 101");
  expectFailure(run({"run", "--logit-bias", "5=1", "--logit-bias", "5=2", "x"}), 2, "--logit-bias: expected each token once");
}

TEST_F(TextTool, BadFlags) {
  expectFailure(run({"run", "--stop", "", "x"}), 2, "--stop: expected strings of 1 to 1024 bytes, got an empty string");
  Words many = {"run"};
  for (int i = 0; i < 17; ++i)
    many.insert(many.end(), {"--stop", "s"});
  many.push_back("x");
  expectFailure(run(many), 2, "--stop: expected at most 16 strings, got 17");
  for (const char *flag : {"--typical-p", "--top-p", "--min-p"})
    for (const char *bad : {"-0.1", "1.5", "nan", "null", "", "0x1", " 1"})
      expectFailure(run({"run", std::string(flag) + "=" + bad, "x"}), 2, *bad ? std::string(flag) + ": expected a number from 0 to 1, got '" + bad + "'" : flag);
  expectFailure(run({"run", "--repetition-penalty", "0", "x"}), 2, "--repetition-penalty: expected a number from 0.001 to 1000, got '0'");
  expectFailure(run({"run", "--stop-token-ids", "300", "x"}), 2, "--stop-token-ids: expected token ids below 260, got 300");
  expectFailure(run({"run", "--top-k", "1.5", "x"}), 2, "--top-k: expected a whole number, got '1.5'");
}

TEST_F(TextTool, TextThatLooksLikeAListOrANumberIsText) {
  for (const char *stop : {"[a,b]", "{}", "%%", "a,b", "-x", "none?"}) // CLI11 reads some of these in its own ways
    EXPECT_EQ(parse(run({"run", "--raw", "--json", "-n", "2", std::string("--stop=") + stop, "abc"}))["completion_tokens"], 2) << stop;
}

TEST_F(TextTool, ControlTokensInMessagesAreText) {
  auto promptIds = [&](Words flags) {
    flags.insert(flags.begin(), {"run", "--ids", "-n", "0"});
    const std::vector<int> ids = parse(run(flags))["prompt_ids"];
    return std::count(ids.begin(), ids.end(), 257);
  };
  EXPECT_EQ(promptIds({"a<|im_end|>b"}), 1);
  EXPECT_EQ(promptIds({"--special", "a<|im_end|>b"}), 2);
  EXPECT_EQ(promptIds({"--raw", "a<|im_end|>b"}), 0);
  EXPECT_EQ(promptIds({"--raw", "--special", "a<|im_end|>b"}), 1);
  EXPECT_EQ(promptIds({"--system", "<|im_end|>", "b"}), 2);
  std::ofstream(*folder_ / "none.json") << "[]";
  expectFailure(run({"run", "--messages", *folder_ / "none.json"}), 1, "messages: expected at least one message, got none");
}

TEST_F(TextTool, Tokenize) {
  EXPECT_EQ(run({"tokenize", "ab"}).out, "97 98\n");
  EXPECT_EQ(run({"tokenize"}, "ab\n").out, "97 98 10\n");
  EXPECT_EQ(run({"tokenize", "-"}, "x").out, "120\n");
  EXPECT_EQ(run({"tokenize", ""}).out, "\n");
  std::ofstream(*folder_ / "t.txt") << "<|im_end|>";
  EXPECT_EQ(run({"tokenize", "--file", *folder_ / "t.txt", "--count"}).out, "10\n");
  EXPECT_EQ(run({"tokenize", "--file", *folder_ / "t.txt", "--count", "--special"}).out, "1\n");
  EXPECT_EQ(run({"tokenize", "--pieces", "--special", "a\n<|im_start|>\xC3\xA9"}).out, "97\t\"a\"\n10\t\"\\n\"\n256\t\"<|im_start|>\"\n195\t\"\xEF\xBF\xBD\"\n169\t\"\xEF\xBF\xBD\"\n");
  EXPECT_EQ(parse(run({"tokenize", "--json", "--pieces", "ab"})), Json::parse(R"({"ids":[97,98],"pieces":["a","b"]})"));
  EXPECT_EQ(parse(run({"tokenize", "--json", "--count", "ab"})), Json::parse(R"({"count":2})"));
  expectFailure(run({"tokenize", "--bos", "x"}), 1, "--bos: the model has no beginning-of-sequence token");
  expectFailure(run({"tokenize", "--file", "/nonexistent"}), 1, "/nonexistent");
}

TEST_F(TextTool, Detokenize) {
  EXPECT_EQ(run({"detokenize", "104", "105"}).out, "hi\n");
  EXPECT_EQ(run({"detokenize"}, "[104, 105]\n").out, "hi\n");
  EXPECT_EQ(run({"detokenize", "104,105", "257"}).out, "hi<|im_end|>\n");
  EXPECT_EQ(run({"detokenize", "--skip-special", "104,105", "257"}).out, "hi\n");
  EXPECT_EQ(parse(run({"detokenize", "--json", "195"})), Json::parse("{\"text\":\"\xEF\xBF\xBD\"}"));
  EXPECT_EQ(run({"detokenize"}, run({"tokenize", "round trip \xC3\xA9"}).out).out, "round trip \xC3\xA9\n");
  for (const char *bad : {"260", "1.5", "x", "99999999999999999999"})
    expectFailure(run({"detokenize", bad}), 1, std::string("IDS: expected token ids below 260, got '") + bad + "'");
  expectFailure(run({"detokenize"}, "-1"), 1, "IDS: expected token ids below 260, got '-1'");
}

TEST_F(TextTool, Perplexity) {
  std::string text;
  for (int i = 0; i < 150; ++i)
    text += char('a' + i * 7 % 26);
  std::ofstream(*folder_ / "text") << text;
  std::vector<int32_t> ids(text.begin(), text.end());
  auto nll = [&](size_t begin, size_t scored, size_t end) {
    double total = 0;
    for (size_t at = scored; at < end; ++at) {
      const std::vector<float> logits = expectedLogits({ids.begin() + ptrdiff_t(begin), ids.begin() + ptrdiff_t(at)});
      double sum = 0;
      for (float x : logits)
        sum += std::exp(double(x));
      total += std::log(sum) - logits[size_t(ids[at])];
    }
    return total;
  };
  Json got = parse(run({"perplexity", "--json", "--context", "60", "--stride", "40", *folder_ / "text"}));
  EXPECT_EQ(got["tokens"], 150);
  EXPECT_EQ(got["tokens_scored"], 149);
  EXPECT_EQ(got["windows"], 4);
  EXPECT_NEAR(got["mean_nll"], (nll(0, 1, 60) + nll(40, 60, 100) + nll(80, 100, 140) + nll(120, 140, 150)) / 149, 1e-4);
  got = parse(run({"perplexity", "--json", "--method", "llamacpp", "--context", "60", *folder_ / "text"}));
  EXPECT_EQ(got["tokens_scored"], 58);
  EXPECT_NEAR(got["mean_nll"], (nll(0, 31, 60) + nll(60, 91, 120)) / 58, 1e-4);
  EXPECT_NEAR(got["perplexity"], std::exp(double(got["mean_nll"])), 1e-9);
  EXPECT_EQ(parse(run({"perplexity", "--json", "--tokens", "20", "-"}, text))["tokens"], 20);
  EXPECT_NE(run({"perplexity", *folder_ / "text"}).out.find("perplexity "), std::string::npos);
  expectFailure(run({"perplexity", "-"}, "a"), 1, "-: expected a text of at least 2 tokens, got 1");
  expectFailure(run({"perplexity", "-"}, ""), 1, "at least one token");
  expectFailure(run({"perplexity", "--context", "97", "-"}, text), 2, "--context: expected 4 to 96 (the model's longest context), got 97");
  expectFailure(run({"perplexity", "--context", "20", "--stride", "21", "-"}, text), 2, "--stride: expected at most --context, 20, got 21");
  expectFailure(run({"perplexity", "--method", "llamacpp", "--context", "90", "-"}, text.substr(0, 80)), 1, "at least 90 tokens, got 80");
  expectFailure(run({"perplexity", "--method", "magic", "-"}, text), 2, "--method");
}

// What chat answers is what run answers to the same messages.
TEST_F(TextTool, ChatAnswersAsAColdCache) {
  const Outcome got = run({"chat", "-n", "4", "--ignore-eos"}, "hi\nyou\n/stats\n/save " + (*folder_ / "c.json") + "\n");
  ASSERT_EQ(got.code, 0) << got.err;
  const Json saved = Json::parse(readFile(*folder_ / "c.json"));
  ASSERT_EQ(saved.size(), 4u);
  EXPECT_EQ(saved[0], Json::parse(R"({"role":"user","content":"hi"})"));
  EXPECT_EQ(saved[2]["content"], "you");
  std::string shown;
  for (size_t answer : {1, 3}) {
    std::ofstream(*folder_ / "m.json") << Json(Json::array_t(saved.begin(), saved.begin() + long(answer))).dump();
    const Json cold = parse(run({"run", "--json", "-n", "4", "--ignore-eos", "--messages", *folder_ / "m.json"}));
    EXPECT_EQ(cold["text"], saved[answer]["content"]);
    shown += std::string(cold["text"]);
    if (shown.empty() || shown.back() != '\n')
      shown += '\n';
  }
  EXPECT_EQ(got.out, shown);
  size_t prompt = 0, cached = 0;
  const size_t at = got.err.find("last answer: prompt of");
  ASSERT_NE(at, std::string::npos) << got.err;
  ASSERT_EQ(2, std::sscanf(got.err.c_str() + at, "last answer: prompt of %zu tokens, %zu of them from the cache", &prompt, &cached));
  EXPECT_GE(cached, 20u) << "at least the first turn's prompt";
  EXPECT_LT(cached, prompt);
}

Json conversation(const std::string &path) { return Json::parse(readFile(path)); }

TEST_F(TextTool, ChatWithoutThePrefixCache) {
  const std::string lines = "abc\nde\n/stats\n";
  const Outcome on = run({"chat", "-n", "5"}, lines), off = run({"chat", "-n", "5", "--prefix-cache=off"}, lines);
  EXPECT_EQ(off.out, on.out);
  EXPECT_NE(off.err.find(", 0 of them from the cache"), std::string::npos) << off.err;
  EXPECT_EQ(on.err.find(", 0 of them from the cache"), std::string::npos) << on.err;
  expectFailure(run({"chat", "--prefix-cache=maybe"}), 2, "--prefix-cache: expected off or on, got 'maybe'");
}

TEST_F(TextTool, ChatCommands) {
  const std::string file = *folder_ / "h.json";
  auto after = [&](const std::string &input, int code = 0) {
    const Outcome got = run({"chat", "-n", "2"}, input + "/save " + file + "\n");
    EXPECT_EQ(got.code, code) << got.err;
    return conversation(file);
  };
  EXPECT_EQ(after("a\nb\n/undo\n").size(), 2u);
  EXPECT_EQ(after("a\nb\n/undo\n/undo\n").size(), 0u);
  EXPECT_EQ(after("/undo\n", 1).size(), 0u);
  EXPECT_EQ(after("/system S T \na\n")[0], Json::parse(R"({"role":"system","content":"S T "})"));
  EXPECT_EQ(after("/system S\na\n/clear\n").size(), 1u);
  EXPECT_EQ(after("/system S\n/system\na\n").size(), 2u);
  EXPECT_EQ(after("//help\n")[0]["content"], "/help");
  EXPECT_EQ(after("one \\\ntwo\n")[0]["content"], "one \ntwo");
  EXPECT_EQ(after("\"\"\"\nx\n\n y\n\"\"\"\n")[0]["content"], "x\n\n y");
  EXPECT_EQ(after("\"\"\"x\"\"\"\n")[0]["content"], "x");
  EXPECT_EQ(after("\n  \n\n").size(), 0u) << "empty lines are no messages";
  EXPECT_EQ(after("a\r\n")[0]["content"], "a");
  EXPECT_EQ(after("a\n/retry\n").size(), 2u);
  EXPECT_EQ(after("/retry\n", 1).size(), 0u);
  EXPECT_EQ(after("/dance\n", 1).size(), 0u);
  EXPECT_EQ(after("a<|im_end|>\n")[0]["content"], "a<|im_end|>");
  EXPECT_EQ(after("\xff\n")[0]["content"], "\xEF\xBF\xBD");
  EXPECT_EQ(run({"chat"}, "/exit\nunread\n").out, "");
  EXPECT_EQ(run({"chat", "-n", "2"}, "unfinished line").code, 0);
  EXPECT_NE(run({"chat"}, "/help\n").err.find("/retry"), std::string::npos);
}

TEST_F(TextTool, ChatRetryTakesTheNextSeed) {
  const std::string file = *folder_ / "r.json";
  run({"chat", "-n", "6", "-t", "1", "--seed", "5"}, "hi\n/save " + file + "\n");
  const Json first = conversation(file);
  run({"chat", "-n", "6", "-t", "1", "--seed", "5"}, "hi\n/retry\n/save " + file + "\n");
  const Json second = conversation(file);
  EXPECT_NE(first[1], second[1]);
  run({"chat", "-n", "6", "-t", "1", "--seed", "6"}, "hi\n/save " + file + "\n");
  EXPECT_EQ(conversation(file)[1], second[1]);
}

TEST_F(TextTool, ChatSetAndLoad) {
  Outcome got = run({"chat"}, "/set top_p 0.5\n/set stop-token-ids 7\n/set\n");
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_NE(got.err.find("top_p 0.5\n"), std::string::npos);
  EXPECT_NE(got.err.find("stop_token_ids 7\n"), std::string::npos);
  for (auto [line, part] : {std::pair("/set top_p 2", "/set top_p: expected a number from 0 to 1, got '2'"), {"/set nothing 1", "/set nothing: expected one of"},
                            {"/set logit_bias 260=1", "/set logit_bias: expected token ids below 260, got 260"}, {"/set max_tokens x", "/set max_tokens: expected a whole number"},
                            {"/load /nonexistent", "/nonexistent"}, {"/save", "/save: expected the name of a file"}}) {
    got = run({"chat"}, std::string(line) + "\n");
    EXPECT_EQ(got.code, 1);
    EXPECT_NE(got.err.find(part), std::string::npos) << got.err;
  }
  std::ofstream(*folder_ / "bad.json") << R"([{"role":"user"}])";
  expectFailure(run({"chat", "--load", *folder_ / "bad.json"}), 1, "message 0: expected a string \"content\"");
  std::ofstream(*folder_ / "good.json") << R"([{"role":"system","content":"S"},{"role":"user","content":"a"}])";
  got = run({"chat", "-n", "2", "--load", *folder_ / "good.json"}, "/retry\n/save " + (*folder_ / "out.json") + "\n");
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(conversation(*folder_ / "out.json").size(), 3u);
}

TEST_F(TextTool, ChatForgetsWhatHasNoRoomAndSaysSo) {
  const Outcome got = run({"chat", "-n", "2"}, "first message\nsecond message\nthird message\n/save " + (*folder_ / "f.json") + "\n");
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_NE(got.err.find("[the context is full: the first 2 messages are no longer shown to the model]"), std::string::npos) << got.err;
  EXPECT_EQ(conversation(*folder_ / "f.json").size(), 6u) << "but they are saved";
  const Outcome longer = run({"chat", "-n", "2"}, std::string(200, 'a') + "\nhi\n");
  EXPECT_EQ(longer.code, 1);
  EXPECT_NE(longer.err.find("the message: expected at most 94 tokens"), std::string::npos) << longer.err;
  EXPECT_NE(longer.out, "") << "the next message is answered";
}

/// The executable with pipes, to send it signals.
struct Process {
  explicit Process(const std::string &exe, Words arguments) {
    int in[2], out[2];
    EXPECT_EQ(0, pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC));
    pid = fork();
    if (pid == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(out[1], 2);
      std::vector<char *> argv = {const_cast<char *>(exe.c_str())};
      for (std::string &argument : arguments)
        argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(exe.c_str(), argv.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input = in[1];
    output = out[0];
  }
  ~Process() {
    kill(pid, SIGKILL);
    close(output);
  }
  void send(const std::string &text) { ASSERT_EQ(write(input, text.data(), text.size()), ssize_t(text.size())); }
  /// Reads until `part` has come; false after a minute or at the end.
  bool sees(const std::string &part) {
    while (seen.find(part) == std::string::npos) {
      pollfd wait = {output, POLLIN, 0};
      char bytes[4096];
      const ssize_t count = poll(&wait, 1, 60000) > 0 ? read(output, bytes, sizeof bytes) : 0;
      if (count <= 0)
        return false;
      seen.append(bytes, size_t(count));
    }
    seen.erase(0, seen.find(part) + part.size());
    return true;
  }
  int exitCode() {
    close(input);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  pid_t pid;
  int input, output;
  std::string seen;
};

TEST_F(TextTool, CtrlCAtThePromptTwiceLeaves) {
  Process chat(*folder_ / "model", {"chat", "-n", "2"});
  chat.send("/set\n");
  ASSERT_TRUE(chat.sees("temperature"));
  kill(chat.pid, SIGINT);
  ASSERT_TRUE(chat.sees("[Ctrl-C again or Ctrl-D leaves"));
  chat.send("/stats\n");
  ASSERT_TRUE(chat.sees("0 messages")) << "a line in between: it goes on";
  kill(chat.pid, SIGINT);
  ASSERT_TRUE(chat.sees("[Ctrl-C again"));
  kill(chat.pid, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(chat.pid, &status, 0), chat.pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(TextTool, HelpTeaches) {
  for (auto [command, part] : {std::pair("run", "--typical-p"), {"chat", "/retry"}, {"tokenize", "Examples:"}, {"detokenize", "Example"}, {"perplexity", "llama-perplexity"}}) {
    const Outcome got = run({command, "--help"});
    EXPECT_EQ(got.code, 0);
    EXPECT_NE(got.out.find(part), std::string::npos) << got.out;
  }
}

} // namespace
