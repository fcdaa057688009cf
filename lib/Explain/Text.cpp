//===- Text.cpp - an explanation for a terminal ---------------------------===//
#include "Format.h"

#include "llmc/Support/Text.h"

using namespace llmc;

std::string llmc::summary(const Explanation &e) {
  const double memory = e.memoryShare(), bytes = e.work.bytes();
  const bool byMemory = memory >= 0.5;
  auto percent = [](double part, double whole) { return whole > 0 ? 100 * part / whole : 0; };
  std::string line = text("bound by %s: %.0f %% of the predicted time", byMemory ? "memory" : "compute", 100 * (byMemory ? memory : 1 - memory));
  if (byMemory)
    line += text(" is in kernels that wait for memory; of the bytes %.0f %% are weights, %.0f %% KV cache, %.0f %% activations",
                 percent(e.work.weightBytes, bytes), percent(e.work.kvBytes, bytes), percent(e.work.activationBytes, bytes));
  else
    line += " is in kernels that wait for arithmetic";
  const double tokens = double(e.shape.sequences * e.shape.tokens);
  line += text("\npredicted: at least %s a step, at most %.4g tokens/s", timeText(e.predicted).c_str(), e.predicted > 0 ? tokens / e.predicted : 0);
  if (e.measured) {
    line += text("\nmeasured (%s): %s a step, %.4g tokens/s, %.0f %% of the bound", e.device.c_str(), timeText(e.stepSeconds).c_str(),
                 e.stepSeconds > 0 ? tokens / e.stepSeconds : 0, percent(e.predicted, e.stepSeconds));
    line += text("; its launches: %s, %.0f %%", timeText(*e.measured).c_str(), percent(e.predicted, *e.measured));
  }
  return line;
}

/// One line of the table; `name`: op and kernel behind the numbers.
static std::string tableLine(const KernelRow &row, double total, const std::string &layers, const std::string &bound,
                             const std::string &name) {
  auto mb = [](double bytes) { return bytes * 1e-6; };
  std::string line = text("%8llu %10.3f %10.3f %10.3f %11.4f %8.2f  %-6s %11.4f", static_cast<unsigned long long>(row.launches),
                          mb(row.work.weightBytes), mb(row.work.activationBytes), mb(row.work.kvBytes), row.work.flops * 1e-9,
                          row.intensity(), bound.c_str(), row.predicted * 1e3);
  if (row.measured)
    line += text(" %11.4f %8.0f%%", *row.measured * 1e3, *row.measured > 0 ? 100 * row.predicted / *row.measured : 0);
  return line + text(" %6.1f%%  %-7s %s\n", total > 0 ? 100 * row.seconds() / total : 0, layers.c_str(), name.c_str());
}

std::string llmc::explainText(const Explanation &e) {
  std::string result = text("%s: %s for %s\non %s: %s\none step: %s\n\n", printable(e.package, 300).c_str(),
                            printable(e.model.empty() ? "a model without a name" : e.model).c_str(), e.isa.c_str(),
                            e.hardware.name.c_str(), e.hardware.description.c_str(), describe(e.shape).c_str());
  result += text("%8s %10s %10s %10s %11s %8s  %-6s %11s", "launches", "weights MB", "activ. MB", "KV MB", "GFLOP", "FLOP/B", "bound",
                 "predict. ms");
  if (e.measured)
    result += text(" %11s %9s", "measured ms", "of bound");
  result += text(" %7s  %-7s %s\n", "share", "layers", "op (kernel)");
  for (const KernelRow &row : e.rows) {
    result += tableLine(row, e.measured.value_or(e.predicted), layersText(row.layers), boundName(row),
                        printable(row.op) + " (" + printable(row.kernel, 120) + ")");
  }
  result += tableLine(e.total(), e.measured.value_or(e.predicted), "", "", "total");
  return result + "\n" + summary(e) + "\n";
}
