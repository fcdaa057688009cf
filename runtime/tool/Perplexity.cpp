//===- Perplexity.cpp - how well the model foretells a text ---------------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/engine/Perplexity.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/Model.h"

#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace llmc {

namespace {

struct PerplexityFlags {
  LoadFlags load;
  std::string file, method = "strided";
  uint64_t stride = 0, tokens = UINT64_MAX;
  bool json = false;
};

constexpr uint64_t kWindow = 1024, kLlamacppWindow = 512;

/// On terminals renewed in place, elsewhere a line now and then.
class RunningValue {
public:
  ~RunningValue() {
    if (terminal_ && shown_)
      std::fputs("\r\033[K", stderr);
  }
  void operator()(const PerplexityTally &tally, size_t windows, size_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ && now - last_ < std::chrono::seconds(10))
      return;
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "%swindow %zu/%zu: perplexity %.4f%s", terminal_ ? "\r\033[K" : "", windows, all, tally.perplexity(),
                 terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

private:
  bool terminal_ = isatty(STDERR_FILENO), shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::vector<PerplexityWindow> planWindows(const PerplexityFlags &flags, size_t tokens, uint64_t window, uint64_t stride) {
  const std::vector<PerplexityWindow> windows =
      flags.method == "llamacpp" ? halvedWindows(tokens, window) : stridedWindows(tokens, window, stride);
  if (windows.empty())
    throw Error(flags.file + ": expected a text of at least " + std::to_string(flags.method == "llamacpp" ? window : 2) +
                " tokens, got " + std::to_string(tokens));
  return windows;
}

int perplexity(const PerplexityFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  const bool llamacpp = flags.method == "llamacpp";
  const uint64_t limit = model.manifest().model.maxContext;
  const uint64_t window = flags.load.context ? flags.load.context : std::min(limit, llamacpp ? kLlamacppWindow : kWindow);
  if (window < 4 || window > limit)
    throw CLI::ValidationError("--context", "expected 4 to " + std::to_string(limit) + " (the model's longest context), got " + std::to_string(window));
  const uint64_t stride = llamacpp ? window : flags.stride ? flags.stride : (window + 1) / 2;
  if (stride > window || (llamacpp && flags.stride))
    throw CLI::ValidationError("--stride", llamacpp ? "expected none with --method llamacpp"
                                                    : "expected at most --context, " + std::to_string(window) + ", got " + std::to_string(stride));
  const std::string text =
      flags.file == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : readTextFile(flags.file);
  std::vector<int32_t> ids = model.encode(text);
  ids.resize(std::min<uint64_t>(ids.size(), flags.tokens));
  const std::vector<PerplexityWindow> windows = planWindows(flags, ids.size(), window, stride);

  std::unique_ptr<Device> device = model.makeDevice(window);
  device->startBackground();
  const Tokenizer &tokenizer = model.tokenizer();
  const int32_t replaced = llamacpp && tokenizer.addsBos() ? tokenizer.bosId() : -1;
  PerplexityTally tally;
  const auto start = std::chrono::steady_clock::now();
  {
    RunningValue show;
    for (size_t i = 0; i < windows.size(); ++i) {
      tally.add(scoreWindow(*device, ids, windows[i], replaced));
      show(tally, i + 1, windows.size());
    }
  }
  const double seconds = secondsSince(start);
  if (flags.json) {
    nlohmann::ordered_json j;
    j["perplexity"] = tally.perplexity();
    j["standard_error"] = tally.standardError();
    j["mean_nll"] = tally.mean();
    j["tokens"] = ids.size();
    j["tokens_scored"] = tally.count;
    j["method"] = flags.method;
    j["context"] = window;
    j["stride"] = stride;
    j["windows"] = windows.size();
    j["seconds"] = seconds;
    std::printf("%s\n", j.dump().c_str());
  } else {
    std::printf("perplexity %.4f +- %.4f (%llu of %zu tokens scored, windows of %llu, %.1f s)\n", tally.perplexity(),
                tally.standardError(), static_cast<unsigned long long>(tally.count), ids.size(),
                static_cast<unsigned long long>(window), seconds);
  }
  return 0;
}

} // namespace

Command addPerplexity(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App *sub = app.add_subcommand("perplexity", "measure how well the model foretells a text");
  sub->add_option("FILE", flags->file, "UTF-8 text; - reads it from standard input")->required();
  sub->add_option("--method", flags->method, "strided (default) or llamacpp, see below")
      ->check(CLI::IsMember({"strided", "llamacpp"}))
      ->type_name("NAME");
  addCount(*sub, "--stride", flags->stride, "tokens from one window to the next (default: half a window)", 1, 1 << 24);
  addCount(*sub, "--tokens", flags->tokens, "of the text, at most (default: all)", 2);
  sub->add_flag("--json", flags->json, "print the result as one JSON object");
  addLoadFlags(*sub, flags->load);
  sub->get_option("--context")->description("tokens of a window (default: 1024, 512 for llamacpp; at most the model's context)");
  sub->footer("The perplexity is exp of the mean negative log-probability of the scored tokens.\n"
              "  strided   as transformers' documentation: the text is encoded as a whole, windows of --context tokens start\n"
              "            every --stride tokens, and each scores the tokens that no window before it has scored. The first\n"
              "            token of a window has nothing before it and is never scored.\n"
              "  llamacpp  as llama-perplexity: windows side by side, what is left over is dropped; the second half of each\n"
              "            window is scored; the first token is replaced by the beginning-of-sequence token if the\n"
              "            tokenizer adds one.\n"
              "Examples:\n  " + name + " perplexity book.txt --tokens 20000\n  " + name +
              " perplexity --method llamacpp --json wiki.test.raw");
  return {sub, [flags, name] { return perplexity(*flags, name); }};
}

} // namespace llmc
