//===- Engine.cpp ---------------------------------------------------------===//
#include "runtime/engine/Engine.h"
#include "llmc/Support/Error.h"
#include "runtime/device/StepPhases.h"
#include "runtime/engine/Seconds.h"
#include "runtime/grammar/GrammarBuilder.h"

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

// Blocks of the device's pool that are used.
static uint32_t poolOf(const Device &device, const EngineOptions &o) {
  return uint32_t(std::min<uint64_t>(device.numBlocks(), o.kvTokens ? blocksOf(o.kvTokens) : UINT64_MAX));
}

static SchedulerOptions schedulerOptions(const Device &device, const EngineOptions &o) {
  const llmc_module_v1 &m = device.module();
  const uint64_t context = std::min<uint64_t>(m.max_context, o.context ? o.context : UINT64_MAX);
  const uint64_t reserve = o.kv == KVLayout::Contiguous ? std::min<uint64_t>(blocksOf(context), poolOf(device, o)) : 0;
  return within({o.policy, o.batching, o.tokenBudget, o.maxRunning, o.chunk, o.ageing, reserve, device.numSlots(), o.swapCost, hasPhases(m)}, m.max_tokens, m.max_seqs, m.max_logits);
}

Engine::Engine(Device &device, const EngineOptions &options)
    : device_(device), context_(device.module().max_context), blocks_(poolOf(device, options), options.prefixCache, options.hash),
      scheduler_(blocks_, schedulerOptions(device, options)),
      overlap_(options.overlap == Overlap::On || (options.overlap == Overlap::Auto && device.asynchronous())),
      contiguous_(options.kv == KVLayout::Contiguous), flights_{Flight(device), Flight(device)} {
  if (options.prefixCache && options.kv == KVLayout::Contiguous)
    throw Error("prefix cache: expected none with a contiguous cache");
  if (options.context)
    context_ = std::min(context_, options.context);
}

Engine::~Engine() {
  try {
    for (; flying_; --flying_)
      device_.wait();
  } catch (const std::exception &) { // a lost device: nothing is left to wait for
  }
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
  if (s.request.constraint) {
    s.matcher.emplace(s.request.constraint);
    s.tokenMask.resize((device_.module().vocab + 31) / 32);
  }
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
  if (sequence->finish != Finish::None || contiguous_) // what lies in one piece is nobody else's
    return start(std::move(sequence));
  Sequence &s = *sequence;
  s.computed = s.cached = std::min<uint64_t>({parent.computed, s.promptLength - 1, parent.blocks.size() * LLMC_KV_BLOCK});
  s.blocks.assign(parent.blocks.begin(), parent.blocks.begin() + ptrdiff_t(blocksOf(s.computed)));
  for (int32_t block : s.blocks)
    blocks_.share(block);
  return start(std::move(sequence));
}

void Engine::takeOver(Sequence &earlier, Sequence &s) {
  // Where prompts have another arithmetic, what was generated is read anew, as from anybody else.
  const uint64_t shared = hasPhases(device_.module()) ? earlier.promptLength : UINT64_MAX;
  const uint64_t most = std::min<uint64_t>({earlier.computed, s.ids.size() - 1, shared});
  uint64_t common = 0;
  while (common < most && earlier.ids[common] == s.ids[common])
    ++common;
  std::vector<int32_t> rest = std::exchange(earlier.blocks, {});
  const size_t kept = std::min<size_t>(rest.size(), blocksOf(common));
  s.blocks.assign(rest.begin(), rest.begin() + ptrdiff_t(kept));
  rest.erase(rest.begin(), rest.begin() + ptrdiff_t(kept));
  blocks_.releaseAll(rest);
  earlier.computed = 0;
  s.computed = s.cached = common;
}

llmc_sampler_v1 Engine::samplerOf(const Sequence &s) const {
  llmc_sampler_v1 sampler = s.sampler;
  sampler.position = s.generated() + s.pending;
  sampler.history = s.ids.data();
  sampler.history_length = uint32_t(s.ids.size());
  sampler.prompt_length = uint32_t(s.request.prompt.size());
  sampler.token_mask = s.matcher ? s.tokenMask.data() : nullptr;
  sampler.bias_ids = s.biasIds.data();
  sampler.bias_values = s.biasValues.data();
  const bool mayStop = s.generated() + s.pending >= s.request.sampling.minTokens;
  sampler.bias_count = uint32_t(s.biasIds.size() - (mayStop ? s.stopIds.size() : 0));
  return sampler;
}

