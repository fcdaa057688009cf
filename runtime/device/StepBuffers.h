//===- StepBuffers.h - the inputs of a step, as kernels index them *- C++ -*-===//
//
// One copy of what a step brings, packed into one piece of memory (so that a GPU gets it by one transfer) and padded:
// token id 0, position 0, slot -1 (nowhere), logits row 0, empty query tiles behind the last row. Nothing is allocated
// after construction.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_STEPBUFFERS_H
#define LLMC_RUNTIME_DEVICE_STEPBUFFERS_H

#include "llmc/abi.h"

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace llmc {

struct StepBufferShape {
  uint32_t rowPad = LLMC_ROW_PAD; // rows are padded to a multiple of this
  /// True: the block table is copied too; its rows are cut to what the step's longest sequence needs, and kTablePad
  /// zero entries follow. False: kernels read the caller's.
  bool copyTable = false;
  uint32_t numBlocks = 0; // of the KV pool
};

/// How one launch runs in the current step.
struct LaunchPlan {
  const llmc_variant_v1 *variant;
  uint32_t rows; // of the launch's kind
  int64_t units; // 0: nothing to do
};

class StepBuffers {
public:
  static constexpr uint32_t kTablePad = 64;

  StepBuffers(const llmc_module_v1 &module, const llmc_program_v1 &program, const StepBufferShape &shape);

  /// Bytes that any step of the module fits in.
  uint64_t capacity() const { return capacity_; }
  /// Where fill() writes: capacity() bytes at a multiple of 128. Without this call, memory of the object's own.
  void setMemory(std::byte *memory) { base_ = memory; }

  /// A checked step (checkStep). `previousIds`: what the token ids -1, -2, ... stand for; empty: these stay.
  void fill(const llmc_step_v1 &step, std::span<const int32_t> previousIds);

  /// What fill() has written: used() bytes.
  const std::byte *data() const { return base_; }
  uint64_t used() const { return used_; }
  /// Start of a field (enum llmc_step_field); `rowBlock`: of the launch's variant, for query tiles and spans. Inside data(), or the
  /// caller's block table where it is not copied, or null (embeddings).
  const void *field(uint64_t field, uint32_t rowBlock) const;

  LaunchPlan plan(const llmc_launch_v1 &launch) const;
  /// What a launch does beside that: in steps of prompts and of single tokens spans are for these, tiles for the rest. No units: nothing.
  LaunchPlan rest(const llmc_launch_v1 &launch) const;
  /// Whether launches stay apart that could be one (LLMC_FUSED): where their results are wanted.
  void keepApart(bool apart) { apart_ = apart; }
  /// Steps of equal form have equal plans and equal places of the fields (where the block table is copied), but for the number of
  /// spans and the places that depend on it, which steps of equal contexts() have.
  using Form = std::vector<uint32_t>;
  Form form() const;
  Form contexts() const;
  /// Whether the launch reads what contexts() tells apart.
  static bool readsContexts(const llmc_launch_v1 &launch);
  uint32_t tokens() const { return tokens_; }
  uint32_t sequences() const { return sequences_; }
  uint32_t logitsRows() const { return logitsRows_; }

private:
  struct Tiles {
    llmc_query_tile *first = nullptr;
    uint32_t count = 0;
  };

  /// Spans of the cache for one row block.
  struct Spans {
    llmc_variant_v1 variant{}, next{}; // that works on them, and what is taken otherwise
    llmc_kv_span *first = nullptr;
    int32_t *arrivals = nullptr;
    uint32_t count = 0;
    bool taken = false;
  };

  uint32_t offsetOf(const void *place) const { return uint32_t(static_cast<const std::byte *>(place) - base_); }
  uint32_t padded(uint32_t rows) const { return (rows + shape_.rowPad - 1) / shape_.rowPad * shape_.rowPad; }
  template <typename T> T *place(uint64_t count);
  int32_t *copyRows(const int32_t *from, uint32_t count, int32_t rest);
  uint32_t copiedStride(const llmc_step_v1 &step) const;
  void copyTable(const llmc_step_v1 &step);
  void decideSplit(const llmc_step_v1 &step);
  void orderSequences(const llmc_step_v1 &step, uint32_t mostTokens);
  bool inTiles(const llmc_step_v1 &step, uint32_t sequence) const;
  void makeTiles(const llmc_step_v1 &step, uint32_t rowBlock, Tiles &tiles);
  void makeSpans(const llmc_step_v1 &step, Spans &spans);
  void listSpans(const llmc_step_v1 &step, bool grouped, Spans &spans);
  uint64_t maxTiles(uint32_t rowBlock) const;
  uint64_t maxSpanTiles(const Spans &spans) const;
  bool takes(const llmc_launch_v1 &launch, const llmc_variant_v1 &variant, uint32_t rows) const;

  StepBufferShape shape_;
  uint32_t maxTokens_, maxSeqs_, maxLogits_, maxContext_;
  uint64_t capacity_ = 0, used_ = 0;
  std::vector<std::byte> own_;
  std::byte *base_ = nullptr;
  uint32_t tokens_ = 0, sequences_ = 0, logitsRows_ = 0;
  int32_t *ids_ = nullptr, *positions_ = nullptr, *slots_ = nullptr, *rows_ = nullptr, *numBlocks_ = nullptr;
  llmc_row_sampler *samplers_ = nullptr;
  const int32_t *table_ = nullptr;
  uint32_t tableStride_ = 0;
  std::map<uint32_t, Tiles> tiles_; // by row block
  std::map<uint32_t, Spans> spans_; // likewise, of variants that work on spans
  uint32_t largest_ = 0;            // new tokens of a sequence
  bool maySplit_ = false, split_ = false; // whether every launch over tiles has a variant of spans first; whether rest() has units
  std::vector<uint32_t> order_;           // of the sequences: the longest contexts first
  bool apart_ = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_STEPBUFFERS_H
