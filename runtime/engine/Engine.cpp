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

static SchedulerOptions schedulerOptions(const llmc_module_v1 &m, const EngineOptions &o) {
  return within({o.policy, o.batching, o.tokenBudget, o.maxRunning, o.chunk, o.ageing}, m.max_tokens, m.max_seqs, m.max_logits);
}

Engine::Engine(Device &device, const EngineOptions &options)
    : device_(device), context_(device.module().max_context), blocks_(device.numBlocks(), options.prefixCache, options.hash),
      scheduler_(blocks_, schedulerOptions(device.module(), options)), batch_(device) {
  if (options.context)
    context_ = std::min(context_, options.context);
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

std::shared_ptr<Sequence> Engine::prepare(Request request) const {
  check(request);
  auto sequence = std::make_shared<Sequence>();
  Sequence &s = *sequence;
  s.ids = request.prompt;
  s.request = std::move(request);
  const SamplingParams &p = s.request.sampling;
  s.promptLength = s.ids.size();
  s.size = std::min(context_, p.maxTokens > context_ ? context_ : s.promptLength + p.maxTokens);
  s.priority = s.request.priority;
  s.cacheSalt = s.request.cacheSalt;
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
  if (p.maxTokens == 0 || s.promptLength >= context_)
    s.finish = Finish::Length;
  return sequence;
}

std::shared_ptr<Sequence> Engine::start(std::shared_ptr<Sequence> sequence) {
  if (sequence->finish != Finish::None) {
    if (sequence->request.onEnd)
      sequence->request.onEnd(*sequence);
    return sequence;
  }
  active_.emplace(sequence.get(), sequence);
  scheduler_.add(*sequence);
  return sequence;
}

std::shared_ptr<Sequence> Engine::submit(Request request, const std::shared_ptr<Sequence> &earlier) {
  std::shared_ptr<Sequence> sequence = prepare(std::move(request));
  if (earlier && sequence->finish == Finish::None)
    takeOver(*earlier, *sequence);
  return start(std::move(sequence));
}

std::shared_ptr<Sequence> Engine::fork(const Sequence &parent, Request request) {
  request.prompt = parent.request.prompt;
  std::shared_ptr<Sequence> sequence = prepare(std::move(request));
  if (sequence->finish != Finish::None)
    return start(std::move(sequence));
  Sequence &s = *sequence;
  s.computed = s.cached = std::min(parent.computed, s.promptLength - 1);
  s.blocks.assign(parent.blocks.begin(), parent.blocks.begin() + ptrdiff_t((s.computed + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK));
  for (int32_t block : s.blocks)
    blocks_.share(block);
  return start(std::move(sequence));
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

llmc_sampler_v1 Engine::samplerOf(const Sequence &s) const {
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
  zeroSpoiled();
  if (scheduler_.empty())
    return false;
  const StepPlan &plan = scheduler_.plan();
  if (plan.stuck) {
    if (!zeroSpoiled()) // what sequences have kept at their end leaves no room
      end(static_cast<Sequence &>(*plan.stuck), Finish::CacheFull);
    return true;
  }
  int32_t stopAfterOp = -1;
  for (const StepPart &part : plan.parts)
    stopAfterOp = std::max(stopAfterOp, static_cast<Sequence &>(*part.job).request.stopAfterOp);
  execute(plan, stopAfterOp);
  uint32_t row = 0;
  for (const StepPart &part : plan.parts) {
    Sequence &s = static_cast<Sequence &>(*part.job);
    if (stopAfterOp >= 0) // not all of its keys and values are there
      for (int32_t block : s.blocks)
        blocks_.unpublish(block);
    if (part.last && stopAfterOp >= 0)
      end(s, Finish::Length);
    else if (part.last)
      accept(s, row);
    row += part.last;
  }
  return true;
}

void Engine::execute(const StepPlan &plan, int32_t stopAfterOp) {
  batch_.clear();
  for (const StepPart &part : plan.parts) {
    const Sequence &s = static_cast<Sequence &>(*part.job);
    batch_.add(std::span(s.ids).subspan(part.first, part.count), part.first, s.blocks);
    if (part.last) {
      const llmc_sampler_v1 sampler = samplerOf(s);
      batch_.wantLogits(batch_.tokens() - 1, &sampler);
    }
  }
  llmc_step_v1 step = batch_.step();
  step.stop_after_op = stopAfterOp;
  try {
    if (!plan.copies.empty())
      device_.copyBlocks(plan.copies);
    device_.step(step);
  } catch (...) {
    scheduler_.undo();
    throw;
  }
}

void Engine::accept(Sequence &s, uint32_t row) {
  const int32_t id = batch_.outIds()[row];
  if (id == Sampler::kBadLogits) {
    ++badRows_;
    return endSpoiled(s, "the model computed logits that are not finite after token " + std::to_string(s.ids.size() - 1) +
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
  else if (s.ids.size() > uint64_t(blocks_.total()) * LLMC_KV_BLOCK)
    end(s, Finish::CacheFull);
}

void Engine::end(Sequence &s, Finish finish) {
  s.finish = finish;
  scheduler_.remove(s, s.request.keepCache);
  if (!s.request.keepCache)
    s.computed = 0;
  const auto at = active_.find(&s);
  const std::shared_ptr<Sequence> keep = std::move(at->second); // may be the last that holds it
  active_.erase(at);
  if (s.request.onEnd)
    s.request.onEnd(s);
}

void Engine::release(Sequence &s) {
  blocks_.releaseAll(s.blocks);
  s.computed = 0;
}

void Engine::cancel(const std::shared_ptr<Sequence> &sequence) {
  if (sequence->finish == Finish::None)
    end(*sequence, Finish::Cancelled);
}

void Engine::fail(const std::shared_ptr<Sequence> &sequence, const std::string &error) {
  if (sequence->finish != Finish::None)
    return;
  for (int32_t block : sequence->blocks)
    blocks_.unpublish(block);
  sequence->error = error;
  end(*sequence, Finish::Error);
  release(*sequence);
}

void Engine::endSpoiled(Sequence &s, const std::string &error) {
  // A NaN left in a block would reach its next holder through 0 * NaN of masked positions.
  for (int32_t block : s.blocks)
    blocks_.spoil(block);
  release(s);
  s.error = error;
  end(s, Finish::Error);
  zeroSpoiled();
}

bool Engine::zeroSpoiled() {
  const std::vector<int32_t> blocks = blocks_.takeSpoiled();
  if (!blocks.empty())
    device_.zeroBlocks(blocks);
  return !blocks.empty();
}

std::shared_ptr<Sequence> Engine::generate(Request request, const std::shared_ptr<Sequence> &earlier) {
  std::shared_ptr<Sequence> sequence = submit(std::move(request), earlier);
  while (sequence->finish == Finish::None && step())
    ;
  return sequence;
}

} // namespace llmc
