//===- KernelName.cpp -----------------------------------------------------===//
#include "runtime/cts/kernel_check/KernelName.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <vector>

namespace llmc::kernel_check {

namespace {

struct Prefix {
  std::string_view text;
  Op op;
};
// A prefix of another comes after it.
const Prefix prefixes[] = {
    {"embedding_", Op::Embedding},
    {"rms_norm_", Op::RMSNorm},
    {"linear_", Op::Linear},
    {"gated_activation_silu_", Op::GatedActivation},
    {"gated_activation_gelu_tanh_", Op::GatedActivation},
    {"gated_gelu_", Op::Gated},
    {"gated_", Op::Gated},
    {"rope_table_", Op::RopeTable},
    {"rope_append_", Op::RopeAppend},
    {"rope_", Op::Rope},
    {"kv_append_", Op::KVAppend},
    {"attention_", Op::Attention},
    {"round_", Op::Round},
    {"quantize_", Op::Quantize},
    {"add_", Op::Add},
    {"scale_", Op::Scale},
    {"soft_", Op::SoftCap},
    {"gather_rows_", Op::GatherRows},
    {"argmax_", Op::Argmax}, {"sample_", Op::Argmax}, // without samplers: greedy
};

const std::pair<std::string_view, Arith> ariths[] = {
    {"bf16_eo32_", Arith::BF16_EO32}, {"q8_g32_", Arith::Q8_G32}, {"q16_g32_", Arith::Q16_G32},
    {"bf16_g32_", Arith::BF16_G32},   {"bf16_", Arith::BF16},       {"f32_", Arith::F32},
    {"e4m3_", Arith::E4M3},
};

[[noreturn]] void unknown(std::string_view name, const std::string &why) {
  throw Error("kernel " + std::string(name) + ": the check has no reference for it (" + why + ")");
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('_', at), text.size());
    result.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

std::optional<int64_t> number(std::string_view text, int base = 10) {
  int64_t value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty())
    return {};
  return value;
}

/// The second number of the word "AxB".
std::optional<int64_t> secondExtent(const std::vector<std::string_view> &words) {
  for (std::string_view word : words)
    if (const size_t x = word.find('x'); x != word.npos && number(word.substr(0, x)))
      if (auto second = number(word.substr(x + 1)))
        return second;
  return {};
}

/// Reads a word of the name that is a constant of the op.
void readConstant(std::string_view word, KernelName &name) {
  name.bias |= word == "bias";
  name.residual |= word == "residual";
  auto read = [&](std::string_view prefix, float &to) { // the bits of an f32, in hexadecimal
    if (word.starts_with(prefix))
      if (auto bits = number(word.substr(prefix.size()), 16))
        to = std::bit_cast<float>(uint32_t(*bits));
  };
  switch (name.op) {
  case Op::Attention:
    name.sinks |= word == "sinks";
    read("scale", name.scale);
    read("cap", name.cap);
    if (word.starts_with("w"))
      if (auto window = number(word.substr(1)))
        name.window = *window;
    break;
  case Op::RMSNorm:
    read("eps", name.eps);
    break;
  case Op::SoftCap:
    read("cap", name.cap);
    break;
  case Op::Embedding:
  case Op::Scale:
    read("x", name.factor);
    break;
  default:
    break;
  }
}

} // namespace

KernelName KernelName::parse(std::string_view name) {
  for (const Prefix &prefix : prefixes) {
    if (!name.starts_with(prefix.text))
      continue;
    const std::string_view rest = name.substr(prefix.text.size());
    KernelName result{prefix.op};
    if (prefix.op == Op::Linear || prefix.op == Op::Gated) {
      const auto *found = ariths;
      while (found != std::end(ariths) && !rest.starts_with(found->first))
        ++found;
      if (found == std::end(ariths))
        unknown(name, "unknown arithmetic");
      result.arith = found->second;
    }
    const std::vector<std::string_view> parts = words(rest);
    if (prefix.op == Op::Rope || prefix.op == Op::KVAppend || prefix.op == Op::RopeAppend || prefix.op == Op::Attention) {
      auto headDim = secondExtent(parts);
      if (!headDim || *headDim < 1)
        unknown(name, "no head dimension in its name");
      result.headDim = *headDim;
    }
    constexpr size_t behindFormat = 3; // heads, KV heads and dimension, format
    result.narrow = prefix.op == Op::Attention && parts.size() > behindFormat &&
                    std::find(parts.begin() + behindFormat, parts.end(), "bf16") != parts.end();
    result.gelu = prefix.text.find("gelu") != prefix.text.npos;
    for (std::string_view part : parts)
      readConstant(part, result);
    return result;
  }
  unknown(name, "unknown op");
}

} // namespace llmc::kernel_check