bool Engine::step() {
  if (!flying_) {
    if (scheduler_.empty())
      return false;
    if (!depart())
      return true;
  }
  if (overlap_ && flights_[first_].known)
    depart();
  land();
  if (scheduler_.empty()) // what is still under way was for nobody
    while (flying_)
      land();
  zeroSpoiled();
  return true;
}

/// Plans a step and starts it. False: there is nothing to do but wait for the one under way, or somebody has been ended to make room.
bool Engine::depart() {
  if (scheduler_.empty())
    return false;
  const StepPlan &plan = scheduler_.plan();
  if (plan.parts.empty()) {
    if (!flying_ && plan.stuck && !zeroSpoiled()) // what sequences have kept at their end leaves no room
      end(static_cast<Sequence &>(*plan.stuck), Finish::CacheFull);
    return false;
  }
  Flight &flight = flights_[(first_ + flying_) % 2];
  fill(flight, plan);
  try {
    start(flight, plan);
  } catch (...) {
    scheduler_.undo();
    throw;
  }
  ++flying_;
  expect(flight);
  return true;
}

void Engine::start(Flight &flight, const StepPlan &plan) {
  if (!plan.swapOuts.empty())
    device_.swapOut(plan.swapOuts);
  if (!plan.copies.empty())
    device_.copyBlocks(plan.copies);
  if (!plan.swapIns.empty())
    device_.swapIn(plan.swapIns);
  const bool beside = device_.asynchronous(); // masks are wanted when the step's logits are there
  if (!beside)
    fillMasks(flight);
  const auto start = std::chrono::steady_clock::now();
  device_.enqueue(flight.step);
  startSeconds_ += secondsSince(start);
  if (beside && !flying_)
    fillMasks(flight);
}

/// While a step is under way whose tokens come first, masks of the next one are not known: land() fills them.
void Engine::fillMasks(Flight &flight) {
  for (Sequence *s : flight.constrained) {
    if (s->finish != Finish::None)
      continue; // ended by the step before
    try {
      if (!s->matcher->fillMask(s->tokenMask, s->stopIds))
        s->error = "no token of the vocabulary can follow here under the request's constraint";
    } catch (const GrammarError &error) {
      s->error = std::string("constraint: ") + error.what();
    }
  }
  if (!flight.constrained.empty())
    device_.masksFilled();
}

void Engine::fill(Flight &flight, const StepPlan &plan) {
  Batch &batch = flight.batch;
  batch.clear();
  flight.parts = plan.parts;
  const bool phases = hasPhases(device_.module());
  if (phases) // prompts first
    std::stable_partition(flight.parts.begin(), flight.parts.end(), [](const StepPart &part) { return !part.generated(); });
  flight.ended.clear();
  flight.constrained.clear();
  flight.known = true;
  int32_t stopAfterOp = -1;
  uint32_t generated = 0;
  for (const StepPart &part : flight.parts) {
    generated += phases && part.generated() ? part.count : 0;
    Sequence &s = static_cast<Sequence &>(*part.job);
    const uint64_t there = std::min<uint64_t>(part.count, s.ids.size() - part.first);
    batch.add(std::span(s.ids).subspan(part.first, there), part.first, s.blocks,
              there < part.count ? std::optional(s.row) : std::nullopt);
    stopAfterOp = std::max(stopAfterOp, s.request.stopAfterOp);
    if (part.last) {
      const llmc_sampler_v1 sampler = samplerOf(s);
      batch.wantLogits(batch.tokens() - 1, &sampler);
      if (s.matcher)
        flight.constrained.push_back(&s);
      // Penalties look at all tokens before, and so do masks where they must be there when the step starts.
      flight.known &= device_.choosesOnDevice(sampler) && !(device_.asynchronous() ? shiftsLogits(sampler) : changesLogits(sampler));
    }
  }
  batch.setGenerated(generated);
  flight.known &= stopAfterOp < 0;
  flight.step = batch.step();
  flight.step.stop_after_op = stopAfterOp;
}

/// The started step gives its sequences a token each.
void Engine::expect(Flight &flight) {
  uint32_t row = 0;
  for (const StepPart &part : flight.parts) {
    if (!part.last)
      continue;
    Sequence &s = static_cast<Sequence &>(*part.job);
    s.row = row++;
    ++s.pending;
    s.closing = s.generated() + s.pending >= s.request.sampling.maxTokens || s.length() >= context_ ||
                s.length() > uint64_t(blocks_.total()) * LLMC_KV_BLOCK;
  }
}

