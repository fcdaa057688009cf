//===- Engine.cpp ---------------------------------------------------------===//
#include "runtime/engine/Engine.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace llmc {

const char *toString(Finish finish) {
  switch (finish) {
  case Finish::None:
    return "none";
  case Finish::Stop:
    return "stop";
  case Finish::Length:
    return "length";
  case Finish::CacheFull:
    return "cache_full";
  case Finish::Cancelled:
    return "cancelled";
  case Finish::Error:
    return "error";
  }
  return "?";
}

Engine::Engine(Device &device, uint32_t chunk, uint64_t context)
    : device_(device), chunk_(device.module().max_tokens), context_(device.module().max_context),
      blocks_(device.numBlocks()), batch_(device) {
  if (chunk)
    chunk_ = std::min(chunk_, chunk);
  if (context)
    context_ = std::min(context_, context);
}

uint64_t Engine::room() const { return std::min<uint64_t>(context_, uint64_t(blocks_.total()) * LLMC_KV_BLOCK); }

void Engine::check(const Request &request) const {
  const uint32_t vocab = device_.module().vocab;
  const std::vector<int32_t> &prompt = request.prompt;
  if (prompt.empty())
    throw Error("prompt: expected at least one token, got none");
  for (int32_t id : prompt)
    if (id < 0 || uint32_t(id) >= vocab)
      throw Error("prompt: expected token ids below " + std::to_string(vocab) + ", got " + std::to_string(id));
  if (auto bad = llmc::check(request.sampling, vocab))
    throw Error(bad->field + ": expected " + bad->expected + ", got " + bad->got);
  if (prompt.size() > room())
    throw Error("prompt: expected at most " + std::to_string(room()) + " tokens (" +
                (room() == context_ ? "the context length" : "the KV cache, see --kv-memory") + "), got " +
                std::to_string(prompt.size()));
}

std::shared_ptr<Sequence> Engine::submit(Request request, const std::shared_ptr<Sequence> &earlier) {
  check(request);
  auto sequence = std::make_shared<Sequence>();
  Sequence &s = *sequence;
  s.ids = request.prompt;
  s.request = std::move(request);
  const SamplingParams &p = s.request.sampling;
  if (p.maxTokens == 0 || s.ids.size() >= context_) {
    s.finish = Finish::Length;
    return sequence;
  }
  s.sampler = llmc::samplerOf(p);
  s.stopIds.assign(p.stopIds.begin(), p.stopIds.end());
  if (!p.ignoreEos)
    s.stopIds.insert(s.stopIds.end(), s.request.eosIds.begin(), s.request.eosIds.end());
  for (auto [id, value] : p.logitBias) {
    s.biasIds.push_back(int32_t(id));
    s.biasValues.push_back(float(value));
  }
  s.biasIds.insert(s.biasIds.end(), s.stopIds.begin(), s.stopIds.end());
  s.biasValues.resize(s.biasIds.size(), -std::numeric_limits<float>::infinity());
  if (earlier)
    takeOver(*earlier, s);
  active_.push_back(sequence);
  return sequence;
}

