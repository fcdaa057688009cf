//===- TraceFile.cpp ------------------------------------------------------===//
#include "runtime/tool/TraceFile.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"

#include <algorithm>
#include <cmath>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

class TraceLine {
public:
  TraceLine(const std::string &text, const std::string &where) : where_(where) {
    try {
      json_ = Json::parse(text);
    } catch (const Json::exception &) {
    }
    if (!json_.is_object())
      throw Error(where_ + ": expected a JSON object, got '" + text.substr(0, 60) + "'");
    static const char *const keys[] = {"arrival", "prompt", "output", "priority", "prefix", "prefix_tokens", "salt"};
    for (const auto &[key, value] : json_.items())
      if (std::find(std::begin(keys), std::end(keys), key) == std::end(keys))
        throw Error(where_ + ": " + key + ": expected one of arrival, prompt, output, priority, prefix, prefix_tokens, salt");
  }

  SimulatedRequest request() const {
    SimulatedRequest r;
    r.arrival = number("arrival", 0, 1e12, false);
    if (json_.contains("prompt") && json_["prompt"].is_array())
      r.ids = ids("prompt");
    r.prompt = r.ids.empty() ? uint64_t(number("prompt", 1, 1 << 30, true)) : r.ids.size();
    r.output = uint64_t(number("output", 1, 1 << 30, true));
    r.priority = json_.contains("priority") ? int64_t(number("priority", -1e6, 1e6, true)) : 0;
    r.prefixTokens = json_.contains("prefix_tokens") ? uint64_t(number("prefix_tokens", 0, double(r.prompt), true)) : 0;
    r.prefix = text("prefix");
    r.salt = text("salt");
    if (!r.ids.empty() && !r.prefix.empty())
      throw Error(where_ + ": prefix: expected none beside a prompt of token ids, got '" + r.prefix + "'");
    return r;
  }

private:
  double number(const char *key, double least, double most, bool whole) const {
    const Json value = json_.contains(key) ? json_[key] : Json();
    const double x = value.is_number() ? value.get<double>() : NAN;
    if (!(x >= least && x <= most) || (whole && x != std::floor(x)))
      throw Error(where_ + ": " + key + ": expected a " + (whole ? "whole " : "") + "number from " + Json(least).dump() + " to " +
                  Json(most).dump() + ", got " + (value.is_null() ? "none" : value.dump().substr(0, 60)));
    return x;
  }
  std::vector<int32_t> ids(const char *key) const {
    std::vector<int32_t> ids;
    for (const Json &id : json_[key]) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
        throw Error(where_ + ": " + key + ": expected token ids, got " + id.dump().substr(0, 60) + " at " + std::to_string(ids.size()));
      ids.push_back(id.get<int32_t>());
    }
    if (ids.empty())
      throw Error(where_ + ": " + key + ": expected at least one token id, got none");
    return ids;
  }
  std::string text(const char *key) const {
    if (!json_.contains(key))
      return "";
    if (!json_[key].is_string())
      throw Error(where_ + ": " + key + ": expected a string, got " + json_[key].dump());
    return json_[key].get<std::string>();
  }

  std::string where_;
  Json json_;
};

Json percentiles(const Percentiles &p) {
  return {{"mean", p.mean()}, {"p50", p.at(0.5)}, {"p90", p.at(0.9)}, {"p99", p.at(0.99)}, {"max", p.at(1)}};
}

} // namespace

std::vector<SimulatedRequest> readTrace(const std::string &path) {
  const std::string text = readTextFile(path, 8ull << 30);
  std::vector<SimulatedRequest> requests;
  uint64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    if (text.find_first_not_of(" \t\r", at) < end)
      requests.push_back(TraceLine(text.substr(at, end - at), path + ":" + std::to_string(line)).request());
    at = end + 1;
  }
  if (requests.empty())
    throw Error(path + ": expected at least one request, got none");
  std::stable_sort(requests.begin(), requests.end(),
                   [](const SimulatedRequest &a, const SimulatedRequest &b) { return a.arrival < b.arrival; });
  return requests;
}

Json toJson(const SimulationResult &r) {
  const auto perSecond = [&](uint64_t tokens) { return r.seconds > 0 ? double(tokens) / r.seconds : 0; };
  return {{"requests", r.finished + r.cut + r.refused},
          {"finished", r.finished},
          {"cut_by_the_pool", r.cut},
          {"refused", r.refused},
          {"seconds", r.seconds},
          {"busy_seconds", r.busy},
          {"steps", r.steps},
          {"preemptions", r.preemptions},
          {"prompt_tokens", r.promptTokens},
          {"cached_tokens", r.cachedTokens},
          {"computed_tokens", r.computedTokens},
          {"output_tokens", r.outputTokens},
          {"output_tokens_per_second", perSecond(r.outputTokens)},
          {"total_tokens_per_second", perSecond(r.promptTokens + r.outputTokens)},
          {"pool_used", r.poolUsed},
          {"saturated_seconds", r.saturated},
          {"pool_used_saturated", r.poolUsedSaturated},
          {"time_to_first_token", percentiles(r.firstToken)},
          {"inter_token", percentiles(r.interToken)},
          {"queue", percentiles(r.queue)}};
}

} // namespace llmc
