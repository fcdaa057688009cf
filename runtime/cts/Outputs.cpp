//===- Outputs.cpp - ids, logits, hidden rows, samplers -------------------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/Suite.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llmc::cts {

namespace {

// As many sequences of different length as a step takes, `most` at most.
std::vector<Part> ragged(const Player &p, uint32_t most) {
  std::vector<Part> parts;
  const uint64_t lengths[] = {3, 1, 17, 5, 1, 33, 16, 2};
  uint64_t tokens = 0;
  for (uint32_t i = 0; i < std::min({most, p.m.max_seqs, p.m.max_logits}); ++i) {
    const uint64_t length = p.length(lengths[i % 8]);
    if ((tokens += length) > p.m.max_tokens || int32_t(3 * i + 3) > int32_t(p.blocks()))
      break;
    parts.push_back({p.text(length, i + 1), 0, range(int32_t(3 * i), int32_t(3 * i + 3))});
  }
  return parts;
}

void idsAgreeWithLogits(Player &p) {
  const std::vector<Part> parts = ragged(p, 32);
  const std::vector<Row> rows = p.play(parts);
  const llmc_sampler_v1 greedy = defaultSampler();
  p.device.step(p.step(parts, &greedy)); // only ids
  const Ids alone = p.outIds();
  llmc_step_v1 s = p.step(parts, &greedy); // with logits, too
  std::vector<float> logits(rows.size() * p.m.vocab);
  s.out_logits = logits.data();
  p.device.step(s);
  for (size_t i = 0; i < rows.size(); ++i) {
    expect(alone[i] == best(rows[i]), "row " + std::to_string(i) + ": expected the lowest id of the largest logit, " +
                                          std::to_string(best(rows[i])) + ", got " + std::to_string(alone[i]));
    expect(p.outIds()[i] == alone[i], "row " + std::to_string(i) + ": another id when logits are wanted, too");
    p.same(Row(logits.begin() + ptrdiff_t(i * p.m.vocab), logits.begin() + ptrdiff_t((i + 1) * p.m.vocab)), rows[i], "logits beside ids");
  }
}

// Rows that the host must sample beside rows that a GPU may.
void mixedSamplers(Player &p) {
  const std::vector<Part> parts = ragged(p, 8);
  const std::vector<Row> rows = p.play(parts);
  std::vector<llmc_sampler_v1> samplers(parts.size(), defaultSampler());
  const int32_t wanted = 1;
  const float bias = 1e6f;
  std::vector<uint32_t> mask((p.m.vocab + 31) / 32, 0);
  mask[0] = 1u << 2;
  for (size_t i = 0; i < samplers.size(); ++i) {
    if (i % 4 == 1) {
      samplers[i].bias_count = 1;
      samplers[i].bias_ids = &wanted;
      samplers[i].bias_values = &bias;
    } else if (i % 4 == 2) {
      samplers[i].token_mask = mask.data();
    } else if (i % 4 == 3) {
      samplers[i].temperature = 0.8f;
      samplers[i].top_k = 1;
    }
  }
  Ids ids(parts.size(), -7);
  llmc_step_v1 s = p.step(parts);
  s.samplers = samplers.data();
  s.out_ids = ids.data();
  p.device.step(s);
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t want = i % 4 == 1 ? 1 : i % 4 == 2 ? 2 : best(rows[i]);
    expect(ids[i] == want, "row " + std::to_string(i) + ": expected " + std::to_string(want) + ", got " + std::to_string(ids[i]));
  }
}

void seededSampling(Player &p) {
  llmc_sampler_v1 sampler = defaultSampler();
  sampler.temperature = 1;
  const std::vector<Part> parts = ragged(p, 4);
  std::vector<Row> rows = p.play(parts);
  auto draw = [&](uint64_t seed) {
    sampler.seed = seed;
    p.device.step(p.step(parts, &sampler));
    return p.outIds();
  };
  const Ids first = draw(42);
  expect(draw(42) == first, "expected the tokens of seed 42 again");
  Sampler host;
  sampler.seed = 42;
  for (size_t i = 0; i < rows.size() && p.onCpu(); ++i) { // other devices draw in their own way
    Row row = rows[i];
    const int32_t want = host.sample(row, sampler);
    expect(first[i] == want, "row " + std::to_string(i) + ": expected the token of seed 42, " + std::to_string(want) + ", got " +
                                 std::to_string(first[i]));
  }
  bool differs = false;
  for (uint64_t seed = 0; seed < 16; ++seed)
    differs |= draw(seed) != first;
  expect(differs, "expected other tokens from other seeds");
  // Of two tokens that top-k keeps each comes up, and no other.
  sampler.top_k = 2;
  sampler.temperature = 100; // nearly even
  for (size_t i = 0; i < rows.size(); ++i) {
    Row others = rows[i];
    const int32_t likeliest = best(others);
    others[size_t(likeliest)] = -std::numeric_limits<float>::infinity();
    const int32_t second = best(others);
    int seen[2] = {};
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const int32_t id = draw(seed)[i];
      expect(id == likeliest || id == second, "row " + std::to_string(i) + ": expected one of the two likeliest tokens, got " + std::to_string(id));
      ++seen[id == second];
    }
    expect(seen[0] && seen[1], "row " + std::to_string(i) + ": expected both tokens in 40 draws");
  }
}

