//===- Player.h - plays sequences on a device -------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_CTS_PLAYER_H
#define LLMC_RUNTIME_CTS_PLAYER_H

#include "runtime/engine/Batch.h"
#include "runtime/engine/Sampler.h"

#include <span>
#include <string>
#include <vector>

namespace llmc::cts {

using Ids = std::vector<int32_t>;
using Row = std::vector<float>; // logits [vocab]

/// Tokens of one sequence in one step.
struct Part {
  Ids ids;
  uint64_t first = 0; // position of ids[0]
  Ids blocks;
};

[[noreturn]] void fail(const std::string &what);
void expect(bool good, const std::string &what);
/// first, first + 1, ..., last - 1
Ids range(int32_t first, int32_t last);
/// The lowest id of the largest logit.
int32_t best(const Row &row);

class Player {
public:
  Player(Device &device, bool quick, unsigned traces) : device(device), m(device.module()), quick(quick), traces(traces), batch_(device) {}

  Device &device;
  const llmc_module_v1 &m;
  const bool quick;
  const unsigned traces; // random ones, of requests

  bool onCpu() const { return std::string_view(m.target) == "cpu"; }
  uint32_t blocks() const { return device.numBlocks(); }
  /// `count` tokens that differ by `salt`.
  Ids text(uint64_t count, uint32_t salt = 1) const;
  /// The largest of `wanted` that context, pool and step limits allow.
  uint64_t length(uint64_t wanted) const;

  /// The step of `parts`, whose last tokens want logits (unless `logits` is false). Valid until the next call.
  llmc_step_v1 step(const std::vector<Part> &parts, const llmc_sampler_v1 *sampler = nullptr, bool logits = true);
  const Ids &outIds() const { return batch_.outIds(); }
  /// Executes it; the logits of every part's last token.
  std::vector<Row> play(const std::vector<Part> &parts);
  /// Plays one sequence from position 0 in pieces of `chunk`; the logits after its last token.
  Row playChunked(const Ids &ids, const Ids &blocks, uint64_t chunk);

  /// Equal bits.
  void same(const Row &got, const Row &want, const std::string &what) const;
  /// Equal on a CPU, within kGpuTolerance on a GPU.
  void close(const Row &got, const Row &want, const std::string &what) const;

  std::vector<std::byte> block(int32_t index) const;
  std::vector<std::vector<std::byte>> readBlocks(const Ids &blocks) const;

private:
  Batch batch_;
};

} // namespace llmc::cts

#endif // LLMC_RUNTIME_CTS_PLAYER_H
