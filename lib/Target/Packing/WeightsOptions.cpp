//===- WeightsOptions.cpp -------------------------------------------------===//
#include "llmc/Target/WeightsOptions.h"

#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"

#include <charconv>

using namespace llmc;

WeightsOptions llmc::parseWeightsOptions(const std::string &text) {
  using Mode = WeightsOptions::Mode;
  WeightsOptions options;
  if (text == "embedded")
    return options;
  if (text == "separate") {
    options.mode = Mode::Separate;
    return options;
  }
  static constexpr std::string_view prefix = "random:";
  const char *begin = text.data() + prefix.size(), *end = text.data() + text.size();
  if (text.starts_with(prefix)) {
    auto [stop, error] = std::from_chars(begin, end, options.seed);
    if (error == std::errc() && stop == end) {
      options.mode = Mode::Random;
      return options;
    }
  }
  throw Error("--weights: expected embedded, separate or random:SEED (a whole number below 2^64), got " + quote(text));
}
