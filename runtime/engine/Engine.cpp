//===- Engine.cpp ---------------------------------------------------------===//
#include "runtime/engine/Engine.h"
#include "llmc/Support/Error.h"

#include <algorithm>

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

std::shared_ptr<Sequence> Engine::submit(Request request) {
  const llmc_module_v1 &m = device_.module();
  if (request.prompt.empty())
    throw Error("prompt: expected at least one token, got none");
  for (int32_t id : request.prompt)
    if (id < 0 || uint32_t(id) >= m.vocab)
      throw Error("prompt: expected token ids below " + std::to_string(m.vocab) + ", got " + std::to_string(id));
  const uint64_t room = std::min<uint64_t>(context_, uint64_t(blocks_.total()) * LLMC_KV_BLOCK);
  if (request.prompt.size() > room)
    throw Error("prompt: expected at most " + std::to_string(room) + " tokens (" +
                (room == context_ ? "the context length" : "the KV cache, see --kv-memory") + "), got " +
                std::to_string(request.prompt.size()));
  auto sequence = std::make_shared<Sequence>();
  sequence->ids = request.prompt;
  sequence->request = std::move(request);
  if (sequence->request.maxTokens == 0 || sequence->ids.size() >= context_)
    sequence->finish = Finish::Length;
  else
    active_.push_back(sequence);
  return sequence;
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
    llmc_sampler_v1 sampler = s.request.sampler;
    sampler.position = s.generated();
    sampler.history = s.ids.data();
    sampler.history_length = uint32_t(s.ids.size());
    part.row = int32_t(batch_.logitsRows());
    batch_.wantLogits(batch_.tokens() - 1, &sampler);
  }
  parts_.push_back(part);
  return true;
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
      accept(*part.sequence, batch_.outIds()[size_t(part.row)]);
  }
  sweep();
  return true;
}

void Engine::accept(Sequence &s, int32_t id) {
  if (id == Sampler::kBadLogits) {
    ++badRows_;
    return fail(s, "the model computed logits that are not finite after token " + std::to_string(s.ids.size() - 1));
  }
  const std::vector<int32_t> &stops = s.request.stopIds;
  if (std::find(stops.begin(), stops.end(), id) != stops.end()) {
    s.stopId = id;
    return end(s, Finish::Stop);
  }
  s.ids.push_back(id);
  if (s.request.onToken && !s.request.onToken(id))
    return end(s, Finish::Stop);
  if (s.generated() >= s.request.maxTokens || s.ids.size() >= context_)
    end(s, Finish::Length);
}

void Engine::end(Sequence &s, Finish finish) {
  s.finish = finish;
  blocks_.releaseAll(s.blocks);
}

void Engine::fail(Sequence &s, const std::string &message) {
  // A NaN left in a block would reach its next holder through 0 * NaN of masked positions.
  device_.zeroBlocks(s.blocks);
  s.error = message;
  end(s, Finish::Error);
}

void Engine::sweep() {
  std::erase_if(active_, [](const std::shared_ptr<Sequence> &s) { return s->finish != Finish::None; });
}

std::shared_ptr<Sequence> Engine::generate(Request request) {
  std::shared_ptr<Sequence> sequence = submit(std::move(request));
  while (sequence->finish == Finish::None && step())
    ;
  return sequence;
}

} // namespace llmc
