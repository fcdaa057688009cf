//===- Rope.cpp - rotary frequencies --------------------------------------===//
//
// inv_freq[i] = theta^(-2i / rotaryDim), i < rotaryDim / 2 (RoFormer, sec. 3.4.2).
//
// transformers computes the table in f32, step by step; the same roundings are
// made here, so that long positions do not drift from the reference.
//
//===----------------------------------------------------------------------===//
#include "FactsChecks.h"
#include "llmc/Support/Error.h"

#include <cmath>
#include <numbers>

using namespace llmc;

/// Llama 3.1: long wavelengths are slowed by `factor`, short ones kept, those
/// between blended (modeling_rope_utils.py, _compute_llama3_parameters).
static float scaleLlama3(const RopeFacts &rope, float frequency) {
  float context = static_cast<float>(rope.originalContext);
  float factor = static_cast<float>(rope.factor);
  float low = static_cast<float>(rope.lowFreqFactor), high = static_cast<float>(rope.highFreqFactor);
  float wavelength = static_cast<float>(2.0 * std::numbers::pi) / frequency;
  if (wavelength > context / low)
    return frequency / factor;
  if (wavelength < context / high)
    return frequency;
  float smooth = (context / wavelength - low) / (high - low);
  return (1.0f - smooth) * (frequency / factor) + smooth * frequency;
}

std::vector<float> RopeFacts::inverseFrequencies() const {
  std::vector<float> table;
  for (int64_t i = 0; i < rotaryDim / 2; ++i) {
    float exponent = static_cast<float>(2 * i) / static_cast<float>(rotaryDim);
    float frequency = 1.0f / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    if (scaling == Scaling::Linear)
      frequency /= static_cast<float>(factor);
    else if (scaling == Scaling::Llama3)
      frequency = scaleLlama3(*this, frequency);
    if (!freqFactors.empty())
      frequency /= freqFactors[static_cast<size_t>(i)];
    table.push_back(frequency);
  }
  return table;
}

void frontend::checkRope(const RopeFacts &rope, const std::string &where) {
  auto positive = [&](double value, const char *key) {
    // Also refuses values that vanish in f32, which the table uses.
    if (!std::isfinite(static_cast<float>(value)) || !(static_cast<float>(value) > 0))
      throw Error(where + ": expected a positive finite " + key + ", got " + std::to_string(value));
  };
  positive(rope.theta, "theta");
  if (rope.rotaryDim <= 0 || rope.rotaryDim % 2)
    throw Error(where + ": expected an even, positive number of rotated dimensions, got " +
                std::to_string(rope.rotaryDim));
  if (!rope.freqFactors.empty() && rope.freqFactors.size() != static_cast<size_t>(rope.rotaryDim / 2))
    throw Error(where + ": expected " + std::to_string(rope.rotaryDim / 2) + " frequency factors, got " +
                std::to_string(rope.freqFactors.size()));
  for (float divisor : rope.freqFactors)
    positive(divisor, "frequency factor");
  if (rope.scaling != RopeFacts::Scaling::None)
    positive(rope.factor, "factor");
  if (rope.scaling == RopeFacts::Scaling::Llama3) {
    positive(rope.lowFreqFactor, "low_freq_factor");
    positive(rope.highFreqFactor, "high_freq_factor");
    positive(static_cast<double>(rope.originalContext), "original_max_position_embeddings");
    if (!(rope.lowFreqFactor < rope.highFreqFactor))
      throw Error(where + ": expected low_freq_factor below high_freq_factor, got " +
                  std::to_string(rope.lowFreqFactor) + " and " + std::to_string(rope.highFreqFactor));
  }
}
