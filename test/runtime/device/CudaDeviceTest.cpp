#include "FakeCuda.h"
#include "FakeDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/UploadWeights.h"
#include "runtime/engine/Batch.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/Score.h"
#include "runtime/grammar/ConstraintSource.h"

#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>
#include <regex>

using namespace llmc;
using namespace llmc::cuda;

namespace {

void expectError(const std::function<void()> &body, const std::string &part) {
  try {
    body();
    ADD_FAILURE() << "expected an error with: " << part;
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << "got: " << error.what();
  }
}

std::vector<int32_t> someIds(size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(int32_t((i * 37 + 11) % 250));
  return ids;
}

int32_t best(const std::vector<float> &logits) {
  return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class Cuda : public ::testing::Test {
protected:
  Cuda() : object(fake::readFile(LLMC_FAKE_CUDA_MODULE)), fd(memfd_create("weights", 0)), source(fd, fake::kWeightsBytes) {
    const std::vector<uint8_t> bytes = fake::weights();
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), ssize_t(bytes.size()));
    gpu = {};
  }
  ~Cuda() override {
    EXPECT_EQ(gpu.mistakes, std::vector<std::string>());
    gpu.lost = 0;
    device.reset();
    EXPECT_EQ(gpu.allocated, 0u) << "freed with the device";
    EXPECT_EQ(gpu.pinned, 0u);
    close(fd);
  }
  static void SetUpTestSuite() {
    driver_ = new Driver(Driver::load(LLMC_FAKE_CUDA_DRIVER));
    auto get = reinterpret_cast<fake::FakeCuda *(*)()>(dlsym(dlopen(LLMC_FAKE_CUDA_DRIVER, RTLD_NOW), "llmcFakeCuda"));
    fake_ = get();
  }
  static void TearDownTestSuite() { delete driver_; }

  DevicePayload payload() const { return {{{"sm_90a", object}}, &source, "fake", false}; }
  CudaDevice &load(const DeviceOptions &options = {}) {
    device = std::make_unique<CudaDevice>(payload(), options, *driver_);
    return *device;
  }
  std::vector<float> logits(const std::vector<int32_t> &ids, uint32_t chunk) {
    std::vector<float> all(ids.size() * fake::kVocab);
    scoreTokens(*device, ids, chunk, [&](uint32_t first, uint32_t count, const float *rows) {
      std::copy_n(rows, size_t(count) * fake::kVocab, all.begin() + ptrdiff_t(first * fake::kVocab));
    });
    return all;
  }
  /// A batch of three sequences; the tokens that want logits are sampled by `sampler`.
  void fill(Batch &batch, const llmc_sampler_v1 &sampler) {
    const int32_t a[] = {1, 2, 3}, b[] = {9}, c[] = {200, 7}, blocks[] = {4, 1, 2};
    batch.clear();
    batch.add(a, 0, {blocks, 1});
    batch.add(b, 0, {blocks + 1, 1});
    batch.add(c, 0, {blocks + 2, 1});
    for (uint32_t token : {2u, 3u, 5u})
      batch.wantLogits(token, &sampler);
  }

  std::string object;
  int fd;
  fake::FileWeights source;
  std::unique_ptr<CudaDevice> device;
  static Driver *driver_;
  static fake::FakeCuda *fake_;
  fake::FakeCuda &gpu = *fake_;
};
Driver *Cuda::driver_ = nullptr;
fake::FakeCuda *Cuda::fake_ = nullptr;

TEST_F(Cuda, ComputesTheModelInAnyChunks) {
  load();
  const std::vector<int32_t> ids = someIds(70);
  const std::vector<float> got = logits(ids, 8);
  for (size_t t : {0u, 1u, 15u, 16u, 17u, 69u}) {
    const std::vector<float> want = fake::expectedLogits({ids.begin(), ids.begin() + ptrdiff_t(t) + 1});
    EXPECT_EQ(0, std::memcmp(want.data(), got.data() + t * fake::kVocab, want.size() * 4)) << "token " << t;
  }
  for (uint32_t chunk : {1u, 7u, 32u})
    EXPECT_EQ(got, logits(ids, chunk)) << chunk;
}

