//===- CompletionRequest.cpp ----------------------------------------------===//
#include "runtime/tool/CompletionRequest.h"
#include "llmc/Support/Error.h"
#include "runtime/tool/ChatFields.h"
#include "runtime/tool/CompletionConstraint.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/Numbers.h"

#include <algorithm>
#include <array>

namespace llmc {

using Json = nlohmann::ordered_json;

Json parseJson(std::string_view text) {
  std::array<size_t, kMaxJsonDepth + 2> keys{}; // so far, of the open object whose keys are this deep
  Json::parser_callback_t shallow = [&](int depth, Json::parse_event_t event, Json &) {
    if (depth > kMaxJsonDepth)
      throw BadRequest("", "expected JSON nested at most " + std::to_string(kMaxJsonDepth) + " deep, got more");
    if (event == Json::parse_event_t::object_start)
      keys[size_t(depth) + 1] = 0;
    if (event == Json::parse_event_t::key && ++keys[size_t(depth)] > kMaxJsonKeys)
      throw BadRequest("", "expected JSON objects of at most " + std::to_string(kMaxJsonKeys) + " keys, got more");
    return true;
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::exception &error) {
    const std::string what = error.what(); // "[json.exception.parse_error.101] parse error at ..."
    throw BadRequest("", "expected JSON: " + what.substr(std::min(what.size(), what.find("] ") + 2)));
  }
}

std::string jsonText(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

namespace {

using namespace fields;

class BodyReader {
public:
  BodyReader(const Json &body, bool chat, bool mayStream, ChatFields &fields) : body_(body), fields_(fields) {
    result_.chat = chat;
    SamplingParams &p = result_.request.sampling;
    p.temperature = 1; // the interface's default, not the command line's
    for (const RealField &field : realFields())
      readers_[field.name] = [&p, &field](const Json &v) {
        if (!v.is_number() || !(v.get<double>() >= field.least && v.get<double>() <= field.most))
          wrong(field.name, field.expected(), v);
        p.*field.value = v.get<double>();
      };
    addCommon(p);
    mayStream ? addStream() : only("stream", false);
    chat ? addChat(p) : addText(p);
  }

  const FieldReaders &readers() const { return readers_; }

  CompletionRequest read() {
    if (!body_.is_object())
      wrong("body", "an object", body_);
    for (const auto &[key, value] : body_.items()) {
      auto reader = readers_.find(key);
      if (reader == readers_.end())
        throw BadRequest(key, "unknown or not supported");
      if (!value.is_null())
        reader->second(value);
    }
    if (chosen_ && !wanted_ && chosenCount_ > 0)
      throw BadRequest("top_logprobs", "expected \"logprobs\": true with it");
    if (result_.chat && wanted_)
      result_.request.sampling.logprobs = chosenCount_;
    return std::move(result_);
  }

private:
  void ignore(std::initializer_list<const char *> names) {
    for (const char *name : names)
      readers_[name] = [](const Json &) {};
  }
  // Fields of the interface whose only supported value is what leaves them without effect.
  void only(const char *name, const Json &value) {
    readers_[name] = [name, value](const Json &v) {
      if (v != value)
        wrong(name, value.dump() + " (nothing else is supported)", v);
    };
  }

  void addCommon(SamplingParams &p) {
    ignore({"user", "safety_identifier", "prompt_cache_key", "metadata", "store", "service_tier"});
    readers_["model"] = [this](const Json &v) { result_.model = text("model", v); };
    readers_["n"] = [this](const Json &v) { result_.choices = whole("n", v, 1, kMaxChoices); };
    readers_["max_tokens"] = [&p](const Json &v) { p.maxTokens = uint64_t(whole("max_tokens", v, 0)); };
    readers_["min_tokens"] = [&p](const Json &v) { p.minTokens = uint64_t(whole("min_tokens", v, 0)); };
    readers_["top_k"] = [&p](const Json &v) { p.topK = whole("top_k", v, -1); };
    readers_["seed"] = [&p](const Json &v) { p.seed = uint64_t(whole("seed", v, INT64_MIN)); };
    readers_["ignore_eos"] = [&p](const Json &v) { p.ignoreEos = boolean("ignore_eos", v); };
    readers_["priority"] = [this](const Json &v) { result_.request.priority = whole("priority", v, -1000000, 1000000); };
    readers_["cache_salt"] = [this](const Json &v) { result_.request.cacheSalt = text("cache_salt", v); };
    readers_["stop"] = [&p](const Json &v) { readStop(p, v); };
    readers_["stop_token_ids"] = [&p](const Json &v) {
      if (!v.is_array())
        wrong("stop_token_ids", "a list of token ids", v);
      for (const Json &id : v)
        p.stopIds.push_back(whole("stop_token_ids", id, 0));
    };
    readers_["logit_bias"] = [&p](const Json &v) { readBias(p, v); };
    for (const std::string &field : constraintFields())
      readers_[field] = [this, field](const Json &v) { readConstraint(result_, field, v); };
  }

  void addStream() {
    readers_["stream"] = [this](const Json &v) { result_.stream = boolean("stream", v); };
    readers_["stream_options"] = [this](const Json &v) {
      if (!body_.contains("stream") || body_["stream"] != true)
        throw BadRequest("stream_options", "expected \"stream\": true with it");
      if (!v.is_object())
        wrong("stream_options", "an object", v);
      for (const auto &[key, value] : v.items())
        if (key == "include_usage")
          result_.includeUsage = boolean("stream_options.include_usage", value);
        else if (key != "include_obfuscation" || value != false)
          throw BadRequest("stream_options." + key, "unknown or not supported");
    };
  }

  void addChat(SamplingParams &p) {
    readers_["max_completion_tokens"] = [&p, this](const Json &v) {
      const auto most = uint64_t(whole("max_completion_tokens", v, 0));
      if (body_.contains("max_tokens") && !body_["max_tokens"].is_null() && body_["max_tokens"] != v)
        throw BadRequest("max_completion_tokens", "expected the value of max_tokens where both are given");
      p.maxTokens = most;
    };
    readers_["logprobs"] = [this](const Json &v) { wanted_ = boolean("logprobs", v); };
    readers_["top_logprobs"] = [this](const Json &v) {
      chosen_ = true;
      chosenCount_ = whole("top_logprobs", v, 0, kMaxLogprobs);
    };
    fields_.addReaders(readers_);
  }

  void addText(SamplingParams &p) {
    p.maxTokens = 16; // the interface's default
    ignore({"prompt"}); // is read apart
    readers_["logprobs"] = [&p](const Json &v) { p.logprobs = whole("logprobs", v, 0, kMaxLogprobs); };
    only("echo", false);
    only("best_of", 1);
    only("suffix", "");
  }

  static void readStop(SamplingParams &p, const Json &v) {
    if (v.is_string())
      p.stop = {v.get<std::string>()};
    else if (!v.is_array())
      wrong("stop", "a string or a list of strings", v);
    else
      for (const Json &item : v)
        p.stop.push_back(text("stop", item));
  }

  static void readBias(SamplingParams &p, const Json &v) {
    if (!v.is_object())
      wrong("logit_bias", "an object of token ids and numbers", v);
    for (const auto &[key, value] : v.items()) {
      int64_t id = 0;
      if (!parseInteger(key, id) || !value.is_number())
        wrong("logit_bias", "an object of token ids and numbers", v);
      p.logitBias.emplace_back(id, value.get<double>());
    }
  }

  const Json &body_;
  CompletionRequest result_;
  ChatFields &fields_;
  FieldReaders readers_;
  bool wanted_ = false, chosen_ = false;
  int64_t chosenCount_ = 0;
};

std::vector<int32_t> textIds(const Json &body, Model &model) {
  Json prompt = body.contains("prompt") ? body["prompt"] : Json();
  if (prompt.is_array() && prompt.size() == 1 && (prompt[0].is_string() || prompt[0].is_array()))
    prompt = Json(prompt[0]); // a list of one prompt
  if (prompt.is_string())
    return model.encode(prompt.get<std::string>());
  std::vector<int32_t> ids;
  if (!prompt.is_array() || prompt.empty())
    wrong("prompt", "a string or a list of token ids", prompt);
  for (const Json &id : prompt)
    if (id.is_number())
      ids.push_back(int32_t(whole("prompt", id, 0, INT32_MAX)));
    else
      wrong("prompt", "one string or one list of token ids", prompt);
  return ids;
}

} // namespace

std::vector<Request> CompletionRequest::requests() const {
  std::vector<Request> all(size_t(choices), request);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].sampling.seed += i;
  return all;
}

CompletionRequest readCompletion(const Json &body, bool chat, Model &model, bool mayStream) {
  ChatFields fields;
  CompletionRequest result = BodyReader(body, chat, mayStream, fields).read();
  if (auto bad = check(result.request.sampling, model.manifest().model.vocab))
    throw BadRequest(bad->field, "expected " + bad->expected + ", got " + bad->got);
  try {
    if (chat)
      fields.prepare(model, result);
    else
      result.request.prompt = textIds(body, model);
  } catch (const BadRequest &) {
    throw;
  } catch (const Error &error) {
    throw BadRequest("", error.what());
  } catch (const Json::exception &error) { // text that is not UTF-8
    throw BadRequest("messages", "expected UTF-8 text");
  }
  result.request.eosIds = model.tokenizer().eosIds();
  applyConstraint(result, model);
  return result;
}

std::vector<std::string> completionFields(bool chat, bool mayStream) {
  const Json none;
  ChatFields fields;
  const BodyReader reader(none, chat, mayStream, fields);
  std::vector<std::string> names;
  for (const auto &[name, read] : reader.readers())
    names.push_back(name);
  return names;
}

} // namespace llmc
