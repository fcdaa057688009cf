//===- Score.h - logits of every position of a given text -------*- C++ -*-===//
#ifndef LLMC_RUNTIME_ENGINE_SCORE_H
#define LLMC_RUNTIME_ENGINE_SCORE_H

#include "runtime/device/Device.h"

#include <functional>
#include <span>
#include <vector>

namespace llmc {

/// Runs `ids` as one sequence from position 0 through the paged cache in chunks of `chunk`
/// tokens. `sink` gets the logits [count, vocab] of tokens first, first + 1, ...; a chunk longer than
/// the module's max_logits is executed once per max_logits rows (it writes the same cache again). Of the tokens before
/// `from` no logits are made.
/// Uses blocks 0, 1, ... of the device, whatever they hold; returns their number.
/// Throws Error when the text is longer than context or cache.
uint32_t scoreTokens(Device &device, std::span<const int32_t> ids, uint32_t chunk,
                     const std::function<void(uint32_t first, uint32_t count, const float *logits)> &sink,
                     uint32_t from = 0);

/// Natural logarithm of the probability that the softmax of `logits` gives `id`; summed in f64. NaN if a logit is NaN
/// or the largest is not finite.
double logProbability(std::span<const float> logits, int32_t id);

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_SCORE_H