TEST_F(Cuda, GreedyRowsBringOnlyIdsToTheHost) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  const unsigned uploads = gpu.uploads, downloads = gpu.downloads;
  device->step(batch.step());
  EXPECT_EQ(gpu.uploads - uploads, 1u);
  EXPECT_EQ(gpu.downloads - downloads, 1u) << "the ids";
  const std::vector<int32_t> want = {best(fake::expectedLogits({1, 2, 3})), best(fake::expectedLogits({9})),
                                     best(fake::expectedLogits({200, 7}))};
  EXPECT_EQ(batch.outIds(), want);

  llmc_sampler_v1 biased = defaultSampler();
  const int32_t id = 33;
  const float bias = 1000;
  biased.bias_count = 1;
  biased.bias_ids = &id;
  biased.bias_values = &bias;
  fill(batch, biased);
  device->step(batch.step());
  EXPECT_EQ(batch.outIds(), std::vector<int32_t>(3, 33)) << "the host decides";
}

TEST_F(Cuda, NegativeIdsTakeTheSlotsOfTheStepBefore) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  device->step(batch.step());
  const int32_t second = best(fake::expectedLogits({9})), slot[] = {-2}, block[] = {1};
  batch.clear();
  batch.add(slot, 1, block);
  const llmc_sampler_v1 greedy = defaultSampler();
  batch.wantLogits(0, &greedy);
  device->step(batch.step());
  EXPECT_EQ(batch.outIds()[0], best(fake::expectedLogits({9, second})));
}

// The second step is started before the host has the ids that it begins with.
TEST_F(Cuda, TwoStepsUnderWay) {
  load();
  Batch first(*device), second(*device), third(*device);
  fill(first, defaultSampler());
  const int32_t block[] = {1};
  const llmc_sampler_v1 greedy = defaultSampler();
  for (Batch *batch : {&second, &third}) {
    batch->add({}, batch == &second ? 1 : 2, block, batch == &second ? 1 : 0); // row 1 of the first step, row 0 of the second
    batch->wantLogits(0, &greedy);
  }
  device->enqueue(first.step());
  device->enqueue(second.step());
  expectError([&] { device->enqueue(third.step()); }, "expected at most 1 under way, got 2");
  expectError([&] { device->step(third.step()); }, "expected no other under way, got 2");
  device->wait();
  const int32_t chosen = best(fake::expectedLogits({9})), next = best(fake::expectedLogits({9, chosen}));
  EXPECT_EQ(first.outIds()[1], chosen);
  EXPECT_EQ(second.outIds()[0], -1) << "not waited for";
  device->enqueue(third.step());
  device->wait();
  EXPECT_EQ(second.outIds()[0], next);
  device->wait();
  EXPECT_EQ(third.outIds()[0], best(fake::expectedLogits({9, chosen, next})));
  device->wait(); // for nothing
}

// Rows that the host samples are read before the next step writes where they are.
TEST_F(Cuda, AStepWhoseRowsTheHostWantsEndsBeforeTheNext) {
  load();
  Batch first(*device), second(*device);
  llmc_sampler_v1 penalised = defaultSampler();
  const int32_t banned = best(fake::expectedLogits({9})), block[] = {1};
  const float bias = -1000;
  penalised.bias_count = 1, penalised.bias_ids = &banned, penalised.bias_values = &bias;
  fill(first, penalised);
  second.add({}, 1, block, 1);
  const llmc_sampler_v1 greedy = defaultSampler();
  second.wantLogits(0, &greedy);
  EXPECT_FALSE(device->choosesOnDevice(penalised));
  EXPECT_TRUE(device->choosesOnDevice(greedy));
  device->enqueue(first.step());
  device->enqueue(second.step());
  device->wait();
  EXPECT_NE(first.outIds()[1], banned);
  device->wait();
  EXPECT_EQ(second.outIds()[0], best(fake::expectedLogits({9, first.outIds()[1]})));
}

