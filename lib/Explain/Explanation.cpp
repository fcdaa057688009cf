//===- Explanation.cpp - the roofline of a step ---------------------------===//
#include "llmc/Explain/Explanation.h"

#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace llmc;

namespace {

void checkShape(const llmc_module_v1 &module, const StepShape &shape) {
  if (shape.sequences > std::min(module.max_seqs, module.max_logits))
    throw Error("--batch: expected at most " + std::to_string(std::min(module.max_seqs, module.max_logits)) +
                " sequences, which is what a step of the package takes, got " + std::to_string(shape.sequences));
  if (shape.tokens > module.max_tokens / shape.sequences)
    throw Error("--tokens: expected at most " + std::to_string(module.max_tokens / shape.sequences) + " new tokens for each of " +
                std::to_string(shape.sequences) + " sequences (a step of the package takes " + std::to_string(module.max_tokens) +
                "), got " + std::to_string(shape.tokens));
  if (shape.context < shape.tokens || shape.context > module.max_context)
    throw Error("--context: expected " + std::to_string(shape.tokens) + " (the new tokens) to " + std::to_string(module.max_context) +
                " tokens (the model's context), got " + std::to_string(shape.context));
}

/// The measured launch, which must be the module's.
const Profile::Launch &measuredOf(const ExplainRequest &request, uint32_t index, const llmc_launch_v1 &launch, const std::string &kernel) {
  const std::vector<Profile::Launch> &launches = request.step->launches;
  const std::string where = request.profileFile + ": launches[" + std::to_string(index) + "]: ";
  const std::string hint = "; it was measured with another compilation of the model, measure " + request.package + " again";
  const uint32_t count = programOf(request.module, request.shape).num_launches;
  if (launches.size() != count)
    throw Error(request.profileFile + ": expected " + std::to_string(count) + " launches, as " +
                request.package + " has, got " + std::to_string(launches.size()) + hint);
  const Profile::Launch &measured = launches[index];
  if (measured.op != launch.op || measured.layer != launch.layer)
    throw Error(where + "expected op " + quote(launch.op) + " of layer " + std::to_string(launch.layer) + ", got " +
                quote(measured.op) + " of layer " + std::to_string(measured.layer) + hint);
  if (measured.kernel != kernel)
    throw Error(where + "expected kernel " + quote(kernel) + " for " + quote(launch.op) + ", got " + quote(measured.kernel) + hint);
  return measured;
}

} // namespace

Explanation llmc::explain(const ExplainRequest &request) {
  const llmc_module_v1 &module = request.module;
  checkShape(module, request.shape);
  if (module.num_costs == 0)
    throw Error(request.package + ": expected a package that knows the work of its launches, got one without; compile it again");
  Explanation result{request.package, request.model, module.isa, request.hardware, request.shape, {}, {}, 0, {}, 0, {}};
  std::map<std::tuple<std::string, std::string, uint32_t>, KernelRow> rows;
  KernelRow elsewhere; // launches whose work a later one does
  double mostFlops = 0;
  const llmc_program_v1 &program = programOf(module, request.shape);
  for (uint32_t i = 0; i < program.num_launches; ++i) {
    const llmc_launch_v1 &launch = program.launches[i];
    const LaunchForm form = formOf(launch, request.shape);
    const std::string kernel = form.variant->name ? form.variant->name : "";
    const llmc_cost_v1 none{}, *known = costOf(module, launch), &cost = known ? *known : none;
    const LaunchWork work = workOf(cost, launch, request.shape);
    if (work.flops >= mostFlops)
      elsewhere.arithmetic = cost.arithmetic, mostFlops = work.flops;
    elsewhere.work += work;
    if (request.step)
      elsewhere.measured = elsewhere.measured.value_or(0) + measuredOf(request, i, launch, kernel).seconds;
    if (form.units == 0)
      continue;
    KernelRow &row = rows[{opInLayer(launch.op, launch.layer), kernel, launch.cost}];
    if (launch.layer >= 0)
      row.layers.push_back(launch.layer);
    ++row.launches;
    row.units = form.units;
    row.rowBlocks = form.rowBlocks;
    row.arithmetic = elsewhere.arithmetic;
    row.work += elsewhere.work;
    if (request.step)
      row.measured = row.measured.value_or(0) + *elsewhere.measured;
    elsewhere = {};
    mostFlops = 0;
  }
  for (auto &[key, row] : rows) {
    std::tie(row.op, row.kernel, std::ignore) = key;
    row.memorySeconds = row.work.bytes() / request.hardware.bandwidth;
    row.computeSeconds = row.work.flops / request.hardware.peak(row.arithmetic);
    row.predicted = std::max(row.memorySeconds, row.computeSeconds);
    std::sort(row.layers.begin(), row.layers.end());
    result.work += row.work;
    result.predicted += row.predicted;
    if (row.measured)
      result.measured = result.measured.value_or(0) + *row.measured;
    result.rows.push_back(std::move(row));
  }
  std::stable_sort(result.rows.begin(), result.rows.end(), [](const KernelRow &a, const KernelRow &b) { return a.seconds() > b.seconds(); });
  if (request.step)
    result.stepSeconds = request.step->seconds;
  if (request.profile)
    result.device = request.profile->device == "cpu" ? request.profile->isa + ", " + std::to_string(request.profile->threads) + " threads"
                                                     : request.profile->device;
  return result;
}

double Explanation::memoryShare() const {
  double seconds = 0;
  for (const KernelRow &row : rows)
    seconds += row.memoryBound() ? row.predicted : 0;
  return predicted > 0 ? seconds / predicted : 0;
}

KernelRow Explanation::total() const {
  KernelRow all;
  all.work = work;
  all.predicted = predicted;
  all.measured = measured;
  for (const KernelRow &row : rows)
    all.launches += row.launches;
  return all;
}

std::string llmc::layersText(const std::vector<int32_t> &layers) {
  std::string text;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1)
      ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(layers[i]) + (last > i ? "-" + std::to_string(layers[last]) : "");
    i = last + 1;
  }
  return text;
}
