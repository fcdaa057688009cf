//===- Chat.cpp - a conversation in the terminal --------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/tool/ChatSession.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/LineInput.h"
#include "runtime/tool/SampleFlags.h"

#include <cstdarg>
#include <cstdio>
#include <memory>

namespace llmc {

namespace {

constexpr uint64_t kDefaultContext = 8192;

const char *const kHelp =
    "/help             this list\n"
    "/clear            forget the conversation (the system message stays)\n"
    "/system [TEXT]    set the system message; without TEXT: have none\n"
    "/undo             take the last message and its answer back\n"
    "/retry            answer the last message again, with the next seed\n"
    "/save FILE        write the conversation as JSON (run --messages reads it)\n"
    "/load FILE        go on with the conversation in FILE\n"
    "/set [NAME VALUE] set a sampling parameter (temperature, top_p, seed, stop, ...); alone: show all\n"
    "/stats            tokens and speed of the last answer\n"
    "/exit             leave; so do Ctrl-D and Ctrl-C twice\n"
    "A line that ends in \\ goes on in the next one; a message between two lines of \"\"\" may have several lines.\n"
    "A message that begins with // is sent with one / at its start. Ctrl-C stops an answer.\n";

struct ChatFlags {
  LoadFlags load;
  SamplingParams sampling;
  std::string system, conversation;
  bool hasSystem = false, prefixCache = true;
};

// Answers go to standard output, everything else to standard error.
__attribute__((format(printf, 1, 2))) void note(const char *format, ...) {
  std::fflush(stdout);
  va_list arguments;
  va_start(arguments, format);
  std::fputc('[', stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("]\n", stderr);
  va_end(arguments);
}

struct Speed {
  size_t prompt = 0, reused = 0, generated = 0;
  double prefill = 0, generation = 0; // seconds
};

class Conversation {
public:
  Conversation(ChatSession &session, LineInput &input, Device &device, uint64_t vocab, const std::string &name)
      : session_(session), input_(input), device_(device), vocab_(vocab), name_(name) {}

  /// Reads and answers until the user leaves. True if nothing failed.
  bool run();

private:
  bool command(const std::string &line); // false: leave
  void generate(const std::function<Answer(const AnswerHooks &)> &ask);
  void report(const Answer &answer);
  void set(const std::string &arguments);
  void stats() const;

  ChatSession &session_;
  LineInput &input_;
  Device &device_;
  uint64_t vocab_;
  std::string name_;
  Speed speed_;
  bool good_ = true;
};

bool Conversation::run() {
  std::string message;
  for (bool warned = false;;) {
    switch (input_.readMessage(message)) {
    case LineInput::Event::End:
      if (input_.terminal())
        std::fputc('\n', stderr);
      return good_;
    case LineInput::Event::Interrupted:
      if (warned)
        return good_;
      std::fputc('\n', stderr);
      note("Ctrl-C again or Ctrl-D leaves; /help lists the commands");
      warned = true;
      continue;
    case LineInput::Event::Line:
      warned = false;
    }
    if (message.find_first_not_of(" \t\n") == std::string::npos)
      continue;
    try {
      if (message[0] != '/' || message.starts_with("//"))
        generate([&](const AnswerHooks &hooks) { return session_.say(message.substr(message[0] == '/'), hooks); });
      else if (!command(message))
        return good_;
    } catch (const Error &error) {
      good_ = false;
      std::fflush(stdout);
      std::fprintf(stderr, "%s: error: %s\n", name_.c_str(), error.what());
    }
  }
}

bool Conversation::command(const std::string &line) {
  const size_t end = std::min(line.find_first_of(" \t\n"), line.size()), start = line.find_first_not_of(" \t\n", end);
  const std::string verb = line.substr(0, end), rest = start == std::string::npos ? "" : line.substr(start);
  const std::string argument = rest.substr(0, rest.find_last_not_of(" \t\n") + 1);
  auto file = [&] {
    if (argument.empty())
      throw Error(verb + ": expected the name of a file, got none");
    return argument;
  };
  if (verb == "/exit" || verb == "/quit")
    return false;
  if (verb == "/help") {
    std::fputs(kHelp, stderr);
  } else if (verb == "/clear") {
    session_.clear();
  } else if (verb == "/system") {
    session_.setSystem(rest.empty() ? std::nullopt : std::optional(rest));
  } else if (verb == "/undo") {
    if (!session_.undo())
      throw Error("/undo: expected a message to take back, got none yet");
  } else if (verb == "/retry") {
    if (session_.params.temperature == 0)
      note("temperature is 0: the answer will be the same; try /set temperature 0.8");
    generate([&](const AnswerHooks &hooks) { return session_.retry(hooks); });
  } else if (verb == "/save") {
    session_.save(file());
  } else if (verb == "/load") {
    session_.load(file());
    note("%zu messages", session_.messages().size());
  } else if (verb == "/set") {
    set(argument);
  } else if (verb == "/stats") {
    stats();
  } else {
    throw Error("expected a command that /help lists, got '" + verb + "' (a message that begins with / is written with //)");
  }
  return true;
}

void Conversation::set(const std::string &arguments) {
  if (arguments.empty()) {
    std::fputs(describe(session_.params).c_str(), stderr);
    return;
  }
  const size_t end = std::min(arguments.find_first_of(" =\t"), arguments.size());
  const std::string value = end < arguments.size() ? arguments.substr(end + 1) : "";
  SamplingParams changed = session_.params;
  auto bad = setField(changed, arguments.substr(0, end), value);
  if (!bad)
    bad = check(changed, vocab_);
  if (bad)
    throw Error("/set " + bad->field + ": expected " + bad->expected + ", got " + bad->got);
  session_.params = std::move(changed);
}

void Conversation::generate(const std::function<Answer(const AnswerHooks &)> &ask) {
  using Clock = std::chrono::steady_clock;
  const size_t forgotten = session_.forgotten();
  const auto start = Clock::now();
  auto first = start;
  bool newline = true; // the answer so far ends in one
  AnswerHooks hooks;
  hooks.onText = [&](const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    newline = text.back() == '\n';
  };
  hooks.onFirstToken = [&] {
    first = Clock::now();
    device_.startBackground();
  };
  hooks.cancelled = [] { return LineInput::interrupted(); };
  LineInput::interrupted(); // one from before is not meant
  const Answer answer = ask(hooks);
  if (!newline || answer.text.empty())
    std::putchar('\n');
  std::fflush(stdout);
  const Sequence &s = *answer.sequence;
  speed_ = {s.request.prompt.size(), s.cached, s.generated(), std::chrono::duration<double>(first - start).count(), secondsSince(first)};
  if (session_.forgotten() > forgotten)
    note("the context is full: the first %zu messages are no longer shown to the model", session_.forgotten());
  report(answer);
}

void Conversation::report(const Answer &answer) {
  const Sequence &s = *answer.sequence;
  if (s.finish == Finish::Cancelled)
    note(answer.text.empty() ? "stopped; the message is taken back" : "stopped");
  else if (s.finish == Finish::CacheFull)
    note("the KV cache is full after %zu tokens, see --kv-memory: the answer is cut", s.ids.size());
  else if (s.finish == Finish::Length && s.generated() >= s.request.sampling.maxTokens)
    note("cut after %zu tokens, see /set max_tokens", size_t(s.generated()));
  else if (s.finish == Finish::Length)
    note("the context of %zu tokens is full: the answer is cut", s.ids.size());
}

void Conversation::stats() const {
  std::fprintf(stderr,
               "%zu messages, %llu tokens in the context\n"
               "last answer: prompt of %zu tokens, %zu of them from the cache, first token after %.1f ms; %zu tokens, %.1f tokens/s\n",
               session_.messages().size(), static_cast<unsigned long long>(session_.tokensInContext()), speed_.prompt, speed_.reused,
               speed_.prefill * 1e3, speed_.generated, speed_.generated > 1 ? double(speed_.generated - 1) / speed_.generation : 0.0);
}

int chat(const ChatFlags &flags, const std::string &name) {
  checkSampleFlags(flags.sampling, 0);
  Model model(flags.load, name);
  const uint64_t vocab = model.manifest().model.vocab, limit = model.manifest().model.maxContext;
  checkSampleFlags(flags.sampling, vocab);
  if (model.templateSource().empty())
    throw Error(model.package().path() + ": the package has no chat template; use run --raw");
  const uint64_t context = flags.load.context ? std::min(flags.load.context, limit) : std::min(limit, kDefaultContext);
  std::unique_ptr<Device> device = model.makeDevice(context);
  Engine engine(*device, {.context = context, .prefixCache = flags.prefixCache});
  ChatSession session(model, engine, flags.sampling);
  if (!flags.conversation.empty())
    session.load(flags.conversation);
  if (flags.hasSystem)
    session.setSystem(flags.system);
  LineInput input;
  if (input.terminal())
    note("%s, %llu tokens of context; /help lists the commands", model.manifest().model.name.c_str(), static_cast<unsigned long long>(engine.room()));
  const size_t slash = name.rfind('/');
  return Conversation(session, input, *device, vocab, name.substr(slash + 1)).run() ? 0 : 1;
}

} // namespace

Command addChat(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<ChatFlags>();
  flags->sampling.maxTokens = kDefaultMaxTokens;
  CLI::App *sub = app.add_subcommand("chat", "have a conversation");
  sub->add_option("--system", flags->system, "system message (empty text is a message, too)")
      ->each([flags](const std::string &) { flags->hasSystem = true; })
      ->allow_extra_args(false);
  sub->add_option("--load", flags->conversation, "go on with the conversation that /save wrote")->type_name("FILE");
  addSampleFlags(*sub, flags->sampling);
  addPrefixCacheFlag(*sub, flags->prefixCache, "off: compute the whole conversation anew for every answer, for comparison (default on)");
  addLoadFlags(*sub, flags->load);
  sub->get_option("--context")->description("tokens of conversation that the model sees (default: 8192, at most the model's)");
  sub->footer(std::string("Every line of standard input is a message or a command:\n") + kHelp +
              "When the conversation outgrows the context, the model no longer sees its oldest messages, and a note says so.\n"
              "Examples:\n  " + name + " chat --system \"Answer in one sentence.\"\n  " + name +
              " chat -t 0.7 --top-p 0.9 --seed 3\n  printf 'Hello\\nAnd in French?\\n' | " + name + " chat");
  return {sub, [flags, name] { return chat(*flags, name); }};
}

} // namespace llmc
