//===- Constraint.cpp -----------------------------------------------------===//
#include "runtime/grammar/Constraint.h"

#include <algorithm>

namespace llmc {

namespace {
constexpr size_t kMachineBytes = 256 << 10; // of an answer's; over that it forgets all but where it is
}

Constraint::Constraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const GrammarTokens> tokens)
    : grammar_(std::move(grammar)), tokens_(std::move(tokens)), cache_(*grammar_, *tokens_) {}

Matcher::Matcher(std::shared_ptr<Constraint> constraint)
    : constraint_(std::move(constraint)), machine_(constraint_->grammar()), set_(machine_.start()) {}

bool Matcher::fillMask(std::span<uint32_t> mask, std::span<const int32_t> endIds) {
  if (machine_.bytes() > kMachineBytes)
    set_ = machine_.keepOnly(set_);
  std::ranges::fill(mask, 0u);
  constraint_->cache_.add(machine_, set_, first_, mask);
  for (int32_t id : endIds)
    if (const uint32_t bit = 1u << (id % 32); id >= 0 && size_t(id) / 32 < mask.size())
      mayEnd() ? mask[size_t(id) / 32] |= bit : mask[size_t(id) / 32] &= ~bit;
  return std::ranges::any_of(mask, [](uint32_t word) { return word != 0; });
}

bool Matcher::accept(int32_t id) {
  const std::string_view bytes = constraint_->tokens().bytes(id, first_);
  uint32_t set = set_;
  machine_.startWork();
  for (char byte : bytes)
    set = machine_.step(set, uint8_t(byte));
  if (bytes.empty() || set == Machine::kDead)
    return false;
  set_ = set;
  first_ = false;
  return true;
}

} // namespace llmc
