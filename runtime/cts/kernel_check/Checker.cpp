//===- Checker.cpp --------------------------------------------------------===//
//
// The arena is copied launch by launch, results only: what a launch reads is then what earlier launches wrote, whatever else
// has happened to the device's arena. A kernel that writes over another's result is found out by whoever reads that next.
//
//===----------------------------------------------------------------------===//
#include "runtime/cts/kernel_check/Checker.h"
#include "llmc/Support/Error.h"
#include "runtime/device/StepPhases.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llmc::kernel_check {

Checker::Checker(Device &device, Report &report)
    : device_(device), report_(report), weights_(device), cache_(device), arena_(arenaBytes(device.module())) {
  device_.setObserver([this](const LaunchView &view) { see(view); });
}

void Checker::run(RandomStep &step) {
  step_ = &step;
  values_.clear();
  device_.step(step.view());
  comparePool();
  ++stepNumber_;
}

static uint32_t rowsOf(const llmc_value_v1 &value, const LaunchView &view) {
  return value.rows == LLMC_ROWS_LOGITS ? view.logitsRows : value.rows == LLMC_ROWS_SEQS ? view.sequences : view.tokens;
}

// Arguments: inputs, weights, step fields, results, memory for the launch alone (rt.dispatch).
Launch Checker::resolve(const LaunchView &view) const {
  const llmc_launch_v1 &launch = view.launch;
  Launch l{KernelName::parse(view.variant.name), launch, *step_, 0, {}, {}, {launch.values, launch.values + launch.num_values},
           std::string(device_.module().target) == "cuda", const_cast<Weights &>(weights_), cache_, 0};
  size_t before = launch.num_args; // the results
  if (!l.results.empty()) {
    auto isResult = [&](const llmc_arg_v1 &arg) { return arg.kind == LLMC_ARG_ARENA && arg.value == l.results[0].offset; };
    before = size_t(std::find_if(launch.args, launch.args + launch.num_args, isResult) - launch.args);
    if (before == launch.num_args)
      throw Error(std::string("launch ") + launch.op + ": its result is none of its arguments");
  }
  for (size_t a = 0; a < before; ++a) {
    const llmc_arg_v1 &arg = launch.args[a];
    if (arg.kind == LLMC_ARG_KV)
      l.layerOffset = arg.value;
    if (arg.kind == LLMC_ARG_WEIGHT)
      l.weightList.push_back(&weights_.at(arg.value));
    if (arg.kind != LLMC_ARG_ARENA)
      continue;
    if (!l.inputs.empty() && l.inputs.back().hasScales() && l.inputs.back().value.scales_offset == arg.value)
      continue;
    auto value = values_.find(arg.value);
    if (value == values_.end())
      throw Error(std::string("launch ") + launch.op + ": no earlier launch has written its argument " + std::to_string(a));
    l.inputs.push_back({value->second, arena_.data()});
  }
  l.rows = l.results.empty() ? view.tokens : rowsOf(l.results[0], view);
  return l;
}

void Checker::see(const LaunchView &view) {
  const Launch launch = resolve(view);
  if (launch.rows > 0) {
    const Expected expected = expectedOf(launch);
    Deviation deviation;
    const uint32_t element = launch.results.empty() ? LLMC_F32 : launch.results[0].element;
    const uint64_t k = launch.weightList.empty() ? 0 : launch.weightList[0]->cols;
    const Bounds bounds = boundsOf(launch.kernel, launch.gpu, k, element);
    if (!launch.results.empty()) // what is roughest of a group may have its largest element
      deviation = compare({launch.results[0], view.arena}, expected.result, std::max(1e-4, bounds.element));
    compareCache(launch, expected.cache, deviation);
    report_.add(view.variant.name, stepNumber_,
                "step " + std::to_string(stepNumber_) + " (" + std::to_string(view.tokens) + " tokens, " +
                    std::to_string(view.sequences) + " sequences), launch " + view.launch.op,
                deviation, bounds);
  }
  keepResults(view);
}

// What was to be written is there, and nothing else of those blocks has changed.
void Checker::compareCache(const Launch &launch, const std::vector<CacheElement> &elements, Deviation &deviation) {
  const KVLayout &layout = cache_.layout();
  const bool rounds = layout.group().element != LLMC_F32;
  std::map<int32_t, std::vector<const CacheElement *>> byBlock;
  for (const CacheElement &element : elements)
    byBlock[element.block].push_back(&element);
  auto fault = [&](int32_t block, uint64_t offset, const std::string &what) {
    if (deviation.fault.empty())
      deviation.fault = "KV block " + std::to_string(block) + ", byte " + std::to_string(offset) + ": " + what;
  };
  for (const auto &[block, writes] : byBlock) {
    const std::byte *actual = cache_.actual(block);
    std::byte *mirror = cache_.block(block);
    for (const CacheElement *write : writes) {
      const double got = layout.load(actual + write->offset);
      layout.store(float(write->value), mirror + write->offset);
      const double rounded = layout.load(mirror + write->offset);
      const double allowed = write->slack == 0 ? 0 : write->slack + (rounds ? halfStepBF16(write->value) : 0);
      if (!(std::fabs(got - (write->slack == 0 ? rounded : write->value)) <= allowed))
        fault(block, write->offset, "expected " + std::to_string(write->value) + ", got " + std::to_string(got));
      std::memcpy(mirror + write->offset, actual + write->offset, layout.elementBytes());
    }
    for (uint64_t i = 0; i < cache_.blockBytes(); ++i)
      if (mirror[i] != actual[i]) {
        fault(block, i, "changed, but is not of this step and layer");
        break;
      }
    std::memcpy(mirror, actual, cache_.blockBytes());
  }
}

// Blocks that no launch had to write to.
void Checker::comparePool() {
  for (uint32_t b = 0; b < cache_.numBlocks(); ++b) {
    const std::byte *actual = cache_.actual(int32_t(b));
    if (std::memcmp(actual, cache_.block(int32_t(b)), cache_.blockBytes()) == 0)
      continue;
    report_.fail("step " + std::to_string(stepNumber_) + ": KV block " + std::to_string(b) + " has changed, but no launch had to write to it");
    std::memcpy(cache_.block(int32_t(b)), actual, cache_.blockBytes());
  }
}

void Checker::keepResults(const LaunchView &view) {
  for (uint32_t v = 0; v < view.launch.num_values; ++v) {
    const Activation result{view.launch.values[v], view.arena};
    const uint64_t rows = rowsOf(result.value, view);
    auto copy = [&](uint64_t offset, uint64_t bytes) { std::memcpy(arena_.data() + offset, view.arena + offset, bytes); };
    copy(result.value.offset, rows * result.rowBytes());
    if (result.hasScales())
      copy(result.value.scales_offset, rows * result.scaleBytes());
    values_[result.value.offset] = result.value;
  }
}

} // namespace llmc::kernel_check