// Random requests through an engine that starts steps early: the tokens are those without, whatever ends a sequence.
TEST_F(Cuda, OverlapChangesNoToken) {
  load({.kvTokens = 160, .swapBytes = 4 * fake::kBlockBytes});
  std::mt19937 random(5);
  auto below = [&](uint64_t n) { return random() % n; };
  for (int trace = 0; trace < 60; ++trace) {
    std::vector<Request> requests;
    for (uint64_t i = 0, count = 1 + below(8); i < count; ++i) {
      Request &r = requests.emplace_back();
      for (uint64_t t = 0, length = 1 + below(40); t < length; ++t)
        r.prompt.push_back(int32_t(below(30) ? below(250) : 7));
      if (below(12) == 0)
        r.prompt[below(r.prompt.size())] = fake::kNanToken;
      r.sampling.maxTokens = 1 + below(20);
      r.sampling.temperature = below(4) ? 0 : 0.9; // drawn on the host: nothing is started early
      r.sampling.logprobs = below(6) ? SamplingParams::kNoLogprobs : 3;
      for (uint64_t k = below(12); k > 0; --k)
        r.eosIds.push_back(int32_t(below(250)));
    }
    std::vector<std::pair<std::vector<int32_t>, Finish>> answers[2];
    for (Overlap overlap : {Overlap::Off, Overlap::Auto}) {
      Engine engine(*device, {.overlap = overlap});
      std::vector<std::shared_ptr<Sequence>> sequences;
      for (const Request &r : requests) {
        sequences.push_back(engine.submit(r));
        engine.step();
      }
      while (engine.step())
        ;
      EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
      for (const auto &s : sequences)
        answers[overlap == Overlap::Auto].emplace_back(std::vector<int32_t>(s->output().begin(), s->output().end()), s->finish);
    }
    ASSERT_EQ(answers[0], answers[1]) << "trace " << trace;
  }
}

// Masks may come after the step was started; the GPU takes what they forbid out of the logits, and nothing but ids comes to the host.
TEST_F(Cuda, MasksThatComeLate) {
  load();
  std::vector<uint32_t> mask((fake::kVocab + 31) / 32);
  llmc_sampler_v1 masked = defaultSampler();
  masked.token_mask = mask.data();
  EXPECT_TRUE(device->choosesOnDevice(masked));
  Batch batch(*device), next(*device);
  const int32_t block[] = {1};
  for (const std::vector<int32_t> &allowed : {std::vector<int32_t>{40, 41, 77}, {3}, {200, 201, 202, 203, 204}}) {
    const std::vector<float> row = fake::expectedLogits({9});
    const int32_t want = *std::max_element(allowed.begin(), allowed.end(), [&](int32_t a, int32_t b) { return row[size_t(a)] < row[size_t(b)]; });
    std::fill(mask.begin(), mask.end(), 0);
    fill(batch, masked);
    next.clear();
    next.add({}, 1, block, 1);
    const llmc_sampler_v1 greedy = defaultSampler();
    next.wantLogits(0, &greedy);
    const unsigned downloads = gpu.downloads;
    device->enqueue(batch.step());
    for (int32_t id : allowed)
      mask[size_t(id) / 32] |= 1u << (id % 32);
    device->masksFilled();
    device->enqueue(next.step());
    std::fill(mask.begin(), mask.end(), 0); // has been read
    device->wait();
    EXPECT_EQ(batch.outIds()[1], want);
    device->wait();
    EXPECT_EQ(next.outIds()[0], best(fake::expectedLogits({9, want}))) << "the next step finds it on the GPU";
    EXPECT_EQ(gpu.downloads - downloads, 2u) << "ids alone";
  }
}

// Who takes the logits gets them as the model computed them; who asks for the step in one has its masks at once.
TEST_F(Cuda, MasksLeaveLogitsThatAreWanted) {
  load();
  std::vector<uint32_t> mask((fake::kVocab + 31) / 32);
  mask[1] = 1u << 1; // 33
  llmc_sampler_v1 masked = defaultSampler();
  masked.token_mask = mask.data();
  Batch batch(*device);
  fill(batch, masked);
  device->step(batch.step());
  EXPECT_EQ(batch.outIds(), std::vector<int32_t>(3, 33));
  std::vector<float> out(3 * fake::kVocab);
  llmc_step_v1 step = batch.step();
  step.out_logits = out.data();
  device->step(step);
  EXPECT_EQ(batch.outIds(), std::vector<int32_t>(3, 33));
  const std::vector<float> want = fake::expectedLogits({200, 7});
  EXPECT_EQ(0, std::memcmp(out.data() + 2 * fake::kVocab, want.data(), want.size() * 4));
  const int32_t spoiled[] = {fake::kNanToken}, block[] = {3};
  batch.clear();
  batch.add(spoiled, 0, block);
  batch.wantLogits(0, &masked);
  device->step(batch.step());
  EXPECT_EQ(batch.outIds()[0], Sampler::kBadLogits) << "a mask hides nothing";
  device->zeroBlocks(block);
}