void Engine::takeOver(Sequence &earlier, Sequence &s) {
  const uint64_t most = std::min<uint64_t>(earlier.computed, s.ids.size() - 1);
  uint64_t common = 0;
  while (common < most && earlier.ids[common] == s.ids[common])
    ++common;
  std::vector<int32_t> rest = std::exchange(earlier.blocks, {});
  const size_t kept = std::min<size_t>(rest.size(), (common + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK);
  s.blocks.assign(rest.begin(), rest.begin() + ptrdiff_t(kept));
  rest.erase(rest.begin(), rest.begin() + ptrdiff_t(kept));
  blocks_.releaseAll(rest);
  earlier.computed = 0;
  s.computed = s.cached = common;
}

bool Engine::reserve(Sequence &s, uint64_t tokens) {
  const uint64_t needed = (tokens + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK;
  return needed <= s.blocks.size() || blocks_.take(uint32_t(needed - s.blocks.size()), s.blocks);
}

bool Engine::schedule(Sequence &s, uint32_t room) {
  const llmc_module_v1 &m = device_.module();
  if (room == 0 || batch_.sequences() == m.max_seqs || batch_.logitsRows() == m.max_logits)
    return false;
  const auto count = uint32_t(std::min<uint64_t>({room, chunk_, s.ids.size() - s.computed}));
  if (!reserve(s, s.computed + count))
    return false;
  batch_.add(std::span(s.ids).subspan(s.computed, count), s.computed, s.blocks);
  Part part{&s, count, -1};
  if (s.computed + count == s.ids.size()) {
    const llmc_sampler_v1 sampler = samplerOf(s);
    part.row = int32_t(batch_.logitsRows());
    batch_.wantLogits(batch_.tokens() - 1, &sampler);
  }
  parts_.push_back(part);
  return true;
}

llmc_sampler_v1 Engine::samplerOf(Sequence &s) const {
  llmc_sampler_v1 sampler = s.sampler;
  sampler.position = s.generated();
  sampler.history = s.ids.data();
  sampler.history_length = uint32_t(s.ids.size());
  sampler.prompt_length = uint32_t(s.request.prompt.size());
  sampler.bias_ids = s.biasIds.data();
  sampler.bias_values = s.biasValues.data();
  const bool mayStop = s.generated() >= s.request.sampling.minTokens;
  sampler.bias_count = uint32_t(s.biasIds.size() - (mayStop ? s.stopIds.size() : 0));
  return sampler;
}

bool Engine::step() {
  if (active_.empty())
    return false;
  batch_.clear();
  parts_.clear();
  int32_t stopAfter = -1;
  // Sequences that generate go first, so that a long prompt delays nobody by more than a chunk.
  for (bool generating : {true, false})
    for (const std::shared_ptr<Sequence> &s : active_)
      if ((s->ids.size() - s->computed == 1 && s->generated() > 0) == generating) {
        schedule(*s, device_.module().max_tokens - batch_.tokens());
        stopAfter = std::max(stopAfter, s->request.stopAfterOp);
      }
  if (parts_.empty()) { // the cache is full: the youngest gives its blocks to the others
    end(*active_.back(), Finish::CacheFull);
    sweep();
    return true;
  }
  llmc_step_v1 step = batch_.step();
  step.stop_after_op = stopAfter;
  device_.step(step);
  for (const Part &part : parts_) {
    part.sequence->computed += part.count;
    if (part.row >= 0 && stopAfter >= 0)
      end(*part.sequence, Finish::Length);
    else if (part.row >= 0)
      accept(*part.sequence, uint32_t(part.row));
  }
  sweep();
  return true;
}

void Engine::accept(Sequence &s, uint32_t row) {
  const int32_t id = batch_.outIds()[row];
  if (id == Sampler::kBadLogits) {
    ++badRows_;
    return fail(s, "the model computed logits that are not finite after token " + std::to_string(s.ids.size() - 1) +
                       (s.biasIds.empty() ? "" : ", or every token is banned"));
  }
  if (std::find(s.stopIds.begin(), s.stopIds.end(), id) != s.stopIds.end()) {
    s.stopId = id;
    return end(s, Finish::Stop);
  }
  s.ids.push_back(id);
  if (s.request.onToken) {
    const std::vector<TokenProbability> probabilities = batch_.probabilities(row);
    if (!s.request.onToken({id, probabilities}))
      return end(s, Finish::Stop);
  }
  if (s.generated() >= s.request.sampling.maxTokens || s.ids.size() >= context_)
    end(s, Finish::Length);
}

void Engine::end(Sequence &s, Finish finish) {
  s.finish = finish;
  if (!s.request.keepCache)
    release(s);
}

void Engine::release(Sequence &s) {
  blocks_.releaseAll(s.blocks);
  s.computed = 0;
}

void Engine::cancel(const std::shared_ptr<Sequence> &sequence) {
  if (sequence->finish != Finish::None)
    return;
  end(*sequence, Finish::Cancelled);
  sweep();
}

void Engine::fail(Sequence &s, const std::string &message) {
  // A NaN left in a block would reach its next holder through 0 * NaN of masked positions.
  device_.zeroBlocks(s.blocks);
  s.error = message;
  end(s, Finish::Error);
  release(s);
}

void Engine::sweep() {
  std::erase_if(active_, [](const std::shared_ptr<Sequence> &s) { return s->finish != Finish::None; });
}

std::shared_ptr<Sequence> Engine::generate(Request request, const std::shared_ptr<Sequence> &earlier) {
  std::shared_ptr<Sequence> sequence = submit(std::move(request), earlier);
  while (sequence->finish == Finish::None && step())
    ;
  return sequence;
}

} // namespace llmc