/// Waits for the step that was started first and hands its tokens on.
void Engine::land() {
  Flight &flight = flights_[first_];
  try {
    const auto start = std::chrono::steady_clock::now();
    device_.wait();
    waitSeconds_ += secondsSince(start);
  } catch (...) {
    rollBack();
    throw;
  }
  first_ = (first_ + 1) % 2;
  --flying_;
  const int32_t stopAfterOp = flight.step.stop_after_op;
  uint32_t row = 0;
  for (const StepPart &part : flight.parts) {
    Sequence &s = static_cast<Sequence &>(*part.job);
    const uint32_t own = row;
    row += part.last;
    if (s.finish != Finish::None)
      continue;
    s.pending -= part.last;
    if (stopAfterOp >= 0) // not all of its keys and values are there
      for (int32_t block : s.blocks)
        blocks_.unpublish(block);
    if (part.last && stopAfterOp >= 0) {
      s.computed = 0;
      end(s, Finish::Length);
    } else if (part.last) {
      accept(flight, s, own);
    }
  }
  if (flying_ && device_.asynchronous())
    fillMasks(flights_[first_]);
}

/// The device has failed in a step: nothing under way counts.
void Engine::rollBack() {
  for (; flying_; --flying_) {
    const Flight &flight = flights_[(first_ + flying_ - 1) % 2];
    scheduler_.undo(flight.parts);
    for (const StepPart &part : flight.parts)
      if (part.last) {
        part.job->pending -= 1;
        part.job->closing = false;
      }
  }
}

void Engine::accept(Flight &flight, Sequence &s, uint32_t row) {
  const int32_t id = flight.batch.outIds()[row];
  if (!s.error.empty()) // there was no mask
    return end(s, Finish::Error);
  if (id == Sampler::kBadLogits) {
    ++badRows_;
    return endSpoiled(s, "the model computed logits that are not finite after token " + std::to_string(s.ids.size() - 1) +
                       (s.biasIds.empty() && !s.matcher ? "" : ", or every token is banned"));
  }
  if (std::find(s.stopIds.begin(), s.stopIds.end(), id) != s.stopIds.end()) {
    s.stopId = id;
    return end(s, Finish::Stop);
  }
  s.ids.push_back(id);
  if (s.matcher && !follow(s, id))
    return end(s, Finish::Error);
  if (s.request.onToken) {
    const std::vector<TokenProbability> probabilities = flight.batch.probabilities(row);
    if (!s.request.onToken({id, probabilities}))
      return end(s, Finish::Stop);
  }
  if (s.matcher && s.matcher->mustEnd())
    end(s, Finish::Stop);
  else if (s.generated() >= s.request.sampling.maxTokens || s.ids.size() >= context_)
    end(s, Finish::Length);
  else if (s.ids.size() > uint64_t(blocks_.total()) * LLMC_KV_BLOCK)
    end(s, Finish::CacheFull);
}

/// The constraint goes on behind the token that was chosen. False, with an error, if it does not.
bool Engine::follow(Sequence &s, int32_t id) {
  try {
    if (!s.matcher->accept(id))
      s.error = "expected a token that the request's constraint allows, got " + std::to_string(id);
  } catch (const GrammarError &error) {
    s.error = std::string("constraint: ") + error.what();
  }
  return s.error.empty();
}

void Engine::end(Sequence &s, Finish finish) {
  s.finish = finish;
  s.pending = 0;
  s.computed = std::min<uint64_t>(s.computed, s.ids.size()); // not what was started behind its end
  scheduler_.remove(s, s.request.keepCache);
  if (!s.request.keepCache || s.blocks.empty())
    s.computed = 0;
  const auto at = active_.find(&s);
  const std::shared_ptr<Sequence> keep = std::move(at->second); // may be the last that holds it
  active_.erase(at);
  if (flying_)
    flights_[(first_ + flying_ - 1) % 2].ended.push_back(keep);
  if (s.request.onEnd)
    s.request.onEnd(s);
}

void Engine::release(Sequence &s) {
  blocks_.releaseAll(s.blocks);
  s.computed = 0;
}

void Engine::cancel(const std::shared_ptr<Sequence> &sequence) {
  if (sequence->finish != Finish::None)
    return;
  end(*sequence, Finish::Cancelled);
  zeroSpoiled();
}

void Engine::fail(const std::shared_ptr<Sequence> &sequence, const std::string &error) {
  if (sequence->finish != Finish::None)
    return;
  for (int32_t block : sequence->blocks)
    blocks_.unpublish(block);
  sequence->computed = 0;
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
