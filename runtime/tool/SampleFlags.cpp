//===- SampleFlags.cpp ----------------------------------------------------===//
#include "runtime/tool/SampleFlags.h"
#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tool/Numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace llmc {

namespace {

using Setter = bool (*)(SamplingParams &, const std::string &);

bool setCount(uint64_t &value, const std::string &text) { return parseCount(text, value); }

// Numbers beyond 64 bits are clipped: they mean "more than any limit".
bool setInteger(int64_t &value, const std::string &text) { return parseInteger(text, value); }

bool setBias(SamplingParams &p, const std::string &text) {
  if (text == "none") {
    p.logitBias.clear();
    return true;
  }
  const size_t equals = text.find('=');
  int64_t id = 0;
  double value = 0;
  if (equals == std::string::npos || !parseInteger(text.substr(0, equals), id))
    return false;
  const std::string number = text.substr(equals + 1);
  if (number == "-inf")
    value = -std::numeric_limits<double>::infinity();
  else if (!parseReal(number, value))
    return false;
  p.logitBias.emplace_back(id, value);
  return true;
}

bool setStop(SamplingParams &p, const std::string &text) {
  if (utf8::firstInvalid(text) != text.size())
    return false;
  if (text == "none")
    p.stop.clear();
  else
    p.stop.push_back(text);
  return true;
}

bool setStopIds(SamplingParams &p, const std::string &text) {
  if (text == "none") {
    p.stopIds.clear();
    return true;
  }
  int64_t id = 0;
  if (!parseInteger(text, id))
    return false;
  p.stopIds.push_back(id);
  return true;
}

bool setBool(bool &value, const std::string &text) {
  if (text != "true" && text != "false")
    return false;
  value = text == "true";
  return true;
}

struct Field {
  const char *name, *expected;
  Setter set;
};

const Field kFields[] = {
    {"top_k", "a whole number", [](SamplingParams &p, const std::string &t) { return setInteger(p.topK, t); }},
    {"seed", "a whole number from 0 on", [](SamplingParams &p, const std::string &t) { return setCount(p.seed, t); }},
    {"max_tokens", "a whole number from 0 on", [](SamplingParams &p, const std::string &t) { return setCount(p.maxTokens, t); }},
    {"min_tokens", "a whole number from 0 on", [](SamplingParams &p, const std::string &t) { return setCount(p.minTokens, t); }},
    {"logprobs", "a whole number from 0 to 20", [](SamplingParams &p, const std::string &t) { return setInteger(p.logprobs, t) && p.logprobs >= 0; }},
    {"ignore_eos", "true or false", [](SamplingParams &p, const std::string &t) { return setBool(p.ignoreEos, t); }},
    {"logit_bias", "ID=NUMBER (or ID=-inf)", setBias},
    {"stop", "UTF-8 text", setStop},
    {"stop_token_ids", "a token id", setStopIds},
};

std::string flagOf(std::string field) {
  std::replace(field.begin(), field.end(), '_', '-');
  return "--" + field;
}

[[noreturn]] void refuse(const BadParameter &bad) {
  throw CLI::ValidationError(flagOf(bad.field), "expected " + bad.expected + ", got " + bad.got);
}

} // namespace

static std::optional<BadParameter> setChecked(SamplingParams &params, const std::string &field, const std::string &text) {
  SamplingParams changed = params;
  const std::string got = "'" + text + "'";
  for (const RealField &real : realFields())
    if (field == real.name) {
      if (!parseReal(text, changed.*real.value) || !(changed.*real.value >= real.least && changed.*real.value <= real.most))
        return BadParameter{field, real.expected(), got};
      params = std::move(changed);
      return std::nullopt;
    }
  for (const Field &other : kFields)
    if (field == other.name) {
      if (!other.set(changed, text))
        return BadParameter{field, other.expected, got};
      // Limits on one field; those between fields wait until all are read.
      SamplingParams alone = changed;
      alone.minTokens = 0;
      if (auto bad = check(alone))
        return bad;
      params = std::move(changed);
      return std::nullopt;
    }
  std::string names;
  for (const RealField &real : realFields())
    names += std::string(real.name) + ", ";
  for (const Field &other : kFields)
    names += std::string(other.name) + (&other == std::end(kFields) - 1 ? "" : ", ");
  return BadParameter{field, "one of " + names, got};
}

std::optional<BadParameter> setField(SamplingParams &params, std::string field, const std::string &text) {
  std::replace(field.begin(), field.end(), '-', '_');
  return setChecked(params, field, text);
}

