//===- Roofline.cpp - the picture of an explanation -----------------------===//
//
// Logarithmic axes: FLOP/byte, FLOP/s. The roof of an arithmetic is min(bandwidth * intensity, peak). A point is a kernel,
// its area the share of the time; with a profile at the speed that was measured, with a line up to the roof, else on the roof.
//
//===----------------------------------------------------------------------===//
#include "Format.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace llmc;

namespace {

constexpr double kLeft = 86, kRight = 20, kTop = 20, kBottom = 48, kWidth = 960, kHeight = 480;

/// A logarithmic axis from `low` to `high` on the pixels from `from` to `to`.
struct Axis {
  double low, high, from, to;
  double operator()(double value) const {
    return from + (to - from) * (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  }
};

class Picture {
public:
  explicit Picture(const Explanation &explanation) : e(explanation) {
    for (const KernelRow &row : e.rows)
      if (row.work.flops > 0 && row.work.bytes() > 0 && row.seconds() > 0)
        points.push_back(&row);
    for (const KernelRow *row : points)
      arithmetics.insert(row->arithmetic);
    if (arithmetics.empty())
      arithmetics.insert(LLMC_COST_F32);
  }

  std::string draw() {
    scale();
    svg = text("<svg class=\"roofline\" viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"roofline of the step\">\n", kWidth, kHeight);
    grid();
    for (uint32_t arithmetic : arithmetics)
      roof(arithmetic);
    for (const KernelRow *row : points) // the largest first, so that small ones lie above
      point(*row);
    return svg + "</svg>\n";
  }

private:
  double speed(const KernelRow &row) const { return row.work.flops / row.seconds(); }

  void scale() {
    double left = 1e300, right = 0, low = 1e300, high = 0;
    for (const KernelRow *row : points) {
      left = std::min(left, row->intensity());
      right = std::max(right, row->intensity());
      low = std::min(low, speed(*row));
      high = std::max(high, speed(*row)); // above the roof: from a cache, or a profile with hiccups
    }
    for (uint32_t arithmetic : arithmetics) {
      const double peak = e.hardware.peak(arithmetic), ridge = peak / e.hardware.bandwidth;
      left = std::min(left, ridge);
      right = std::max(right, ridge);
      high = std::max(high, peak);
    }
    low = std::min(low, e.hardware.bandwidth * left);
    auto decade = [](double value, bool up) { return std::pow(10, up ? std::ceil(std::log10(value) + 0.1) : std::floor(std::log10(value) - 0.1)); };
    x = {decade(left, false), decade(right, true), kLeft, kWidth - kRight};
    y = {decade(low, false), decade(high, true), kHeight - kBottom, kTop};
  }

  void grid() {
    for (double value = x.low; value <= x.high * 1.001; value *= 10)
      svg += text("<line class=\"grid\" x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\"/><text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%g</text>\n",
                  x(value), kTop, x(value), kHeight - kBottom, x(value), kHeight - kBottom + 18, value);
    for (double value = y.low; value <= y.high * 1.001; value *= 10)
      svg += text("<line class=\"grid\" x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\"/><text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                  kLeft, y(value), kWidth - kRight, y(value), kLeft - 6, y(value) + 4, scaled(value, "FLOP/s").c_str());
    svg += text("<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">arithmetic intensity, FLOP/byte</text>\n", (kLeft + kWidth - kRight) / 2, kHeight - 10);
  }

  void roof(uint32_t arithmetic) {
    const double peak = e.hardware.peak(arithmetic), ridge = peak / e.hardware.bandwidth;
    const double start = std::max(x.low, y.low / e.hardware.bandwidth);
    svg += text("<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>", x(start), y(e.hardware.bandwidth * start), x(ridge),
                y(peak), x(x.high), y(peak));
    svg += text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s %s</text>\n", x(x.high) - 4, y(peak) - 5, arithmeticName(arithmetic),
                scaled(peak, "FLOP/s").c_str());
    if (arithmetic == *arithmetics.rbegin()) {
      const double middle = std::sqrt(start * ridge);
      svg += text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">memory %s</text>\n", x(middle) - 8, y(e.hardware.bandwidth * middle) - 4,
                  scaled(e.hardware.bandwidth, "B/s").c_str());
    }
  }

  void point(const KernelRow &row) {
    const double share = row.seconds() / e.measured.value_or(e.predicted), radius = 3 + 15 * std::sqrt(share);
    const double at = x(row.intensity()), height = y(speed(row)), top = y(row.work.flops / row.predicted);
    const char *kind = row.memoryBound() ? "memory" : "compute";
    if (row.measured && height - top > radius)
      svg += text("<line class=\"%s gap\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", kind, at, height - radius, at, top);
    svg += text("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>%s (%s): %.1f %% of the time, %.3g FLOP/byte, %s</title></circle>",
                kind, at, height, radius, escaped(row.op).c_str(), escaped(row.kernel).c_str(), 100 * share, row.intensity(),
                scaled(speed(row), "FLOP/s").c_str());
    // The large ones have their names beside them, where nothing else has been written.
    auto free = [&](double line) {
      return std::none_of(labels.begin(), labels.end(), [&](auto &other) {
        return std::fabs(other.first - at) < 150 && std::fabs(other.second - line) < 13;
      });
    };
    if (share < 0.02)
      return;
    for (double line : {height + 4, height + 18, height - 10, height + 32, height - 24})
      if (free(line) && line > kTop && line < kHeight - kBottom) {
        labels.emplace_back(at, line);
        svg += text("<text x=\"%.1f\" y=\"%.1f\">%s</text>", at + radius + 4, line, escaped(row.op).c_str());
        break;
      }
    svg += "\n";
  }

  const Explanation &e;
  std::vector<const KernelRow *> points;
  std::set<uint32_t> arithmetics;
  std::vector<std::pair<double, double>> labels;
  Axis x{}, y{};
  std::string svg;
};

} // namespace

std::string llmc::rooflineSvg(const Explanation &explanation) { return Picture(explanation).draw(); }
