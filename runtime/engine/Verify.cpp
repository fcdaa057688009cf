//===- Verify.cpp ---------------------------------------------------------===//
#include "runtime/engine/Verify.h"
#include "llmc/Support/Error.h"
#include "runtime/engine/Score.h"
#include "runtime/engine/UnpackWeight.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace llmc {

namespace {

uint32_t rowsOf(const llmc_value_v1 &value, const LaunchView &view) {
  switch (value.rows) {
  case LLMC_ROWS_TOKENS:
    return view.tokens;
  case LLMC_ROWS_LOGITS:
    return view.logitsRows;
  case LLMC_ROWS_SEQS:
    return view.sequences;
  }
  return 0;
}

// One row of a value as floats.
void readRow(const llmc_value_v1 &value, const std::byte *arena, uint32_t row, std::vector<float> &out) {
  const std::byte *base = arena + value.offset;
  const uint64_t first = uint64_t(row) * value.stride;
  auto *scales = reinterpret_cast<const float *>(arena + value.scales_offset) +
                 uint64_t(row) * ((value.cols + LLMC_PAD - 1) / LLMC_PAD) * 2;
  out.resize(value.cols);
  for (uint32_t j = 0; j < value.cols; ++j) {
    uint16_t half;
    switch (value.element) {
    case LLMC_F32:
      std::memcpy(&out[j], base + (first + j) * 4, 4);
      break;
    case LLMC_BF16:
      std::memcpy(&half, base + (first + j) * 2, 2);
      out[j] = std::bit_cast<float>(uint32_t(half) << 16);
      break;
    case LLMC_F16:
      std::memcpy(&half, base + (first + j) * 2, 2);
      out[j] = halfToFloat(half);
      break;
    case LLMC_I8:
      out[j] = float(int8_t(base[first + j])) * scales[j / LLMC_PAD * 2];
      break;
    case LLMC_I16: { // columns 1 and 2 of each four change places
      const uint32_t at = j % 4 == 1 ? j + 1 : j % 4 == 2 ? j - 1 : j;
      int16_t code;
      std::memcpy(&code, base + (first + at) * 2, 2);
      out[j] = float(code) * scales[j / LLMC_PAD * 2];
      break;
    }
    default: {
      int32_t integer;
      std::memcpy(&integer, base + (first + j) * 4, 4);
      out[j] = float(integer);
    }
    }
  }
}

// What the reference computed, by value name; rows arrive in order, possibly in several steps.
using Values = std::map<std::string, std::vector<float>>;

// Errors of one value, summed while its rows arrive.
struct Sums {
  ValueError error;
  double difference = 0, reference = 0;
  uint64_t next = 0; // elements seen
  bool finite = true;
};

class Comparison {
public:
  explicit Comparison(const Values &reference) : reference_(reference) {}

  void see(const LaunchView &view) {
    for (uint32_t v = 0; v < view.launch.num_values; ++v) {
      const llmc_value_v1 &value = view.launch.values[v];
      auto want = reference_.find(value.name);
      if (want == reference_.end())
        continue;
      auto [it, fresh] = index_.emplace(value.name, sums_.size());
      if (fresh) {
        sums_.emplace_back();
        sums_.back().error = {value.name, view.launch.op, view.launch.op_id, view.launch.layer, 0, 0};
      }
      Sums &sums = sums_[it->second];
      if (sums.error.opId == view.launch.op_id) // a name given twice counts where it comes first
        add(sums, value, view, want->second);
    }
  }

  std::vector<ValueError> result() const {
    std::vector<ValueError> errors;
    for (const Sums &s : sums_) {
      errors.push_back(s.error);
      errors.back().relative = !s.finite          ? std::numeric_limits<double>::infinity()
                               : s.difference == 0 ? 0
                                                   : std::sqrt(s.difference / std::max(s.reference, 1e-300));
    }
    return errors;
  }

private:
  void add(Sums &sums, const llmc_value_v1 &value, const LaunchView &view, const std::vector<float> &want) {
    for (uint32_t r = 0, n = rowsOf(value, view); r < n; ++r) {
      readRow(value, view.arena, r, row_);
      if (sums.next + row_.size() > want.size()) // shapes differ: named alike, but not the same value
        throw Error(std::string("value ") + value.name + ": the compiled program has more rows or columns than the reference");
      for (float x : row_) {
        const double y = want[sums.next++], d = double(x) - y;
        sums.finite &= std::isfinite(d);
        sums.difference += d * d;
        sums.reference += y * y;
        sums.error.largest = std::max(sums.error.largest, std::fabs(d));
      }
    }
  }

  const Values &reference_;
  std::map<std::string, size_t> index_;
  std::vector<Sums> sums_;
  std::vector<float> row_;
};

struct ObserverGuard {
  Device &device;
  ~ObserverGuard() { device.setObserver(nullptr); }
};

} // namespace

double klDivergence(std::span<const float> p, std::span<const float> q) {
  auto normalizer = [](std::span<const float> x) {
    const double best = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (float v : x)
      sum += std::exp(v - best);
    return best + std::log(sum);
  };
  const double zp = normalizer(p), zq = normalizer(q);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i)
    kl += std::exp(p[i] - zp) * ((p[i] - zp) - (q[i] - zq));
  return kl;
}

const ValueError *VerifyReport::firstBeyond(double bound) const {
  for (const ValueError &error : values)
    if (!(error.relative <= bound))
      return &error;
  return nullptr;
}

VerifyReport verifyModel(Device &device, std::span<const int32_t> ids) {
  const llmc_module_v1 &m = device.module();
  VerifyReport report;
  report.tokens = uint32_t(ids.size());
  ObserverGuard guard{device};

  Values reference;
  std::vector<float> row;
  device.setObserver([&](const LaunchView &view) {
    for (uint32_t v = 0; v < view.launch.num_values; ++v) {
      const llmc_value_v1 &value = view.launch.values[v];
      std::vector<float> &rows = reference[value.name];
      for (uint32_t r = 0, n = rowsOf(value, view); r < n; ++r) {
        readRow(value, view.arena, r, row);
        rows.insert(rows.end(), row.begin(), row.end());
      }
    }
  });
  std::vector<float> want(ids.size() * m.vocab);
  device.reference(ids, want.data());

  Comparison comparison(reference);
  device.setObserver([&](const LaunchView &view) { comparison.see(view); });
  uint32_t agree = 0;
  scoreTokens(device, ids, std::min(m.max_logits, m.max_tokens), [&](uint32_t first, uint32_t count, const float *logits) {
    for (uint32_t i = 0; i < count; ++i) {
      const std::span<const float> p(want.data() + uint64_t(first + i) * m.vocab, m.vocab), q(logits + uint64_t(i) * m.vocab, m.vocab);
      const double kl = klDivergence(p, q);
      report.meanKl += kl / double(ids.size());
      report.maxKl = std::isnan(kl) ? kl : std::max(report.maxKl, kl);
      agree += std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin();
    }
  });
  report.top1 = double(agree) / double(ids.size());
  report.values = comparison.result();
  return report;
}

} // namespace llmc