// Answers held by a grammar beside others: texts of it, and the tokens without overlap.
TEST_F(Cuda, ConstraintsWithOverlap) {
  load({.kvTokens = 320});
  std::vector<std::string> spellings(fake::kVocab);
  for (int b = 0; b < 256; ++b)
    spellings[size_t(b)] = std::string(1, char(b));
  const auto tokens = std::make_shared<GrammarTokens>(std::move(spellings));
  std::vector<std::shared_ptr<Constraint>> constraints{nullptr};
  const std::vector<const char *> patterns = {"[a-f]{5}-(yes|no)", "x+", "(ab|cd){1,9}\\.", "[0-9]{1,3}(,[0-9]{1,3}){0,3}"};
  for (const char *pattern : patterns)
    constraints.push_back(std::make_shared<Constraint>(compileGrammar({ConstraintSource::Kind::Regex, pattern}), tokens));
  std::mt19937 random(7);
  for (int trace = 0; trace < 30; ++trace) {
    std::vector<std::pair<Request, size_t>> requests;
    for (uint64_t i = 0, count = 1 + random() % 6; i < count; ++i) {
      auto &[r, which] = requests.emplace_back(Request{}, random() % constraints.size());
      for (uint64_t t = 0, length = 1 + random() % 30; t < length; ++t)
        r.prompt.push_back(int32_t(random() % 250));
      r.sampling.maxTokens = 1 + random() % 25;
      r.sampling.logprobs = random() % 5 ? SamplingParams::kNoLogprobs : 2; // the host's
      r.eosIds = {fake::kEos};
      r.constraint = constraints[which];
    }
    std::vector<std::vector<int32_t>> answers[2];
    for (Overlap overlap : {Overlap::Off, Overlap::Auto}) {
      Engine engine(*device, {.overlap = overlap});
      std::vector<std::shared_ptr<Sequence>> sequences;
      for (const auto &[r, which] : requests) {
        sequences.push_back(engine.submit(r));
        engine.step();
      }
      while (engine.step())
        ;
      for (size_t i = 0; i < sequences.size(); ++i) {
        const Sequence &s = *sequences[i];
        const std::string text(s.output().begin(), s.output().end());
        const size_t which = requests[i].second;
        EXPECT_TRUE(s.finish == Finish::Stop || s.finish == Finish::Length) << s.error;
        if (which && s.finish == Finish::Stop)
          EXPECT_TRUE(std::regex_match(text, std::regex(patterns[which - 1]))) << patterns[which - 1] << ": " << text;
        answers[overlap == Overlap::Auto].emplace_back(s.output().begin(), s.output().end());
      }
    }
    ASSERT_EQ(answers[0], answers[1]) << "trace " << trace;
  }
}

// What is lost ends the steps under way; the engine is left as if they had never been.
TEST_F(Cuda, ALostDeviceUnderWay) {
  load();
  Engine engine(*device);
  Request request;
  request.prompt = {1, 2, 3};
  auto s = engine.submit(request);
  engine.step();
  const uint64_t before = s->generated();
  gpu.losingKernel = "append";
  expectError([&] { engine.step(); }, "CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_EQ(s->generated(), before);
  EXPECT_EQ(s->pending, 0u);
  engine.fail(s, "lost");
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
}

TEST_F(Cuda, LogitsAndHiddenRows) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  std::vector<float> out(3 * fake::kVocab), hidden(3 * fake::kHidden);
  llmc_step_v1 step = batch.step();
  step.out_logits = out.data();
  step.out_hidden = hidden.data();
  device->step(step);
  const std::vector<float> want = fake::expectedLogits({200, 7});
  EXPECT_EQ(0, std::memcmp(out.data() + 2 * fake::kVocab, want.data(), want.size() * 4));
  EXPECT_EQ(hidden[fake::kHidden], fake::embedding(9, 0) * 2);
}

TEST_F(Cuda, AllocatesEverythingAtLoadAndNothingLater) {
  load();
  const unsigned before = gpu.allocations;
  EXPECT_EQ(gpu.allocated, device->ledger().bytesOf(MemoryKind::Device)) << "the ledger is exact";
  EXPECT_EQ(gpu.pinned, device->ledger().bytesOf(MemoryKind::Pinned)) << "buffers of the weights are gone";
  EXPECT_EQ(device->info().usedAfter - device->info().usedBefore, gpu.allocated);
  EXPECT_EQ(device->info().name, "NVIDIA Fake");
  EXPECT_EQ(device->info().detail, "sm_90a, driver 13.1");
  Engine engine(*device);
  for (int i = 0; i < 5; ++i) {
    Request request;
    request.prompt = someIds(20);
    request.sampling.maxTokens = 10;
    request.sampling.temperature = i % 2;
    engine.generate(request);
  }
  device->setObserver([](const LaunchView &) {});
  logits(someIds(40), 8);
  EXPECT_EQ(gpu.allocations, before);
}

