#include "TinyDevice.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"
#include "runtime/cts/kernel_check/Checker.h"

#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace llmc;
using namespace llmc::kernel_check;
using tiny::TinyDevice;

namespace {

TEST(KernelName, SaysWhatTheKernelComputes) {
  EXPECT_EQ(KernelName::parse("embedding_q4_1_576").op, Op::Embedding);
  EXPECT_EQ(KernelName::parse("gated_activation_silu_1536_f32").op, Op::GatedActivation);
  EXPECT_EQ(KernelName::parse("rope_table_32").op, Op::RopeTable);
  EXPECT_EQ(KernelName::parse("rms_norm_576_bf16").eps, 1e-5f);
  EXPECT_EQ(KernelName::parse("rms_norm_576_f32_eps358637BD").eps, 1e-6f);
  EXPECT_EQ(KernelName::parse("linear_bf16_bf16_nk_576x960_bias_m8").arith, Arith::BF16);
  EXPECT_EQ(KernelName::parse("linear_bf16_eo32_bf16_pairs_576x960_m1").arith, Arith::BF16_EO32);
  EXPECT_EQ(KernelName::parse("gated_q16_g32_q8_0_576x1536_m256").arith, Arith::Q16_G32);
  EXPECT_EQ(KernelName::parse("linear_bf16_q4_k_1024x512").arith, Arith::BF16);
  EXPECT_EQ(KernelName::parse("gated_q8_g32_iq4_xs_256x512_m1").arith, Arith::Q8_G32);
  EXPECT_EQ(KernelName::parse("embedding_q2_k_256").op, Op::Embedding);
  EXPECT_EQ(KernelName::parse("rope_append_9_3x64_32").headDim, 64);
  EXPECT_EQ(KernelName::parse("rope_9x80_40").headDim, 80);
  const KernelName attention = KernelName::parse("attention_9_3x64_bf16_w24_q7");
  EXPECT_EQ(attention.op, Op::Attention);
  EXPECT_EQ(attention.headDim, 64);
  EXPECT_EQ(attention.window, 24);
  EXPECT_EQ(KernelName::parse("attention_9_3x64_bf16_q7").window, 0);
  EXPECT_FALSE(KernelName::parse("attention_9_3x64_bf16_q7").narrow) << "only the result is";
  EXPECT_TRUE(KernelName::parse("attention_9_3x64_q8_w24_bf16_q4").narrow);
  EXPECT_FALSE(attention.sinks);
  EXPECT_EQ(attention.scale, 0.0f);
  const KernelName capped = KernelName::parse("attention_9_3x64_f32_w300_scale3E800000_cap42480000_sinks_s21");
  EXPECT_EQ(capped.window, 300);
  EXPECT_EQ(capped.scale, 0.25f);
  EXPECT_EQ(capped.cap, 50.0f);
  EXPECT_TRUE(capped.sinks);
  EXPECT_EQ(KernelName::parse("soft_cap41F00000_1024_f32").cap, 30.0f);
  EXPECT_EQ(KernelName::parse("scale_x3E800000_1024_f32").factor, 0.25f);
  EXPECT_EQ(KernelName::parse("embedding_bf16_nk_96_x41200000").factor, 10.0f);
  EXPECT_EQ(KernelName::parse("embedding_bf16_nk_96").factor, 1.0f);
  EXPECT_TRUE(KernelName::parse("gated_gelu_bf16_bf16_nk_96x160_m8").gelu);
  EXPECT_EQ(KernelName::parse("gated_activation_gelu_tanh_160_f32").op, Op::GatedActivation);
  EXPECT_FALSE(KernelName::parse("gated_bf16_bf16_nk_96x160_m8").gelu);
  for (const char *name : {"softmax_10", "linear_fp8_10x20", "attention_9_f32", "", "rope_append_9", "linear"})
    EXPECT_THROW(KernelName::parse(name), Error) << name;
}

// Every step is one that a device takes, and no token is written where another lies.
TEST(RandomSteps, AreWellFormedAndRagged) {
  TinyDevice device;
  RandomSteps steps(device.module(), tiny::kBlocks, UINT32_MAX, 5);
  std::set<uint32_t> tokens, sequences;
  bool continued = false, empty = false, dropped = false, shared = false;
  for (int i = 0; i < 3000; ++i) {
    RandomStep &step = steps.next();
    ASSERT_NO_THROW(checkStep(device.module(), step.view(), tiny::kBlocks)) << i;
    tokens.insert(step.tokens());
    sequences.insert(step.sequences());
    std::set<int32_t> written, tables;
    for (int32_t slot : step.slots) {
      dropped |= slot < 0;
      EXPECT_TRUE(slot < 0 || written.insert(slot).second) << i;
    }
    for (uint32_t s = 0; s < step.sequences(); ++s) {
      const int32_t fresh = step.starts[s + 1] - step.starts[s];
      continued |= step.lengths[s] > fresh && fresh > 1;
      empty |= fresh == 0;
      if (step.lengths[s] >= 16)
        shared |= !tables.insert(step.table[s * step.stride]).second;
    }
  }
  EXPECT_TRUE(continued && empty && dropped && shared);
  EXPECT_TRUE(tokens.count(1) && tokens.count(tiny::kTokens) && tokens.size() > 30);
  EXPECT_EQ(*sequences.rbegin(), tiny::kSeqs);
}

TEST(RandomSteps, FollowTheSeed) {
  TinyDevice device;
  RandomSteps a(device.module(), tiny::kBlocks, 9, 5), b(device.module(), tiny::kBlocks, 9, 5), c(device.module(), tiny::kBlocks, 9, 6);
  bool differs = false;
  for (int i = 0; i < 20; ++i) {
    const std::vector<int32_t> ids = a.next().ids;
    EXPECT_LE(ids.size(), 9u);
    EXPECT_EQ(ids, b.next().ids);
    differs |= ids != c.next().ids;
  }
  EXPECT_TRUE(differs);
}

// Written out from abi.h.
TEST(KVLayout, FollowsTheHeader) {
  llmc_kv_group_v1 group{LLMC_BF16, 1, 2, 32, 16, 0, 3072, 3072, 1536};
  EXPECT_EQ(KVLayout(group, true).key(1, 3, 5), 1536u + (3 * 32 + 5) * 2);
  EXPECT_EQ(KVLayout(group, true).value(1, 3, 5), 1536u + (16 * 32 + 3 * 16 + 5) * 2);
  EXPECT_EQ(KVLayout(group, false).key(0, 3, 5), ((2 * 16 + 3) * 2 + 1) * 2u);
  EXPECT_EQ(KVLayout(group, false).value(0, 3, 5), (16 * 32 + (1 * 16 + 5) * 2 + 1) * 2u);
  group.element = LLMC_F32;
  EXPECT_EQ(KVLayout(group, false).key(0, 3, 5), (5 * 16 + 3) * 4u);
  EXPECT_EQ(KVLayout(group, false).value(0, 3, 5), (16 * 32 + 3 * 16 + 5) * 4u);
}

TEST(Compare, HalfStepsOfBF16) {
  EXPECT_EQ(halfStepBF16(1.0), 0x1p-8);
  EXPECT_EQ(halfStepBF16(-1.99), 0x1p-8);
  EXPECT_EQ(halfStepBF16(4.0), 0x1p-6);
  EXPECT_EQ(halfStepBF16(0), 0);
}

/// One row of q16 codes in pair order, of the 36 columns 0.01 * c.
struct Codes {
  Codes() {
    std::memset(bytes, 0, sizeof bytes);
    for (uint32_t c = 0; c < 36; ++c)
      want.row(0)[c] = 0.01 * c;
    auto *codes = reinterpret_cast<int16_t *>(bytes);
    auto *scales = reinterpret_cast<float *>(bytes + 128);
    for (uint32_t g = 0; g < 2; ++g) {
      const double largest = g == 0 ? 0.31 : 0.35;
      scales[2 * g] = float(largest / 32767);
      double sum = 0;
      for (uint32_t c = g * 32; c < std::min(36u, g * 32 + 32); ++c) {
        const int16_t code = int16_t(std::lround(want.row(0)[c] / largest * 32767));
        codes[c % 4 == 1 ? c + 1 : c % 4 == 2 ? c - 1 : c] = code;
        sum += code;
      }
      scales[2 * g + 1] = float(scales[2 * g] * sum);
    }
  }
  Deviation result() const { return compare({{"codes", 0, LLMC_I16, LLMC_ROWS_TOKENS, 36, 64, 128}, bytes}, want); }
  alignas(8) std::byte bytes[160];
  Matrix want{1, 36};
};

TEST(Compare, CodesAndScales) {
  const Bounds bounds = boundsOf({Op::Quantize}, false, 0, LLMC_I16);
  EXPECT_TRUE(Codes().result().within(bounds)) << Codes().result().fault << Codes().result().worst;
  auto wrong = [&](auto change) {
    Codes codes;
    change(reinterpret_cast<int16_t *>(codes.bytes), reinterpret_cast<float *>(codes.bytes + 128));
    return !codes.result().within(bounds);
  };
  EXPECT_TRUE(wrong([](int16_t *codes, float *) { codes[7] += 1; }));
  EXPECT_TRUE(wrong([](int16_t *codes, float *) { std::swap(codes[5], codes[6]); })) << "not in pair order";
  EXPECT_TRUE(wrong([](int16_t *codes, float *) { codes[40] = 1; })) << "padding";
  EXPECT_TRUE(wrong([](int16_t *, float *scales) { scales[1] *= 1.001f; }));
  EXPECT_TRUE(wrong([](int16_t *, float *scales) { scales[2] *= 1.001f; }));
}

// e4m3: codes of a row and one scale, the row's largest magnitude / 448.
struct Floats {
  Floats() {
    for (uint32_t c = 0; c < 40; ++c)
      want.row(0)[c] = 0.01 * (double(c) - 15);
    const float scale = float(0.24 / 448);
    for (uint32_t c = 0; c < 40; ++c)
      bytes[c] = std::byte(f32ToE4M3(float(want.row(0)[c] / double(scale))));
    std::memcpy(bytes + 64, &scale, 4);
  }
  Deviation result() const { return compare({{"codes", 0, LLMC_E4M3, LLMC_ROWS_TOKENS, 40, 64, 64}, bytes}, want); }
  alignas(8) std::byte bytes[192] = {};
  Matrix want{1, 40};
};

TEST(Compare, RowsOfE4M3) {
  const Bounds bounds = boundsOf({Op::Quantize}, true, 0, LLMC_E4M3);
  EXPECT_TRUE(Floats().result().within(bounds)) << Floats().result().fault << Floats().result().worst;
  auto wrong = [&](size_t at, uint8_t change) {
    Floats floats;
    floats.bytes[at] ^= std::byte(change);
    return !floats.result().within(bounds);
  };
  EXPECT_TRUE(wrong(3, 2)) << "two steps";
  EXPECT_TRUE(wrong(3, 0x80)) << "the sign";
  EXPECT_TRUE(wrong(50, 1)) << "padding";
  EXPECT_TRUE(wrong(65, 0x10)) << "the scale";
  EXPECT_EQ(KernelName::parse("linear_e4m3_e4m3_nk_4096x6144_w256").arith, Arith::E4M3);
  EXPECT_GT(boundsOf({Op::Linear, Arith::E4M3}, true, 4096, LLMC_F32).relative, boundsOf({Op::Linear, Arith::BF16}, true, 4096, LLMC_F32).relative);
}

/// The kernels that fail when `fault` is planted; "" for what belongs to no kernel.
std::set<std::string> failures(std::function<void(tiny::LaunchNumber, TinyDevice &)> fault, uint32_t window = tiny::kWindow,
                               uint64_t *cases = nullptr) {
  TinyDevice device;
  device.fault = std::move(fault);
  device.window = window;
  Report report;
  testing::internal::CaptureStderr();
  {
    Checker checker(device, report);
    RandomSteps steps(device.module(), tiny::kBlocks, UINT32_MAX, 3);
    for (int i = 0; i < 60; ++i)
      checker.run(steps.next());
  }
  const std::string said = testing::internal::GetCapturedStderr();
  std::set<std::string> names;
  uint64_t inKernels = 0;
  for (const auto &[name, kernel] : report.kernels()) {
    inKernels += kernel.failed;
    if (kernel.failed)
      names.insert(name);
  }
  if (report.failed() > inKernels)
    names.insert("");
  EXPECT_EQ(said.empty(), names.empty());
  if (cases)
    *cases = report.cases();
  return names;
}

using Names = std::set<std::string>;
const char *const kProjectName = "linear_f32_f32_20x16_m1", *const kAttendName = "attention_1_1x16_f32_w5_q1";

TEST(Checker, PassesWhatIsRight) {
  uint64_t cases = 0;
  EXPECT_EQ(failures(nullptr, tiny::kWindow, &cases), Names());
  EXPECT_GT(cases, 60u * 7);
  EXPECT_LE(cases, 60u * 8);
}

TEST(Checker, FindsWrongNumbers) {
  auto at = [](tiny::LaunchNumber which, std::function<void(TinyDevice &)> change) {
    return [=](tiny::LaunchNumber i, TinyDevice &d) {
      if (i == which && (i < tiny::Gather || d.current->num_logits > 0))
        change(d);
    };
  };
  EXPECT_EQ(failures(at(tiny::Embedding, [](auto &d) { d.row(tiny::kX, 0)[3] += 1e-6f; })), Names{"embedding_f32_20"});
  EXPECT_EQ(failures(at(tiny::Project, [](auto &d) { d.row(tiny::kKeys, d.current->num_tokens - 1)[15] += 0.01f; })), Names{kProjectName});
  EXPECT_EQ(failures(at(tiny::Project, [](auto &d) { d.row(tiny::kKeys, 0)[2] = NAN; })).count(kProjectName), 1u);
  EXPECT_EQ(failures(at(tiny::Gather, [](auto &d) { std::memset(d.row(tiny::kGathered, 0), 0, 80); })), Names{"gather_rows_20"});
  EXPECT_EQ(failures(at(tiny::Project, [](auto &d) { d.row(tiny::kKeys, 0)[16] = 1e-20f; })), Names{kProjectName}) << "padding";
  EXPECT_EQ(failures(at(tiny::Round, [](auto &d) {
              for (uint32_t c = 0; c < tiny::kHidden; ++c) // towards zero
                d.rounded(0)[c] = uint16_t(std::bit_cast<uint32_t>(d.row(tiny::kX, 0)[c]) >> 16);
            })),
            Names{"round_20_bf16"});
  EXPECT_EQ(failures(at(tiny::Argmax, [](auto &d) {
              auto *ids = reinterpret_cast<int32_t *>(d.arena.data() + tiny::kIds);
              if (ids[0] == 3)
                ids[0] = 30; // as large, but higher
            })),
            Names{"argmax_45"});
}

TEST(Checker, FindsAttentionThatSeesMoreOrLess) {
  EXPECT_EQ(failures(nullptr, tiny::kWindow + 1), Names{kAttendName});
  EXPECT_EQ(failures(nullptr, tiny::kWindow - 1), Names{kAttendName});
}

TEST(Checker, FindsWrongCacheWrites) {
  auto after = [](tiny::LaunchNumber which, std::function<void(TinyDevice &, int32_t)> change) {
    return [=](tiny::LaunchNumber i, TinyDevice &d) {
      if (const int32_t slot = d.current->kv[0].slots[0]; i == which && slot >= 0)
        change(d, slot);
    };
  };
  const Names append{"kv_append_1x16"};
  EXPECT_EQ(failures(after(tiny::Append, [](auto &d, int32_t slot) { *d.key(slot, 4) ^= 1; })), append) << "last place";
  EXPECT_EQ(failures(after(tiny::Append, [](auto &d, int32_t slot) { *d.cached(slot, 4) ^= 1; })), append);
  EXPECT_EQ(failures(after(tiny::Append, [](auto &d, int32_t slot) { // a later token's place
              const int32_t next = slot % 16 == 15 ? slot : slot + 1;
              if (d.current->num_tokens == 1)
                *d.key(next, 0) ^= 64;
            })),
            append);
  // A block of nobody in this step, and a write by a launch that has no business with the cache.
  EXPECT_EQ(failures(after(tiny::Head, [](auto &d, int32_t) { d.pool[tiny::kBlockBytes * 2 + 7] ^= std::byte(1); })).count(""), 1u);
}

// The launch that reads what another has overwritten has other inputs than it should.
TEST(Checker, FindsResultsThatAreOverwritten) {
  EXPECT_EQ(failures([](tiny::LaunchNumber i, TinyDevice &d) {
              if (i == tiny::Round)
                d.row(tiny::kX, 0)[5] += 1;
            }),
            (Names{kProjectName, "gather_rows_20"}));
}

TEST(Report, CountsAKernelOnceAStep) {
  Report report;
  testing::internal::CaptureStderr();
  const Bounds bounds{1e-5, 1e-4};
  for (uint32_t step = 0; step < 3; ++step)
    for (int layer = 0; layer < 4; ++layer)
      report.add("linear", step, "launch", {layer == 2 && step == 1 ? 1e-3 : 1e-6, 0, "", ""}, bounds);
  report.add("add", 0, "launch", {NAN, 0, "", ""}, bounds);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("relative error 1.00e-03 over 1.00e-05"), std::string::npos);
  EXPECT_EQ(report.kernels().at("linear").cases, 3u);
  EXPECT_EQ(report.kernels().at("linear").launches, 12u);
  EXPECT_EQ(report.cases(), 4u);
  EXPECT_EQ(report.failed(), 2u);
  const std::string json = report.json("p", "d", 1, 3);
  EXPECT_NE(json.find("\"failed\": 2"), std::string::npos) << json;
}

} // namespace