std::string describe(const SamplingParams &p) {
  std::string text;
  auto line = [&](const std::string &name, const std::string &value) { text += name + " " + value + "\n"; };
  auto number = [](double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%g", value);
    return std::string(digits);
  };
  for (const RealField &field : realFields())
    line(field.name, number(p.*field.value));
  line("top_k", std::to_string(p.topK));
  line("seed", std::to_string(p.seed));
  line("max_tokens", p.maxTokens == UINT64_MAX ? "all that fit" : std::to_string(p.maxTokens));
  line("min_tokens", std::to_string(p.minTokens));
  line("ignore_eos", p.ignoreEos ? "true" : "false");
  for (auto [id, value] : p.logitBias)
    line("logit_bias", std::to_string(id) + "=" + number(value));
  for (const std::string &stop : p.stop)
    line("stop", "'" + stop + "'");
  for (int64_t id : p.stopIds)
    line("stop_token_ids", std::to_string(id));
  return text;
}

static void addField(CLI::App &app, SamplingParams &params, const std::string &flags, const std::string &field,
                     const std::string &type, const std::string &help) {
  // A raw callback: CLI11's conversions drop empty texts and split what looks like a list.
  CLI::callback_t read = [&params, field](const CLI::results_t &texts) {
    for (const std::string &text : texts)
      if (auto bad = setField(params, field, text))
        refuse(*bad);
    return true;
  };
  const bool many = field == "stop" || field == "logit_bias" || field == "stop_token_ids";
  app.add_option(flags, read, help)
      ->type_name(type)
      ->allow_extra_args(false)
      ->multi_option_policy(many ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::Throw)
      ->group("Sampling");
}

void addLogprobsFlag(CLI::App &app, SamplingParams &params) {
  addField(app, params, "--logprobs", "logprobs", "N",
           "with --json: log-probabilities of each token and of the N likeliest (0 to 20), of the model's own distribution");
}

namespace {

struct FlagOfField {
  const char *flags, *field, *type, *help;
};

const FlagOfField kDrawFlags[] = {
    {"-t,--temperature", "temperature", "X", "0 (default): always the likeliest token"},
    {"--top-k", "top_k", "N", "choose among the N likeliest tokens (0 or less: all)"},
    {"--top-p", "top_p", "X", "choose among the likeliest tokens of total probability X (0: the likeliest; 1: all)"},
    {"--min-p", "min_p", "X", "leave out tokens less probable than X times the likeliest (0: none)"},
    {"--seed", "seed", "N", "of the random numbers (default 0); the same seed gives the same text"},
};

const FlagOfField kOtherFlags[] = {
    {"-n,--max-tokens", "max_tokens", "N", "tokens to generate, at most (default 512; clipped to the context)"},
    {"--min-tokens", "min_tokens", "N", "nothing stops the text before these (default 0)"},
    {"--typical-p", "typical_p", "X", "choose among the most typical tokens of total probability X (1: all)"},
    {"--repetition-penalty", "repetition_penalty", "X", "divide the logits of tokens in prompt or answer (1: off)"},
    {"--presence-penalty", "presence_penalty", "X", "subtract from the logits of tokens in the answer (0: off)"},
    {"--frequency-penalty", "frequency_penalty", "X", "subtract per occurrence in the answer (0: off)"},
    {"--logit-bias", "logit_bias", "ID=X", "add X (-100 to 100; -inf bans) to the logit of a token; may be repeated"},
    {"--stop", "stop", "TEXT", "end the answer before TEXT; may be repeated (16 at most)"},
    {"--stop-token-ids", "stop_token_ids", "ID", "end the answer at this token; may be repeated"},
};

void addFields(CLI::App &app, SamplingParams &params, std::span<const FlagOfField> fields) {
  for (const FlagOfField &f : fields)
    addField(app, params, f.flags, f.field, f.type, f.help);
}

} // namespace

void addDrawFlags(CLI::App &app, SamplingParams &params) { addFields(app, params, kDrawFlags); }

void addSampleFlags(CLI::App &app, SamplingParams &params) {
  addFields(app, params, std::span(kOtherFlags).first(2)); // help shows the lengths first
  addDrawFlags(app, params);
  addFields(app, params, std::span(kOtherFlags).subspan(2));
  app.add_flag("--ignore-eos", params.ignoreEos, "go on behind the model's end-of-sequence tokens")->group("Sampling");
}

void checkSampleFlags(const SamplingParams &params, uint64_t vocab) {
  if (auto bad = check(params, vocab))
    refuse(*bad);
}

} // namespace llmc
