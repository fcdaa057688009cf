// What a decoding step costs the engine itself: a device that does nothing in the place of one.
#include "runtime/engine/Engine.h"

#include <cstdio>
#include <ctime>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

class NullDevice : public Device {
public:
  NullDevice() {
    module_.struct_size = sizeof module_;
    module_.version = LLMC_ABI_VERSION;
    module_.target = "cpu", module_.isa = "none";
    module_.max_tokens = 2048, module_.max_seqs = module_.max_logits = 256;
    module_.vocab = module_.padded_vocab = 128000;
    module_.max_context = 8192;
    module_.num_layers = module_.num_kv_groups = 1;
    module_.kv_groups = &group_;
  }
  const llmc_module_v1 &module() const override { return module_; }
  unsigned threads() const override { return 1; }
  DeviceInfo info() const override { return {}; }
  void step(const llmc_step_v1 &s) override {
    for (uint32_t i = 0; i < s.num_logits; ++i)
      s.out_ids[i] = int32_t(i * 7 + s.num_tokens);
  }
  void reference(std::span<const int32_t>, float *) override {}
  void setObserver(LaunchObserver) override {}
  uint32_t numBlocks() const override { return 1 << 17; }
  uint64_t blockBytes() const override { return 0; }
  void zeroBlocks(std::span<const int32_t>) override {}
  void copyBlocks(std::span<const std::pair<int32_t, int32_t>>) override {}
  void readBlock(int32_t, void *) const override {}
  const std::byte *weights() const override { return nullptr; }
  void startBackground() override {}
  void finishBackground() override {}
  Ledger ledger() const override { return {}; }

private:
  llmc_module_v1 module_{};
  llmc_kv_group_v1 group_{};
};

double processorSeconds() { // of this thread: what else the machine does plays little part
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// The goal is 30 microseconds at batch 64; the bound leaves room for slow and busy machines.
TEST(HostTime, OfADecodingStep) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer's own time";
#endif
  for (bool prefixCache : {false, true})
    for (unsigned batch : {1u, 16u, 64u, 256u})
      for (unsigned context : {512u, 4096u}) {
        NullDevice device;
        Engine engine(device, {.prefixCache = prefixCache});
        for (unsigned i = 0; i < batch; ++i) {
          Request r;
          for (unsigned k = 0; k < context; ++k)
            r.prompt.push_back(int32_t((i * 131 + k) % 128000));
          r.sampling.maxTokens = 1000;
          r.onToken = [](const SampledToken &) { return true; };
          engine.submit(std::move(r));
        }
        while (engine.scheduler().running() < batch || !engine.step() || engine.scheduler().waiting())
          engine.step();
        for (int i = 0; i < 8; ++i) // the last prompt
          engine.step();
        constexpr int kSteps = 300;
        const double start = processorSeconds();
        for (int i = 0; i < kSteps; ++i)
          engine.step();
        const double microseconds = (processorSeconds() - start) / kSteps * 1e6;
        ASSERT_EQ(engine.scheduler().running(), batch) << "none has ended, all were in every step";
        std::printf("prefix cache %s, batch %3u, context %4u: %6.2f us a step\n", prefixCache ? "on " : "off", batch, context, microseconds);
        if (batch == 64)
          EXPECT_LT(microseconds, 100);
      }
}

} // namespace
