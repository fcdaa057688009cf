//===- Report.cpp ---------------------------------------------------------===//
#include "runtime/cts/kernel_check/Report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace llmc::kernel_check {

namespace {

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", x);
  return x == 0 ? "0" : text;
}

std::string explain(const Deviation &d, const Bounds &bounds) {
  if (!d.fault.empty())
    return d.fault;
  if (!(d.element <= bounds.element))
    return "element error " + number(d.element) + " over " + number(bounds.element) + ", " + d.worst;
  return "relative error " + number(d.relative) + " over " + number(bounds.relative) + (d.worst.empty() ? "" : ", " + d.worst);
}

} // namespace

void Report::complain(const std::string &what) {
  if (messages_ < kMostMessages)
    std::fprintf(stderr, "FAILED %s\n", what.c_str());
  if (++messages_ == kMostMessages)
    std::fputs("further failures are only counted\n", stderr);
}

void Report::add(const std::string &name, uint32_t step, const std::string &where, const Deviation &deviation, const Bounds &bounds) {
  Kernel &k = kernels_[name];
  ++k.launches;
  if (k.lastStep != step) {
    k.lastStep = step;
    k.lastFailed = false;
    ++k.cases;
  }
  k.bounds = {std::max(k.bounds.relative, bounds.relative), std::max(k.bounds.element, bounds.element)};
  k.worst.relative = std::max(k.worst.relative, deviation.relative);
  k.worst.element = std::max(k.worst.element, deviation.element);
  if (deviation.within(bounds))
    return;
  complain(name + ", " + where + ": " + explain(deviation, bounds));
  if (k.worst.fault.empty())
    k.worst.fault = where + ": " + explain(deviation, bounds);
  if (!k.lastFailed)
    ++k.failed;
  k.lastFailed = true;
}

void Report::fail(const std::string &what) {
  ++otherFailures_;
  complain(what);
}

uint64_t Report::cases() const {
  uint64_t sum = otherFailures_;
  for (const auto &[name, kernel] : kernels_)
    sum += kernel.cases;
  return sum;
}

uint64_t Report::failed() const {
  uint64_t sum = otherFailures_;
  for (const auto &[name, kernel] : kernels_)
    sum += kernel.failed;
  return sum;
}

void Report::print(FILE *to) const {
  size_t width = 6;
  for (const auto &[name, kernel] : kernels_)
    width = std::max(width, name.size());
  std::fprintf(to, "%-*s %6s %8s  %-9s (%-7s  %-9s (%-8s\n", int(width), "kernel", "cases", "launches", "relative", "bound)", "element", "bound)");
  for (const auto &[name, k] : kernels_)
    std::fprintf(to, "%-*s %6llu %8llu  %-9s (%-7s) %-9s (%-7s)%s\n", int(width), name.c_str(), static_cast<unsigned long long>(k.cases),
                 static_cast<unsigned long long>(k.launches), number(k.worst.relative).c_str(), number(k.bounds.relative).c_str(),
                 number(k.worst.element).c_str(), number(k.bounds.element).c_str(),
                 k.failed ? (" " + std::to_string(k.failed) + " FAILED").c_str() : "");
  std::fprintf(to, "%llu passed, %llu failed\n", static_cast<unsigned long long>(cases() - failed()),
               static_cast<unsigned long long>(failed()));
}

std::string Report::json(const std::string &package, const std::string &device, uint64_t seed, uint64_t steps) const {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const auto &[name, k] : kernels_) {
    nlohmann::ordered_json entry = {{"name", name},
                                    {"cases", k.cases},
                                    {"failed", k.failed},
                                    {"launches", k.launches},
                                    {"relative", k.worst.relative},
                                    {"relative_bound", k.bounds.relative},
                                    {"element", k.worst.element},
                                    {"element_bound", k.bounds.element}};
    if (!k.worst.fault.empty())
      entry["first_failure"] = k.worst.fault;
    kernels.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all = {{"package", package}, {"device", device},   {"seed", seed},
                                      {"steps", steps},     {"kernels", kernels}, {"cases", cases()},
                                      {"failed", failed()}};
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"; // infinite figures become null
}

} // namespace llmc::kernel_check
