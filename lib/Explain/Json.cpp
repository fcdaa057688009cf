//===- Json.cpp - an explanation for programs -----------------------------===//
#include "llmc/Explain/Explanation.h"

#include <nlohmann/json.hpp>

using namespace llmc;
using Json = nlohmann::ordered_json;

static Json workJson(const LaunchWork &work) {
  return {{"flops", work.flops},
          {"bytes", work.bytes()},
          {"weight_bytes", work.weightBytes},
          {"activation_bytes", work.activationBytes},
          {"kv_bytes", work.kvBytes}};
}

static void addTimes(Json &j, double predicted, const std::optional<double> &measured) {
  j["predicted_seconds"] = predicted;
  if (measured) {
    j["measured_seconds"] = *measured;
    j["fraction_of_bound"] = *measured > 0 ? Json(predicted / *measured) : Json();
  }
}

std::string llmc::explainJson(const Explanation &e) {
  Json j;
  j["package"] = e.package;
  j["model"] = e.model;
  j["isa"] = e.isa;
  j["hardware"] = {{"name", e.hardware.name}, {"description", e.hardware.description}, {"bytes_per_second", e.hardware.bandwidth}};
  for (uint32_t arithmetic = LLMC_COST_F32; arithmetic <= LLMC_COST_E4M3; ++arithmetic)
    j["hardware"]["flops_per_second"][arithmeticName(arithmetic)] = e.hardware.peak(arithmetic);
  j["step"] = {{"sequences", e.shape.sequences}, {"tokens", e.shape.tokens}, {"context", e.shape.context}};
  j["kernels"] = Json::array();
  for (const KernelRow &row : e.rows) {
    Json kernel = {{"op", row.op},       {"kernel", row.kernel}, {"layers", row.layers}, {"launches", row.launches},
                   {"units", row.units}, {"row_blocks", row.rowBlocks}, {"arithmetic", arithmeticName(row.arithmetic)}};
    kernel.update(workJson(row.work));
    kernel["intensity"] = row.intensity();
    kernel["bound"] = row.memoryBound() ? "memory" : "compute";
    kernel["memory_seconds"] = row.memorySeconds;
    kernel["compute_seconds"] = row.computeSeconds;
    addTimes(kernel, row.predicted, row.measured);
    j["kernels"].push_back(std::move(kernel));
  }
  j["total"] = workJson(e.work);
  addTimes(j["total"], e.predicted, e.measured);
  j["total"]["memory_bound_share"] = e.memoryShare();
  if (e.measured) {
    j["total"]["step_seconds"] = e.stepSeconds;
    j["measured_on"] = e.device;
  }
  // Names come from model files and may be no UTF-8.
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}