TEST_F(Cuda, LaunchesAndKernels) {
  load();
  EXPECT_EQ(gpu.cubins, 5u) << "one module a kernel";
  EXPECT_EQ(gpu.ptx, 1u) << "attention has no cubin";
  Batch batch(*device);
  fill(batch, defaultSampler());
  device->step(batch.step());
  EXPECT_EQ(gpu.launches, (std::vector<std::string>{"embed grid 2 block 32 shared 0", "append grid 6 block 32 shared 0",
                                                    "attention grid 3 block 64 shared 0", "gather grid 3 block 32 shared 0",
                                                    "head grid 4 block 128 shared 102400", "argmax grid 3 block 32 shared 0"}));
  gpu.launches.clear();
  const int32_t id[] = {5}, block[] = {0};
  batch.clear();
  batch.add(id, 0, block); // wants no logits
  device->step(batch.step());
  EXPECT_EQ(gpu.launches, (std::vector<std::string>{"embed grid 1 block 32 shared 0", "append grid 1 block 32 shared 0 early",
                                                    "attention grid 1 block 64 shared 0 early"}))
      << "no launch without units; one CTA may come early";
}

TEST_F(Cuda, StepsOfOneFormBecomeAGraph) {
  load();
  const std::vector<int32_t> ids = someIds(40);
  const std::vector<float> cold = logits(ids, 1); // tokens one by one: the fourth makes the graph, the table grows
  EXPECT_EQ(gpu.launches.size(), 6u * StepGraphs::kPlain) << "only the first steps launch their kernels";
  EXPECT_EQ(gpu.graphLaunches, 40u - StepGraphs::kPlain);
  EXPECT_EQ(gpu.graphs, 1u);
  EXPECT_EQ(gpu.sources, 1u) << "the graph's nodes may be updated";
  EXPECT_EQ(gpu.nodeUpdates, 0u) << "no context grew by a span";
  EXPECT_EQ(gpu.earlyEdges, 4u) << "of kernels of one CTA; the head may have two CTAs on a multiprocessor";
  EXPECT_EQ(cold, logits(ids, 8)) << "and the graph saw each step's inputs";
  device.reset();
  EXPECT_EQ(gpu.graphs, 0u);
  EXPECT_EQ(gpu.sources, 0u);
}

TEST_F(Cuda, GraphsAreKeptForTheFormsUsedLast) {
  load();
  const std::vector<int32_t> ids = someIds(32);
  for (size_t round = 0; round < 2; ++round)
    for (uint32_t length = 1; length <= 32; ++length)
      for (uint32_t wanted = 0; wanted < length && wanted < 8; ++wanted) {
        Batch batch(*device);
        const int32_t blocks[] = {0, 1};
        batch.add({ids.data(), length}, 0, blocks);
        for (uint32_t row = 0; row < wanted; ++row)
          batch.wantLogits(row, nullptr);
        for (unsigned again = 0; again <= StepGraphs::kPlain; ++again)
          device->step(batch.step());
        EXPECT_LE(gpu.graphs, StepGraphs::kMost);
      }
  EXPECT_EQ(gpu.graphs, StepGraphs::kMost);
}

TEST_F(Cuda, WithoutGraphs) {
  DeviceOptions options;
  options.graphs = false;
  load(options);
  logits(someIds(10), 1);
  EXPECT_EQ(gpu.launches.size(), 60u);
  device.reset();
  load();
  gpu.failingCall = "cuGraphInstantiate"; // no memory for a graph
  gpu.failingResult = 2;
  const std::vector<float> got = logits(someIds(10), 1);
  gpu.failingCall.clear();
  EXPECT_EQ(got, logits(someIds(10), 10));
  EXPECT_EQ(gpu.graphLaunches, 0u);
  EXPECT_EQ(gpu.graphs, 0u);
  options = {};
  options.syncLaunches = true;
  load(options);
  gpu.launches.clear();
  logits(someIds(10), 1);
  EXPECT_EQ(gpu.launches.size(), 60u);
  for (const std::string &launch : gpu.launches)
    EXPECT_EQ(launch.find("early"), std::string::npos) << "a kernel at a time";
}

