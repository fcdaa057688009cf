//===- PrometheusText.h - /metrics ------------------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_PROMETHEUSTEXT_H
#define LLMC_RUNTIME_SERVER_PROMETHEUSTEXT_H

#include "runtime/server/Service.h"

namespace llmc {

/// In Prometheus' text format 0.0.4.
std::string prometheusText(const EngineMetrics &engine, const Latencies::Values &latencies, HttpCounters &http);

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_PROMETHEUSTEXT_H
