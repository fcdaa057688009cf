//===- PrometheusText.cpp -------------------------------------------------===//
#include "runtime/server/PrometheusText.h"

#include <cstdio>

namespace llmc {

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

class Writer {
public:
  void describe(const std::string &name, const char *type, const char *help) {
    text += "# HELP llmc_" + name + " " + help + "\n# TYPE llmc_" + name + " " + type + "\n";
  }
  void sample(const std::string &name, const std::string &labels, const std::string &value) {
    text += "llmc_" + name + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
  void counter(const std::string &name, const char *help, uint64_t value) { one(name, "counter", help, std::to_string(value)); }
  void gauge(const std::string &name, const char *help, double value) { one(name, "gauge", help, number(value)); }

  void histogram(const std::string &name, const char *help, const Histogram &h) {
    describe(name, "histogram", help);
    uint64_t below = 0;
    for (size_t i = 0; i < h.counts.size(); ++i) {
      below += h.counts[i];
      sample(name + "_bucket", "le=\"" + (i < Histogram::kBounds.size() ? number(Histogram::kBounds[i]) : "+Inf") + "\"", std::to_string(below));
    }
    sample(name + "_sum", "", number(h.sum));
    sample(name + "_count", "", std::to_string(below));
  }

  std::string text;

private:
  void one(const std::string &name, const char *type, const char *help, const std::string &value) {
    describe(name, type, help);
    sample(name, "", value);
  }
};

void addEngine(Writer &w, const EngineMetrics &m) {
  w.gauge("requests_running", "answers that are being generated", double(m.running));
  w.gauge("requests_waiting", "answers that wait for a place in a step", double(m.waiting));
  w.counter("requests_submitted_total", "answers asked for; a request of n has n", m.submitted);
  w.describe("requests_ended_total", "counter", "answers by how they ended");
  w.sample("requests_ended_total", "outcome=\"finished\"", std::to_string(m.finished));
  w.sample("requests_ended_total", "outcome=\"cancelled\"", std::to_string(m.cancelled));
  w.sample("requests_ended_total", "outcome=\"failed\"", std::to_string(m.failed));
  w.counter("prompt_tokens_total", "prompt tokens of ended answers", m.promptTokens);
  w.counter("prefix_hit_tokens_total", "prompt tokens of ended answers that were found in the prefix cache", m.cachedTokens);
  w.gauge("kv_blocks", "blocks of the KV cache", double(m.blocks));
  w.gauge("kv_blocks_free", "blocks that no request holds, those in the prefix cache included", double(m.freeBlocks));
  w.gauge("kv_blocks_cached", "blocks in the prefix cache", double(m.cached));
  w.gauge("kv_use_ratio", "part of the blocks that requests hold", m.blocks ? double(m.blocks - m.freeBlocks) / double(m.blocks) : 0);
  w.counter("preemptions_total", "running requests that gave their blocks back", m.preemptions);
  w.counter("steps_total", "steps of the model", m.steps);
  w.histogram("step_seconds", "time of a step", m.stepSeconds);
}

void addHttp(Writer &w, HttpCounters &http) {
  w.gauge("http_connections", "open connections", double(http.connections.load()));
  w.gauge("http_streams", "answers that are being sent as events", double(http.streams.load()));
  w.describe("http_responses_total", "counter", "responses by route and status");
  std::lock_guard lock(http.mutex);
  for (const auto &[key, count] : http.responses)
    w.sample("http_responses_total", "route=\"" + key.first + "\",status=\"" + std::to_string(key.second) + "\"", std::to_string(count));
}

} // namespace

std::string prometheusText(const EngineMetrics &engine, const Latencies::Values &latencies, HttpCounters &http) {
  Writer w;
  addEngine(w, engine);
  w.counter("generated_tokens_total", "generated tokens", latencies.tokens);
  w.histogram("time_to_first_token_seconds", "from a request's arrival to its first token", latencies.firstToken);
  w.histogram("inter_token_seconds", "from a token to the next one of the same answer", latencies.interToken);
  w.histogram("request_seconds", "from a request's arrival to its last token", latencies.request);
  w.counter("slow_readers_total", "streams given up since their clients did not read", latencies.slowReaders);
  addHttp(w, http);
  return w.text;
}

} // namespace llmc
