//===- Reference.cpp - what the references share --------------------------===//
#include "runtime/cts/kernel_check/Reference.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"
#include "runtime/engine/UnpackWeight.h"

#include <algorithm>
#include <string>
#include <thread>

namespace llmc::kernel_check {

const llmc_weight_v1 &Weights::at(uint64_t offset) const {
  const llmc_module_v1 &m = device_.module();
  for (uint32_t i = 0; i < m.num_weights; ++i)
    if (m.weights[i].offset == offset)
      return m.weights[i];
  throw Error("expected a weight at byte " + std::to_string(offset) + " of the weights, got none");
}

std::shared_ptr<const std::vector<float>> Weights::values(const llmc_weight_v1 &weight) {
  auto found = values_.find(weight.offset);
  if (found != values_.end())
    return found->second;
  const uint64_t bytes = weight.rows * weight.cols * sizeof(float);
  if (kept_ + bytes > kMost) {
    values_.clear();
    kept_ = 0;
  }
  auto unpacked = std::make_shared<std::vector<float>>(weight.rows * weight.cols);
  unpackWeight(weight, device_.weights(), unpacked->data());
  kept_ += bytes;
  return values_[weight.offset] = std::move(unpacked);
}

template <typename T> static const T &operand(const std::vector<T> &list, size_t i, const Launch &launch, const char *what) {
  if (i >= list.size())
    throw Error(std::string("launch ") + launch.launch.op + " (" + launch.launch.variants[0].name + "): expected at least " +
                std::to_string(i + 1) + " " + what + ", got " + std::to_string(list.size()));
  return list[i];
}
const Activation &Launch::input(size_t i) const { return operand(inputs, i, *this, "activations"); }
const llmc_weight_v1 &Launch::weight(size_t i) const { return *operand(weightList, i, *this, "weights"); }
const llmc_value_v1 &Launch::result() const { return operand(results, 0, *this, "results"); }

double roundBF16(double x) { return bf16ToF32(f32ToBf16(float(x))); }

void parallelFor(uint64_t count, const std::function<void(uint64_t, uint64_t)> &body) {
  const uint64_t threads = std::min<uint64_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> others;
  for (uint64_t t = 1; t < threads; ++t)
    others.emplace_back([&, t] { body(count * t / threads, count * (t + 1) / threads); });
  if (count)
    body(0, count / threads);
  for (std::thread &thread : others)
    thread.join();
}

double dot(const double *x, const double *y, uint64_t count) {
  double sums[8] = {};
  uint64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int lane = 0; lane < 8; ++lane)
      sums[lane] += x[i + lane] * y[i + lane];
  for (; i < count; ++i)
    sums[0] += x[i] * y[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

Expected expectedOf(const Launch &launch) {
  switch (launch.kernel.op) {
  case Op::Embedding:
    return {embedding(launch), {}};
  case Op::RMSNorm:
    return {rmsNorm(launch), {}};
  case Op::Linear:
    return {linear(launch), {}};
  case Op::Gated:
    return {gatedLinear(launch), {}};
  case Op::RopeTable:
    return {ropeTable(launch), {}};
  case Op::Rope:
    return {rope(launch), {}};
  case Op::KVAppend:
    return kvAppend(launch);
  case Op::RopeAppend:
    return ropeAppend(launch);
  case Op::Attention:
    return {attention(launch), {}};
  case Op::Round:
  case Op::Quantize:
    return {launch.input(0).read(launch.rows), {}};
  case Op::Add:
    return {add(launch), {}};
  case Op::Scale:
    return {scale(launch), {}};
  case Op::SoftCap:
    return {softCap(launch), {}};
  case Op::GatedActivation:
    return {gatedActivation(launch), {}};
  case Op::GatherRows:
    return {gatherRows(launch), {}};
  case Op::Argmax:
    return {argmax(launch), {}};
  }
  return {};
}

} // namespace llmc::kernel_check
