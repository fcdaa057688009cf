// The real executable with weights that are not inside: random ones, materialised ones, shards.
#include "FakePackage.h"
#include "runtime/package/RandomSource.h"
#include "runtime/package/Shards.h"
#include "runtime/package/WeightSource.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

using namespace fake;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  int code;
  std::string out, err;
};

class WeightsTool : public ::testing::Test {
protected:
  Outcome run(const std::string &exe, const std::string &arguments) {
    const std::string line = (folder / exe) + " " + arguments + " >" + (folder / "out") + " 2>" + (folder / "err") + " </dev/null";
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status)) << line;
    return {WEXITSTATUS(status), readFile(folder / "out"), readFile(folder / "err")};
  }
  /// Ids that the executable answers with.
  std::string answer(const std::string &exe, const std::string &arguments = "") {
    const Outcome got = run(exe, "run --raw --ids -n 8 --threads 2 hello " + arguments);
    EXPECT_EQ(got.code, 0) << got.err;
    return got.out;
  }

  static llmc::Manifest randomManifest() {
    llmc::Manifest m = manifest();
    for (llmc::Manifest::Weight &w : m.weights) {
      w.xxh3.reset();
      w.recipe = {"f32", false, 0, {{w.name, 0, w.rows, 0}}, {}};
    }
    m.weightsOrigin = {llmc::Manifest::WeightsOrigin::Kind::Random, kWeightsBytes, {}, 7};
    return m;
  }
  void write(const std::string &name, const llmc::Manifest &m) {
    llmc::PackageWriter writer(folder / name);
    writer.stub(LLMC_STUB);
    writer.section("manifest", m.serialize());
    writer.section("module.avx2", readFile(LLMC_FAKE_MODULE));
    writer.section("tokenizer", tokenizer().serialize());
    writer.finish();
  }
  /// `name` with the bytes of weights() in files of at most `most` bytes beside it.
  void writeSeparate(const std::string &name, uint64_t most) {
    llmc::ShardWriter shards(folder.path.string(), name, kWeightsBytes, most);
    const std::vector<uint8_t> bytes = weights();
    shards.append(bytes.data(), bytes.size());
    llmc::Manifest m = manifest();
    m.weightsOrigin = {llmc::Manifest::WeightsOrigin::Kind::Separate, kWeightsBytes, shards.close()};
    shards.rename();
    write(name, m);
    shards.keep();
  }

  TemporaryFolder folder;
};

TEST_F(WeightsTool, RandomWeightsRunAndMaterialise) {
  write("random", randomManifest());
  const Outcome where = run("random", "weights");
  EXPECT_NE(where.out.find("2 weights, " + std::to_string(kWeightsBytes) + " bytes: random, seed 7"), std::string::npos) << where.out;
  const std::string expected = answer("random");
  EXPECT_EQ(expected, answer("random"));

  const std::string files = folder / "files";
  const Outcome made = run("random", "weights --materialize " + files + " --max-shard-size 20KiB");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find(" in 4 files to " + files), std::string::npos) << made.out;
  EXPECT_EQ(fs::file_size(files + "/random.weights-00001-of-00004"), 20u << 10);
  EXPECT_EQ(std::distance(fs::directory_iterator(files), {}), 5);
  EXPECT_EQ(answer("random", "--weights-dir " + files), expected);
  EXPECT_EQ(run("random", "weights --check --weights-dir " + files).code, 0);

  std::string bytes = readFile(files + "/random.weights-00003-of-00004");
  bytes[100] ^= 1;
  std::ofstream(files + "/random.weights-00003-of-00004") << bytes;
  const Outcome damaged = run("random", "weights --check --weights-dir " + files);
  EXPECT_EQ(damaged.code, 1);
  EXPECT_NE(damaged.err.find("random.weights-00003-of-00004: damaged shard: expected hash "), std::string::npos) << damaged.err;
  const Outcome unchecked = run("random", "weights --check");
  EXPECT_EQ(unchecked.code, 0);
  EXPECT_NE(unchecked.out.find("0 of 2 weights have the hash of the manifest"), std::string::npos) << unchecked.out;
}

TEST_F(WeightsTool, SeparateShards) {
  writePackage(folder / "whole", LLMC_STUB);
  const std::string expected = answer("whole");
  for (uint64_t most : {uint64_t(0), uint64_t(10000)}) {
    writeSeparate("parts", most);
    EXPECT_EQ(answer("parts"), expected);
    EXPECT_EQ(answer("parts", "--mmap"), expected);
    const Outcome checked = run("parts", "weights --check");
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_NE(checked.out.find("2 of 2 weights have the hash"), std::string::npos) << checked.out;
  }
  const std::string shard = folder / "parts.weights-00002-of-00008";
  fs::resize_file(shard, 9999);
  Outcome bad = run("parts", "run --raw hello");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.err.find("parts: error: " + shard + ": truncated shard: expected 10000 bytes, got 9999"), std::string::npos) << bad.err;
  fs::remove(shard);
  bad = run("parts", "run --raw hello");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.err.find(shard + ": cannot open this shard"), std::string::npos) << bad.err;
}

TEST_F(WeightsTool, RefusesWhatCannotBeWritten) {
  write("random", randomManifest());
  for (const auto &[arguments, part] : {std::pair{"--materialize /proc/nowhere", "cannot use this folder"},
                                        {"--materialize /dev/null", "cannot use this folder"}}) {
    const Outcome got = run("random", std::string("weights ") + arguments);
    EXPECT_EQ(got.code, 1);
    EXPECT_NE(got.err.find(part), std::string::npos) << got.err;
  }
  EXPECT_EQ(run("random", "weights --max-shard-size 1GiB").code, 2) << "needs --materialize";
  EXPECT_EQ(run("random", "weights --materialize x --max-shard-size 0").code, 2);
  // A manifest that claims more than any disk has.
  llmc::Manifest m = randomManifest();
  m.weightsOrigin.bytes = uint64_t(1) << 60;
  write("huge", m);
  const Outcome got = run("huge", "weights --materialize " + (folder / "x"));
  EXPECT_EQ(got.code, 1);
  EXPECT_NE(got.err.find("expected 1152921504606846976 bytes free on its disk, got "), std::string::npos) << got.err;
}

} // namespace
