//===- RandomSteps.cpp ----------------------------------------------------===//
#include "runtime/cts/kernel_check/RandomSteps.h"
#include "runtime/device/StepPhases.h"

#include <algorithm>
#include <iterator>

namespace llmc::kernel_check {

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

llmc_step_v1 RandomStep::view() {
  kv_ = {table.data(), slots.data(), stride, 0};
  llmc_step_v1 s{};
  s.struct_size = sizeof s;
  s.version = LLMC_ABI_VERSION;
  s.num_tokens = tokens();
  s.num_seqs = sequences();
  s.num_logits = uint32_t(rows.size());
  s.num_kv_groups = 1;
  s.token_ids = ids.data();
  s.positions = positions.data();
  s.seq_starts = starts.data();
  s.kv_lengths = lengths.data();
  s.kv = &kv_;
  s.logits_rows = rows.data();
  s.stop_after_op = -1;
  s.num_generated = generated ? tokens() : 0;
  return s;
}

RandomSteps::RandomSteps(const llmc_module_v1 &m, uint32_t numBlocks, uint32_t maxTokens, uint64_t seed)
    : vocab_(m.vocab), maxSeqs_(m.max_seqs), maxLogits_(m.max_logits), maxContext_(m.max_context), numBlocks_(numBlocks),
      maxTokens_(std::min(maxTokens, m.max_tokens)), random_(seed), phases_(hasPhases(m)), references_(numBlocks) {
  live_.reserve(maxSeqs_ + 1); // pointers into it stay good
  for (uint32_t b = 0; b < numBlocks; ++b)
    free_.push_back(int32_t(b));
}

// Where kernels change their form: one token, some, many.
uint32_t RandomSteps::chooseTokens() {
  static constexpr std::pair<uint32_t, uint32_t> classes[] = {{1, 1}, {2, 8}, {9, 32}, {33, 64}, {65, 128}, {129, 400}, {401, UINT32_MAX}};
  // The largest only now and then: they take the longest to check.
  static constexpr uint32_t shares[] = {10, 20, 20, 15, 15, 15, 5};
  uint32_t at = random_.between(0, 99), which = 0;
  while (at >= shares[which])
    at -= shares[which++];
  if (made_ < std::size(classes)) // every class at least once
    which = made_;
  auto [least, most] = classes[which];
  return std::min(random_.between(least, std::max(least, std::min(most, maxTokens_))), maxTokens_);
}

/// Tokens of each sequence, at least one.
std::vector<uint32_t> RandomSteps::shares(uint32_t tokens) {
  uint32_t count = random_.chance(30) ? maxSeqs_ : random_.between(1, random_.chance(50) ? 4 : maxSeqs_);
  count = std::min({count, tokens, maxSeqs_});
  std::vector<uint32_t> result(count, 1);
  for (uint32_t rest = tokens - count; rest > 0;) {
    const uint32_t part = random_.between(1, std::min(rest, 40u));
    result[random_.between(0, count - 1)] += part;
    rest -= part;
  }
  return result;
}

void RandomSteps::release(size_t index) {
  for (int32_t block : live_[index].blocks)
    if (--references_[size_t(block)] == 0)
      free_.push_back(block);
  live_[index].blocks.clear();
  live_[index].length = 0;
}

/// Gives the sequence blocks for `tokens` more; ends others where there are none. False: the pool is too small.
bool RandomSteps::reserve(Sequence &sequence, uint32_t tokens) {
  const size_t wanted = (sequence.length + tokens + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK;
  while (sequence.blocks.size() < wanted) {
    for (size_t i = 0; free_.empty() && i < live_.size(); ++i)
      if (!live_[i].used && &live_[i] != &sequence)
        release(i);
    if (free_.empty())
      return false;
    std::swap(free_[random_.between(0, uint32_t(free_.size() - 1))], free_.back());
    sequence.blocks.push_back(free_.back());
    references_[size_t(free_.back())] = 1;
    free_.pop_back();
  }
  return true;
}

/// A new sequence, which may share its first blocks with another.
RandomSteps::Sequence *RandomSteps::begin() {
  auto place = std::find_if(live_.begin(), live_.end(), [](const Sequence &s) { return !s.used && s.length == 0; });
  if (place == live_.end()) {
    if (live_.size() < maxSeqs_) {
      live_.emplace_back();
      place = live_.end() - 1;
    } else {
      place = std::find_if(live_.begin(), live_.end(), [](const Sequence &s) { return !s.used; });
      if (place == live_.end())
        return nullptr;
    }
  }
  release(size_t(place - live_.begin()));
  const Sequence &parent = live_[random_.between(0, uint32_t(live_.size() - 1))];
  // Blocks that the parent may still write to are not shared.
  const uint32_t full = parent.length / LLMC_KV_BLOCK;
  if (&parent != &*place && full > 0 && random_.chance(30)) {
    const uint32_t count = random_.between(1, full);
    place->blocks.assign(parent.blocks.begin(), parent.blocks.begin() + count);
    for (int32_t block : place->blocks)
      ++references_[size_t(block)];
    place->length = count * LLMC_KV_BLOCK;
  }
  return &*place;
}

RandomSteps::Sequence *RandomSteps::chooseSequence(uint32_t tokens) {
  if (!live_.empty() && random_.chance(75))
    for (int tries = 0; tries < 4; ++tries) {
      Sequence &s = live_[random_.between(0, uint32_t(live_.size() - 1))];
      if (!s.used && s.length + tokens <= maxContext_)
        return &s;
    }
  return begin();
}

void RandomSteps::append(Sequence &sequence, uint32_t tokens) {
  for (uint32_t i = 0; i < tokens; ++i, ++sequence.length) {
    step_.ids.push_back(int32_t(random_.between(0, vocab_ - 1)));
    step_.positions.push_back(int32_t(sequence.length));
    step_.slots.push_back(sequence.blocks[sequence.length / LLMC_KV_BLOCK] * LLMC_KV_BLOCK +
                          int32_t(sequence.length % LLMC_KV_BLOCK));
  }
  step_.starts.push_back(int32_t(step_.ids.size()));
  step_.lengths.push_back(int32_t(sequence.length));
}

void RandomSteps::chooseRows() {
  const uint32_t most = std::min(maxLogits_, step_.tokens());
  uint32_t wanted = random_.chance(5) ? 0 : random_.chance(30) ? most : random_.between(1, most);
  for (uint32_t t = 0; t < step_.tokens() && wanted > 0; ++t)
    if (random_.between(1, step_.tokens() - t) <= wanted) { // Knuth, selection sampling (vol. 2, algorithm 3.4.2 S)
      step_.rows.push_back(int32_t(t));
      --wanted;
    }
}

// Tokens that are written nowhere: attention then reads what is in their place.
void RandomSteps::dropSlots() {
  if (random_.chance(15))
    for (int32_t &slot : step_.slots)
      if (random_.chance(5))
        slot = -1;
}

void RandomSteps::writeTable(const std::vector<Sequence *> &members) {
  size_t longest = 1;
  for (const Sequence *s : members)
    longest = std::max(longest, s->blocks.size());
  step_.stride = uint32_t(longest) + random_.between(0, 5);
  for (const Sequence *s : members) {
    step_.table.insert(step_.table.end(), s->blocks.begin(), s->blocks.end());
    // Behind a sequence's end any block that exists.
    for (size_t i = s->blocks.size(); i < step_.stride; ++i)
      step_.table.push_back(int32_t(random_.between(0, numBlocks_ - 1)));
  }
}

RandomStep &RandomSteps::next() {
  step_ = {};
  step_.starts.push_back(0);
  members_.clear();
  for (Sequence &s : live_)
    s.used = false;
  for (uint32_t tokens : shares(chooseTokens())) {
    tokens = std::min(tokens, maxContext_);
    Sequence *sequence = chooseSequence(tokens);
    if (!sequence)
      break;
    if (sequence->length + tokens > maxContext_)
      tokens = maxContext_ - sequence->length;
    if (tokens == 0 || !reserve(*sequence, tokens)) {
      if (members_.empty()) // the pool is full of what was: start anew
        for (size_t i = 0; i < live_.size(); ++i)
          release(i);
      continue;
    }
    sequence->used = true;
    append(*sequence, tokens);
    members_.push_back(sequence);
    if (members_.size() < maxSeqs_ && random_.chance(3)) // a sequence that has nothing new
      if (Sequence *idle = chooseSequence(0)) {
        idle->used = true;
        append(*idle, 0);
        members_.push_back(idle);
      }
    if (members_.size() == maxSeqs_)
      break;
  }
  if (members_.empty())
    return next();
  chooseRows();
  dropSlots();
  writeTable(members_);
  step_.generated = phases_ && made_ % 2;
  ++made_;
  return step_;
}

} // namespace llmc::kernel_check