TEST_F(Cuda, PersistentKernels) {
  gpu.multiprocessors = gpu.ctas = 1;
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  device->step(batch.step());
  EXPECT_EQ(gpu.launches[4], "head grid 2 block 128 shared 102400") << "as many CTAs as run at a time, but a whole cluster";
  EXPECT_EQ(gpu.launches[3], "gather grid 3 block 32 shared 0") << "a CTA a unit; many would crowd if they came early";
  device.reset();
  gpu.ctas = 0;
  expectError([&] { load(); }, "kernel head: expected room for a CTA of 128 threads on a multiprocessor of NVIDIA Fake, got none");
}

TEST_F(Cuda, PtxOnRequest) {
  DeviceOptions options;
  options.ptx = true;
  load(options);
  EXPECT_EQ(gpu.cubins, 0u);
  EXPECT_EQ(gpu.ptx, 6u);
  device.reset();
  gpu.jitLog = "ptxas application ptx input, line 7; error : Unknown symbol 'x'\n";
  expectError([&] { load(options); }, "kernel embed (PTX): cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (what the driver says): "
                                      "ptxas application ptx input, line 7; error : Unknown symbol 'x'");
}

TEST_F(Cuda, WeightsGoThroughTwoBuffers) {
  const uint64_t bytes = (70 << 20) + 12345;
  std::vector<uint32_t> image(bytes / 4 + 1);
  for (size_t i = 0; i < image.size(); ++i)
    image[i] = uint32_t(i * 2654435761u);
  const int file = memfd_create("image", 0);
  ASSERT_EQ(write(file, image.data(), bytes), ssize_t(bytes));
  const fake::FileWeights big(file, bytes);
  const Gpu card(*driver_, 0, "sm_90a", "fake");
  const DeviceMemory memory(card, bytes, "weights");
  std::vector<uint64_t> progress;
  uploadWeights(card, big, memory.address(), 0, [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, bytes);
    progress.push_back(done);
  });
  EXPECT_EQ(progress, (std::vector<uint64_t>{0, 32 << 20, 64 << 20, bytes}));
  EXPECT_EQ(0, std::memcmp(reinterpret_cast<void *>(memory.address()), image.data(), bytes));
  ASSERT_EQ(ftruncate(file, 40 << 20), 0);
  expectError([&] { uploadWeights(card, big, memory.address(), 0, nullptr); }, "cannot read");
  close(file);
}

TEST_F(Cuda, BlocksAreZeroedCopiedAndRead) {
  load();
  std::vector<float> block(fake::kBlockBytes / 4, 1);
  device->readBlock(0, block.data());
  EXPECT_EQ(block, std::vector<float>(block.size(), 0)) << "the pool starts zeroed";
  Batch batch(*device);
  fill(batch, defaultSampler()); // sequence of tokens 1, 2, 3 in block 4
  device->step(batch.step());
  const std::pair<int32_t, int32_t> pairs[] = {{4, 0}, {0, 5}};
  device->copyBlocks(pairs);
  device->readBlock(5, block.data());
  EXPECT_EQ(block[0], fake::embedding(1, 0));
  const int32_t zero[] = {5};
  device->zeroBlocks(zero);
  device->readBlock(5, block.data());
  EXPECT_EQ(block, std::vector<float>(block.size(), 0));
  expectError([&] { device->readBlock(6, block.data()); }, "expected a KV block below 6, got 6");
  EXPECT_EQ(device->numSlots(), 0u);
}

TEST_F(Cuda, BlocksGoToHostMemoryAndBack) {
  load({.swapBytes = 3 * fake::kBlockBytes - 1});
  EXPECT_EQ(device->numSlots(), 2u);
  EXPECT_EQ(gpu.pinned, device->ledger().bytesOf(MemoryKind::Pinned));
  Batch batch(*device);
  fill(batch, defaultSampler()); // sequence of tokens 1, 2, 3 in block 4
  device->step(batch.step());
  const std::pair<int32_t, int32_t> out[] = {{4, 1}}, in[] = {{1, 0}}, wrong[] = {{0, 2}};
  device->swapOut(out);
  const int32_t zero[] = {4};
  device->zeroBlocks(zero);
  device->swapIn(in);
  std::vector<float> block(fake::kBlockBytes / 4);
  device->readBlock(0, block.data());
  EXPECT_EQ(block[0], fake::embedding(1, 0));
  expectError([&] { device->swapOut(wrong); }, "below 2, got 2");
}

