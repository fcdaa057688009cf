// A step of prompts and generated tokens as two.
#include "runtime/device/StepPhases.h"
#include "runtime/device/CheckStep.h"
#include "test/ErrorOf.h"

#include <gtest/gtest.h>
#include <vector>

using namespace llmc;

namespace {

/// Sequences of 3 and 2 tokens of prompts, then of 1 and 1 that were generated, each of whose last tokens wants logits.
struct Step {
  std::vector<int32_t> ids{1, 2, 3, 4, 5, 6, 7}, positions{0, 1, 2, 0, 1, 4, 8}, starts{0, 3, 5, 6, 7}, lengths{3, 2, 5, 9}, rows{2, 4, 5, 6};
  std::vector<int32_t> slots{0, 1, 2, 16, 17, 36, 56}, table{0, 0, 1, 1, 2, 2, 3, 3};
  std::vector<float> logits = std::vector<float>(40), hidden = std::vector<float>(12);
  std::vector<llmc_sampler_v1> samplers = std::vector<llmc_sampler_v1>(4);
  llmc_kv_view_v1 kv{table.data(), slots.data(), 2, 0};
  llmc_module_v1 module{};
  llmc_step_v1 step{};

  explicit Step(uint32_t generated) {
    module.max_tokens = module.max_seqs = module.max_logits = 8;
    module.max_context = 32, module.vocab = 10, module.hidden = 3, module.num_kv_groups = 1;
    step.struct_size = sizeof step, step.version = LLMC_ABI_VERSION;
    step.num_tokens = 7, step.num_seqs = 4, step.num_logits = 4, step.num_kv_groups = 1;
    step.token_ids = ids.data(), step.positions = positions.data(), step.seq_starts = starts.data(), step.kv_lengths = lengths.data();
    step.kv = &kv, step.logits_rows = rows.data(), step.samplers = samplers.data();
    step.out_logits = logits.data(), step.out_hidden = hidden.data();
    step.stop_after_op = -1;
    step.num_generated = generated;
  }
};

TEST(StepPhases, PromptsThenGeneratedTokens) {
  Step s(2);
  StepPhases phases(s.module);
  checkStep(s.module, s.step, 4);
  phases.split(s.step);
  const llmc_step_v1 &p = phases.prompts, &g = phases.generated;
  checkStep(s.module, p, 4);
  checkStep(s.module, g, 4);
  EXPECT_EQ(p.num_tokens, 5u);
  EXPECT_EQ(p.num_seqs, 2u);
  EXPECT_EQ(p.num_logits, 2u);
  EXPECT_EQ(g.num_tokens, 2u);
  EXPECT_EQ(g.num_seqs, 2u);
  EXPECT_EQ(g.num_logits, 2u);
  EXPECT_EQ(g.token_ids[0], 6);
  EXPECT_EQ(std::vector<int32_t>(g.seq_starts, g.seq_starts + 3), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(std::vector<int32_t>(g.logits_rows, g.logits_rows + 2), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(g.kv[0].block_table[0], 2);
  EXPECT_EQ(g.kv[0].slots[1], 56);
  EXPECT_EQ(g.out_logits, s.logits.data() + 20);
  EXPECT_EQ(g.out_hidden, s.hidden.data() + 6);
  EXPECT_EQ(g.samplers, s.samplers.data() + 2);
  EXPECT_EQ(p.out_logits, s.logits.data());
}

TEST(StepPhases, OneOfThemMayBeEmpty) {
  Step none(0), all(7);
  StepPhases phases(none.module);
  phases.split(none.step);
  EXPECT_EQ(phases.prompts.num_tokens, 7u);
  EXPECT_EQ(phases.generated.num_tokens, 0u);
  phases.split(all.step);
  EXPECT_EQ(phases.prompts.num_tokens, 0u);
  EXPECT_EQ(phases.generated.num_tokens, 7u);
  EXPECT_EQ(phases.generated.seq_starts, all.starts.data());
}

TEST(StepPhases, WholeSequencesOnly) {
  Step inside(3), many(8);
  EXPECT_ERROR(checkStep(inside.module, inside.step, 4), "expected whole sequences of generated tokens at the end, got 3 of 7");
  EXPECT_ERROR(checkStep(many.module, many.step, 4), "expected whole sequences of generated tokens at the end, got 8 of 7");
}

} // namespace