void logProbabilities(Player &p) {
  llmc_sampler_v1 sampler = defaultSampler();
  sampler.logprobs = 1 + 3;
  const Row row = p.play({{p.text(4), 0, {0}}})[0];
  double sum = 0;
  for (float x : row)
    sum += std::exp(double(x) - row[size_t(best(row))]);
  float probabilities[4] = {};
  int32_t ids[4] = {};
  llmc_step_v1 s = p.step({{p.text(4), 0, {0}}}, &sampler);
  s.out_logprobs = probabilities;
  s.out_logprob_ids = ids;
  p.device.step(s);
  expect(ids[0] == best(row) && ids[1] == best(row), "expected the chosen and the likeliest token to be " + std::to_string(best(row)));
  expect(std::fabs(probabilities[0] + std::log(sum)) < 1e-3, "expected the log-probability " + std::to_string(-std::log(sum)) +
                                                                 ", got " + std::to_string(probabilities[0]));
}

void previousSlots(Player &p) {
  const llmc_sampler_v1 greedy = defaultSampler();
  const std::vector<Part> parts = ragged(p, 3);
  p.device.step(p.step(parts, &greedy));
  const Ids chosen = p.outIds();
  std::vector<Part> known = parts, slots = parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    // In reverse, so that slot and row differ.
    const size_t from = parts.size() - 1 - i;
    known[i].first = slots[i].first = parts[i].ids.size();
    known[i].ids = {chosen[from]};
    slots[i].ids = {-1 - int32_t(from)};
  }
  const std::vector<Row> got = p.play(slots), want = p.play(known);
  for (size_t i = 0; i < parts.size(); ++i)
    p.same(got[i], want[i], "token of the step before, sequence " + std::to_string(i));
}

void hiddenRows(Player &p) {
  if (p.m.program.hidden_offset == UINT64_MAX)
    return;
  const std::vector<Part> parts = ragged(p, 8);
  std::vector<float> first(parts.size() * p.m.hidden, NAN), second = first;
  for (std::vector<float> *out : {&first, &second}) {
    llmc_step_v1 s = p.step(parts);
    s.out_hidden = out->data();
    p.device.step(s);
  }
  expect(first == second, "expected equal hidden rows of equal steps, finite");
}

// Logits of every token of a step, not only of the last.
void manyRows(Player &p) {
  const auto count = uint32_t(std::min<uint64_t>(p.length(p.quick ? 20 : 200), p.m.max_logits));
  const Ids ids = p.text(count), blocks = range(0, int32_t(count / LLMC_KV_BLOCK + 1));
  llmc_step_v1 s = p.step({{ids, 0, blocks}});
  const Ids rows = range(0, int32_t(count));
  std::vector<float> logits(uint64_t(count) * p.m.vocab);
  s.num_logits = count;
  s.logits_rows = rows.data();
  s.out_logits = logits.data();
  p.device.step(s);
  for (uint32_t i : {0u, count / 2, count - 1}) {
    const Row got(logits.begin() + ptrdiff_t(uint64_t(i) * p.m.vocab), logits.begin() + ptrdiff_t(uint64_t(i + 1) * p.m.vocab));
    const Ids prefix(ids.begin(), ids.begin() + ptrdiff_t(i) + 1);
    p.close(got, p.play({{prefix, 0, blocks}})[0], "row " + std::to_string(i) + " of " + std::to_string(count));
  }
}

} // namespace

void addOutputs(Checks &checks) {
  checks.push_back({"ids are the lowest of the largest logits", idsAgreeWithLogits});
  checks.push_back({"different samplers in one step", mixedSamplers});
  checks.push_back({"sampling depends on seed and position only", seededSampling});
  checks.push_back({"log-probabilities", logProbabilities});
  checks.push_back({"negative ids are outputs of the step before", previousSlots});
  checks.push_back({"hidden rows", hiddenRows});
  checks.push_back({"a row of logits for every token", manyRows});
}

} // namespace llmc::cts