TEST_F(Cuda, StopAfterOpAndObserver) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  llmc_step_v1 step = batch.step();
  std::vector<std::string> seen;
  device->setObserver([&](const LaunchView &view) {
    seen.push_back(view.launch.op);
    EXPECT_DOUBLE_EQ(view.seconds, 0.5e-3);
    for (uint32_t v = 0; v < view.launch.num_values; ++v) {
      auto *x = reinterpret_cast<const float *>(view.arena + view.launch.values[v].offset);
      if (std::string(view.launch.values[v].name) == "embedding") {
        EXPECT_EQ(x[5 * fake::kHidden + 3], fake::embedding(7, 3));
      }
    }
  });
  step.stop_after_op = 2;
  device->step(step);
  EXPECT_EQ(seen, (std::vector<std::string>{"token_embd", "blk.0.kv_append", "blk.0.attention"}));
  EXPECT_EQ(batch.outIds(), std::vector<int32_t>(3, -1)) << "no output before the end";
}

TEST_F(Cuda, BurstsTimeTheLaunchesOfAnOp) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  std::vector<std::string> ops;
  double seconds = 0;
  device->setTimer([&](const llmc_launch_v1 &launch, const llmc_variant_v1 &, double s) { ops.push_back(launch.op), seconds += s; },
                   LaunchTiming::Bursts);
  device->step(batch.step());
  EXPECT_EQ(ops.size(), 6u) << "each op once";
  EXPECT_EQ(gpu.graphLaunches, 60u) << "five bursts of two graphs";
  EXPECT_EQ(gpu.graphs, 0u);
  EXPECT_NEAR(seconds, 6 * 0.5e-3, 1e-9);
  device->setTimer(nullptr, LaunchTiming::InStep);
  device->step(batch.step());
  EXPECT_EQ(batch.outIds()[1], best(fake::expectedLogits({9})));
}

TEST_F(Cuda, RefusesIllFormedStepsBeforeAnythingRuns) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  llmc_step_v1 step = batch.step();
  const int32_t bad[] = {1, 260, 3, 4, 5, 6};
  step.token_ids = bad;
  expectError([&] { device->step(step); }, "expected token ids below 260, got 260");
  EXPECT_TRUE(gpu.launches.empty());
  fill(batch, defaultSampler());
  device->step(batch.step()); // still works
  expectError([&] { device->reference(someIds(3), nullptr); }, "the reference program is not part of a package for a GPU");
}

TEST_F(Cuda, NoDriverNoDeviceWrongDevice) {
  expectError([] { Driver::load("libno-such-driver.so.1"); }, "no CUDA driver (libno-such-driver.so.1) on this machine");
  gpu.devices = 0;
  expectError([&] { load(); }, "no CUDA device on this machine: cuInit: CUDA_ERROR_NO_DEVICE");
  gpu.devices = 2;
  DeviceOptions options;
  options.device = 2;
  expectError([&] { load(options); }, "--device: expected a number below 2 (the GPUs of this machine), got 2");
  gpu.major = 8;
  gpu.name = "NVIDIA A100-SXM4-80GB";
  expectError([&] { load(); }, "device 0 is an NVIDIA A100-SXM4-80GB (compute capability 8.0); fake is compiled for sm_90a (9.0)");
  gpu.major = 10;
  expectError([&] { load(); }, "(compute capability 10.0)");
}

TEST_F(Cuda, RefusesWhatDoesNotFitWithTheNumberThatDoes) {
  DeviceOptions options;
  options.kvTokens = 1u << 24;
  const unsigned before = gpu.allocations;
  expectError([&] { load(options); }, "NVIDIA Fake (67108864 are left to the driver); what fits is a KV pool of ");
  EXPECT_EQ(gpu.allocations, before) << "before anything is allocated";
  options.kvBytes = uint64_t(1) << 52;
  expectError([&] { load(options); }, "what fits is a KV pool of ");
  options.kvBytes = 0;
  gpu.memory = 150 << 20;
  options.kvTokens = 16;
  expectError([&] { load(options); }, "it would not fit with any KV pool");
  options.checkMemory = false;
  gpu.memory = 101 << 20;
  expectError([&] { load(options); }, "cannot allocate 2097152 bytes on NVIDIA Fake: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
  gpu.memory = size_t(1) << 30;
  options.kvBytes = 10;
  expectError([&] { load(options); }, "one block of 16 tokens");
}

TEST_F(Cuda, WithoutAWantedLengthThePoolIsWhatFits) {
  const llmc_module_v1 module = load().module();
  llmc_module_v1 longer = module;
  longer.max_context = 1 << 22;
  EXPECT_EQ(device->numBlocks(), 6u) << "the longest context";
  const MemoryPlan plan = planMemory(longer, {}, {size_t(400) << 20, size_t(1) << 30, "GPU"});
  EXPECT_LT(plan.numBlocks, (1u << 22) / 16);
  EXPECT_LE(plan.onDevice(), 336u << 20);
  EXPECT_GT(plan.onDevice(), 330u << 20);
  EXPECT_EQ(planMemory(longer, {}, {}).numBlocks, (1u << 22) / 16) << "no GPU to ask";
}

TEST_F(Cuda, AFailingLaunchNamesItsKernelAndTheDeviceGoesOn) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  gpu.failingCall = "cuLaunchKernelEx";
  gpu.failingResult = 1;
  expectError([&] { device->step(batch.step()); }, "step of 6 tokens, 3 sequences: cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (what the "
                                                   "driver says) in op 0 (token_embd, kernel embed)");
  gpu.failingCall.clear();
  device->step(batch.step());
}

TEST_F(Cuda, ALostDeviceSaysWhatWasRunningAndTakesNoMoreWork) {
  load();
  Batch batch(*device);
  fill(batch, defaultSampler());
  gpu.losingKernel = "append";
  gpu.losingResult = 700;
  const std::string text = "cuEventSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (what the driver says) between op 0 (token_embd, kernel "
                           "embed) and op 5 (argmax, kernel argmax); --sync-launches finds the kernel";
  expectError([&] { device->step(batch.step()); }, text);
  gpu.losingKernel.clear();
  expectError([&] { device->step(batch.step()); }, "the device takes no more work since it failed: step of 6 tokens");
  std::vector<char> block(fake::kBlockBytes);
  expectError([&] { device->readBlock(0, block.data()); }, text);
}

TEST_F(Cuda, SyncLaunchesFindTheKernel) {
  DeviceOptions options;
  options.syncLaunches = true;
  DevicePayload with = payload();
  with.trapChecks = true;
  device = std::make_unique<CudaDevice>(with, options, *driver_);
  Batch batch(*device);
  fill(batch, defaultSampler());
  gpu.losingKernel = "append";
  expectError([&] { device->step(batch.step()); },
              "CUDA_ERROR_LAUNCH_FAILED (what the driver says) in op 1 (blk.0.kv_append, layer 0, kernel append); the package checks bounds");
}

TEST_F(Cuda, ErrorsOfLoadingLeaveNothingBehind) {
  for (const char *call : {"cuInit", "cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuModuleLoadDataEx", "cuModuleGetFunction",
                           "cuFuncSetAttribute", "cuMemAlloc", "cuMemHostAlloc", "cuMemcpyHtoDAsync", "cuEventCreate",
                           "cuMemsetD8Async", "cuTensorMapEncodeTiled", "cuStreamSynchronize"}) {
    gpu.failingCall = call;
    gpu.failingResult = 700;
    expectError([&] { load(); }, std::string(call) + ": CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_EQ(gpu.allocated + gpu.pinned, 0u) << call;
  }
  gpu.failingCall.clear();
  load();
}

TEST_F(Cuda, NotANumberIsAnError) {
  load();
  Engine engine(*device);
  Request request;
  request.prompt = {1, fake::kNanToken};
  EXPECT_EQ(engine.generate(request)->finish, Finish::Error);
  request.prompt = {1, 2};
  request.sampling.maxTokens = 2;
  EXPECT_EQ(engine.generate(request)->finish, Finish::Length) << "the blocks were cleaned";
}

TEST(CudaArchitecture, RunsWhereItCan) {
  EXPECT_TRUE(Architecture::parse("sm_90a").runsOn(9, 0));
  EXPECT_FALSE(Architecture::parse("sm_90a").runsOn(9, 1));
  EXPECT_FALSE(Architecture::parse("sm_90a").runsOn(10, 0));
  EXPECT_TRUE(Architecture::parse("sm_80").runsOn(8, 6));
  EXPECT_FALSE(Architecture::parse("sm_80").runsOn(9, 0));
  EXPECT_EQ(Architecture::parse("sm_100a").major, 10);
  for (const char *bad : {"sm_", "sm_9", "avx2", "sm_90b", "sm_90ab"})
    expectError([&] { Architecture::parse(bad); }, "expected a GPU architecture such as sm_90a");
}

} // namespace
