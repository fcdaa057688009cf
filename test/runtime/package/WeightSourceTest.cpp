//===- WeightSourceTest.cpp - weights in the package, beside it, nowhere --===//
#include "test/ErrorOf.h"
#include "llmc/Support/Error.h"
#include "runtime/package/PackageWriter.h"
#include "runtime/package/RandomSource.h"
#include "runtime/package/Shards.h"
#include "runtime/package/WeightSource.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <unistd.h>

using namespace llmc;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "llmc-weights-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (auto &entry : fs::directory_iterator(path))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string path;
};

std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void writeAll(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// Three weights with gaps between them: panels, rows, a table; and a vector at the end.
std::vector<PackSpec> specs() {
  PackSpec a{.name = "blk.0.attn_qkv", .storage = DType::Q4_0, .layout = LLMC_LAYOUT_N16_Q4_0, .rows = 40, .cols = 96};
  a.sources = {{.rows = 16, .deinterleave = 8, .tensor = "blk.0.attn_q.weight"}, {.rows = 24, .tensor = "blk.0.attn_k.weight", .row = 3}};
  PackSpec b{.name = "blk.0.ffn_gate_up", .storage = DType::BF16, .layout = LLMC_LAYOUT_ROWS_BF16, .rows = 64, .cols = 50, .interleave = 16};
  b.sources = {{.rows = 32, .tensor = "blk.0.ffn_gate.weight"}, {.rows = 32, .tensor = "blk.0.ffn_up.weight"}};
  PackSpec c{.name = "rope", .layout = LLMC_LAYOUT_ROWS_F32, .rows = 1, .cols = 4, .value = {1, 0.1f, 1e-30f, -0.0f}};
  PackSpec d{.name = "blk.0.attn_norm", .layout = LLMC_LAYOUT_ROWS_F32, .rows = 1, .cols = 50, .vector = true};
  d.sources = {{.rows = 50, .tensor = "blk.0.attn_norm.weight"}};
  return {a, b, c, d};
}

constexpr uint64_t kSeed = 77;

struct Model {
  Manifest manifest;
  std::string image;
};

/// `order`: the manifest may list weights in any.
Model model(bool recipes) {
  Model m;
  m.manifest.version = "0.1.0";
  for (const PackSpec &spec : specs()) {
    m.image.resize((m.image.size() + 200) / 64 * 64); // a gap
    const uint64_t offset = m.image.size();
    const uint64_t hash = packWeight(WeightPacker(spec, RandomWeights{kSeed}), [&](std::span<const uint8_t> bytes) {
      m.image.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    });
    m.manifest.weights.push_back({spec.name, layoutName(spec.layout), offset, spec.bytes(), spec.rows, spec.cols, hash});
    if (recipes) {
      m.manifest.weights.back().xxh3.reset();
      m.manifest.weights.back().recipe = recipeOf(spec);
    }
  }
  std::swap(m.manifest.weights[0], m.manifest.weights[2]);
  m.image.resize(m.image.size() + 100);
  if (recipes)
    m.manifest.weightsOrigin = {Manifest::WeightsOrigin::Kind::Random, m.image.size(), {}, kSeed};
  return m;
}

void writePackage(const std::string &path, const Model &m) {
  PackageWriter writer(path);
  writer.section("manifest", m.manifest.serialize());
  if (m.manifest.weightsOrigin.kind == Manifest::WeightsOrigin::Kind::Embedded) {
    writer.begin("weights");
    writer.append(m.image.data(), m.image.size());
    writer.end();
  }
  writer.finish();
}

/// Writes shards and a package that names them.
void writeSeparate(const Folder &folder, const std::string &name, uint64_t most) {
  Model m = model(false);
  ShardWriter shards(folder.path, name, m.image.size(), most);
  for (size_t at = 0; at < m.image.size(); at += 1000)
    shards.append(m.image.data() + at, std::min<size_t>(1000, m.image.size() - at));
  m.manifest.weightsOrigin = {Manifest::WeightsOrigin::Kind::Separate, m.image.size(), shards.close()};
  shards.rename();
  writePackage(folder / name, m);
  shards.keep();
}

std::string readWhole(const WeightSource &source) {
  std::string bytes(source.size(), 'x');
  source.readParallel(0, bytes.data(), bytes.size(), 3);
  return bytes;
}

void expectImage(const WeightSource &source) {
  const std::string image = model(false).image;
  ASSERT_EQ(source.size(), image.size());
  EXPECT_EQ(readWhole(source), image);
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) { // any range
    const uint64_t offset = random() % (image.size() + 1), bytes = random() % (image.size() - offset + 1);
    std::string part(bytes, 'x');
    source.read(offset, part.data(), bytes);
    ASSERT_EQ(part, image.substr(offset, bytes)) << offset << " " << bytes;
  }
  char byte;
  EXPECT_ERROR(source.read(image.size(), &byte, 1), "expected a range inside " + std::to_string(image.size()) + " bytes, got 1 at");
  EXPECT_ERROR(source.read(UINT64_MAX, &byte, 2), "expected a range inside");
  EXPECT_ERROR(source.readParallel(1, &byte, UINT64_MAX, 2), "expected a range inside");
  if (source.mappable()) {
    std::string direct(image.size(), 'x');
    ASSERT_EQ(pread(source.fd(), direct.data(), direct.size(), off_t(source.fileOffset())), ssize_t(direct.size()));
    EXPECT_EQ(direct, image);
  }
}

uint64_t verify(const PackageReader &reader, const WeightSource &source) {
  return verifyWeights(source, reader.manifest(), 2, [](uint64_t) {});
}

TEST(WeightSource, Embedded) {
  Folder folder;
  writePackage(folder / "p", model(false));
  PackageReader reader(folder / "p");
  auto source = WeightSource::open(reader);
  EXPECT_TRUE(source->mappable());
  expectImage(*source);
  EXPECT_EQ(verify(reader, *source), 4u);
  EXPECT_NE(reader.section("manifest").find("\"format\": 1,"), std::string::npos) << "older runtimes load it";
}

TEST(WeightSource, Random) {
  Folder folder;
  writePackage(folder / "p", model(true));
  PackageReader reader(folder / "p");
  EXPECT_LT(reader.fileSize(), 20000u);
  auto source = WeightSource::open(reader);
  EXPECT_FALSE(source->mappable());
  EXPECT_EQ(source->describe(), "random, seed 77");
  expectImage(*source);
  EXPECT_EQ(verify(reader, *source), 0u);
  EXPECT_NE(reader.section("manifest").find("\"format\": 2,"), std::string::npos);
}

TEST(WeightSource, ShardsCutWeightsAnywhere) {
  for (uint64_t most : {uint64_t(0), uint64_t(1) << 30, uint64_t(777), uint64_t(4096)}) {
    Folder folder;
    writeSeparate(folder, "m", most);
    PackageReader reader(folder / "m");
    auto source = WeightSource::open(reader);
    const uint64_t image = source->size(), count = most && most < image ? (image + most - 1) / most : 1;
    EXPECT_EQ(folder.files().size(), 1 + count);
    EXPECT_EQ(source->mappable(), count == 1);
    EXPECT_TRUE(fs::exists(folder / (count == 1 ? "m.weights-00001-of-00001" : "m.weights-00002-of-" + std::string(5 - std::to_string(count).size(), '0') + std::to_string(count))));
    for (auto &entry : fs::directory_iterator(folder.path))
      EXPECT_TRUE(!most || entry.file_size() <= most || entry.path().filename() == "m");
    expectImage(*source);
    EXPECT_EQ(verify(reader, *source), 4u);
  }
}

TEST(WeightSource, ShardsAreFoundBesideTheFileItselfOrInAFolder) {
  Folder folder, other;
  writeSeparate(folder, "m", 5000);
  fs::create_symlink(folder / "m", other / "link");
  PackageReader link(other / "link");
  expectImage(*WeightSource::open(link));
  for (const std::string &name : folder.files())
    if (name != "m")
      fs::rename(folder / name, other / name);
  PackageReader reader(folder / "m");
  EXPECT_ERROR(WeightSource::open(reader), folder / "m.weights-00001-of-00003" + ": cannot open this shard of the weights: No such file");
  expectImage(*WeightSource::open(reader, other.path));
}

TEST(WeightSource, BadShardsAreNamed) {
  Folder folder;
  writeSeparate(folder, "m", 5000);
  PackageReader reader(folder / "m");
  const std::string shard = folder / "m.weights-00002-of-00003", good = readAll(shard);
  writeAll(shard, good.substr(0, 4999));
  EXPECT_ERROR(WeightSource::open(reader), shard + ": truncated shard: expected 5000 bytes, got 4999");
  writeAll(shard, good + "x");
  EXPECT_ERROR(WeightSource::open(reader), shard + ": wrong shard: expected 5000 bytes, got 5001");
  fs::remove(shard);
  fs::create_directory(shard);
  EXPECT_ERROR(WeightSource::open(reader), shard + ": expected a regular file");
  fs::remove(shard);
  std::string bad = good;
  bad[1234] ^= 1;
  writeAll(shard, bad);
  auto source = WeightSource::open(reader);
  EXPECT_ERROR(verify(reader, *source), shard + ": damaged shard: expected hash ");
  writeAll(shard, good);
  EXPECT_EQ(verify(reader, *source), 4u);
  fs::resize_file(shard, 100); // after it was opened
  EXPECT_ERROR(readWhole(*source), shard + ": expected ");
}

TEST(WeightSource, MaterialisedWeightsBelongToTheirPackage) {
  Folder folder, weights;
  const Model m = model(true);
  writePackage(folder / "p", m);
  PackageReader reader(folder / "p");
  EXPECT_ERROR(WeightSource::open(reader, weights.path), weights / "weights.json" + ": cannot open");
  ShardWriter writer(weights.path, "p", m.image.size(), 3000);
  writer.append(m.image.data(), m.image.size());
  ShardIndex index{m.manifest.weightsId(), m.image.size(), writer.close()};
  writer.rename();
  index.write(weights.path);
  writer.keep();
  expectImage(*WeightSource::open(reader, weights.path));

  Model other = m; // another seed: other bytes
  other.manifest.weightsOrigin.seed = 78;
  writePackage(folder / "q", other);
  PackageReader wrong(folder / "q");
  EXPECT_ERROR(WeightSource::open(wrong, weights.path), "weights.json: expected the weights of " + (folder / "q"));

  const std::string good = readAll(weights / "weights.json");
  for (size_t length = 0; length < good.size() - 2; length += 5) {
    writeAll(weights / "weights.json", good.substr(0, length));
    EXPECT_ERROR(WeightSource::open(reader, weights.path), "weights.json");
  }
}

TEST(WeightSource, DamageIsFoundByTheWeight) {
  Folder folder;
  Model m = model(false);
  m.image[m.manifest.weights[1].offset + 5] ^= 4;
  writePackage(folder / "p", m);
  PackageReader reader(folder / "p");
  EXPECT_ERROR(verify(reader, *WeightSource::open(reader)), "weight blk.0.ffn_gate_up is damaged");
}

TEST(ShardWriter, NothingIsLeftAfterAnError) {
  Folder folder;
  const std::string bytes(1000, 'b');
  {
    ShardWriter writer(folder.path, "m", 1000, 300);
    writer.append(bytes.data(), 700);
    EXPECT_ERROR(writer.close(), "expected 1000 bytes of weights, got 700");
  }
  EXPECT_TRUE(folder.files().empty());
  {
    ShardWriter writer(folder.path, "m", 1000, 300);
    EXPECT_ERROR(writer.append(bytes.data(), 1001), "got more");
    writer.append(bytes.data(), 1000);
    EXPECT_EQ(writer.close().size(), 4u);
    writer.rename();
    EXPECT_EQ(folder.files().size(), 4u);
  } // the package could not be finished
  EXPECT_TRUE(folder.files().empty());
  EXPECT_ERROR(ShardWriter(folder.path, "m", 1000000, 1), "--max-shard-size: expected at least 11 bytes");
  EXPECT_ERROR(ShardWriter("/nonexistent/folder", "m", 10, 0).append(bytes.data(), 10), "/nonexistent/folder/m.weights-00001-of-00001: cannot write");
}

TEST(ShardWriter, FullDisk) {
  Folder folder;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old, small{1000, 0};
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
  small.rlim_max = old.rlim_max;
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &small));
  const std::string bytes(5000, 'b');
  const std::string text = errorOf([&] { ShardWriter(folder.path, "m", 5000, 2000).append(bytes.data(), 5000); });
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_NE(text.find("m.weights-00001-of-00003: cannot write at byte 1000"), std::string::npos) << text;
  EXPECT_TRUE(folder.files().empty());
}

// What a runtime does with the manifest of a package without weights.
void load(const std::string &text) {
  const Manifest manifest = Manifest::parse(text, "p");
  if (manifest.weightsOrigin.kind != Manifest::WeightsOrigin::Kind::Random || manifest.weightsOrigin.bytes > (1 << 20))
    return;
  RandomSource source(manifest, "p");
  readWhole(source);
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Manifest, LiesAboutRandomWeightsAreNamed) {
  const std::string good = model(true).manifest.serialize();
  load(good);
  const std::tuple<const char *, const char *, const char *> lies[] = {
      {"\"kind\": \"random\"", "\"kind\": \"remote\"", "p: manifest.weights_origin.kind: expected separate or random, got remote"},
      {"\"kind\": \"random\"", "\"kin\": 1", "p: manifest.weights_origin: no key 'kind'"},
      {"\"seed\": 77", "\"seed\": -1", "weights_origin.seed: expected a non-negative integer, got -1"},
      {"\"seed\": 77", "\"see\": 77", "no key 'seed'"},
      {"\"recipe\": {", "\"recip\": {", "p: manifest.weights[0]: no key 'recipe'"},
      {"\"storage\": \"q4_0\"", "\"storage\": \"q9\"", "p: weight blk.0.attn_qkv: expected a known storage, got q9"},
      {"\"storage\": \"q4_0\"", "\"storage\": \"bf16\"", "has no layout"},
      {"\"layout\": \"n16_q4_0\"", "\"layout\": \"n17\"", "expected a known layout, got n17"},
      {"\"layout\": \"n16_q4_0\"", "\"layout\": \"rows_f32\"", "packed bytes, got"},
      {"\"rows\": 40,", "\"rows\": 400,", "weight blk.0.attn_qkv: expected"},
      {"\"rows\": 40,", "\"rows\": 18446744073709551615,", "expected 1 to 2147483648 rows and columns"},
      {"\"rows\": 40,", "\"rows\": 0,", "expected 1 to 2147483648 rows and columns"},
      {"\"rows\": 24,", "\"rows\": 25,", "expected sources with 40 rows, got more"},
      {"\"rows\": 24,", "\"rows\": 18446744073709551615,", "expected sources with 40 rows, got more"},
      {"\"rows\": 24,", "\"rows\": 1,", "expected sources with 40 rows, got 17"},
      {"\"deinterleave\": 8", "\"deinterleave\": 7", "heads of an even dimension"},
      {"\"interleave\": 16", "\"interleave\": 5", "expected two sources of equal rows"},
      {"\"cols\": 96", "\"cols\": 95", "expected"},
      {"\"value\": \"", "\"value\": \"0", "expected 8 hexadecimal digits a value"},
      {"\"value\": \"", "\"value\": \"00000000", "expected rows_f32 and 4 values, got layout 0 and 5"},
      {"\"value\": \"", "\"valu\": \"", "no key 'value'"},
      {"\"offset\": ", "\"offset\": 1844674407", "inside the"},
  };
  for (auto [from, to, part] : lies)
    EXPECT_ERROR(load(replaced(good, from, to)), part);
  // Two weights in one place.
  Manifest m = model(true).manifest;
  m.weights[1].offset = m.weights[2].offset;
  EXPECT_ERROR(load(m.serialize()), "expected an offset from ");
}

TEST(Manifest, LiesAboutShardsAreNamed) {
  Model m = model(false);
  const uint64_t size = m.image.size();
  m.manifest.weightsOrigin = {Manifest::WeightsOrigin::Kind::Separate, size, {{"m.weights-1", 1000, 5}, {"m.weights-2", size - 1000, 6}}};
  const std::string good = m.manifest.serialize();
  load(good);
  auto lie = [&](const std::string &from, const std::string &to, const std::string &part) {
    EXPECT_ERROR(load(replaced(good, from, to)), part);
  };
  lie("\"m.weights-2\"", "\"../m\"", "weights_origin.shards[1].file: expected a file name without a folder, got \"../m\"");
  lie("\"m.weights-2\"", "\"..\"", "a file name without a folder");
  lie("\"m.weights-2\"", "\"\"", "a file name without a folder");
  lie("\"m.weights-2\"", "\"a\\u0000b\"", "a file name without a folder");
  lie("\"bytes\": 1000", "\"bytes\": 999", "expected shards of " + std::to_string(size) + " bytes, got");
  lie("\"bytes\": 1000", "\"bytes\": 1001", "shards[1].bytes: expected 1 to");
  lie("\"bytes\": 1000", "\"bytes\": 0", "shards[0].bytes: expected 1 to");
  lie("\"bytes\": 1000", "\"bytes\": 18446744073709551615", "shards[0].bytes: expected 1 to");
  lie("\"shards\"", "\"shard\"", "no key 'shards'");
  lie("\"xxh3\": \"0000000000000005\"", "\"xxh3\": 5", "shards[0].xxh3: expected a string");
}

// Random damage: an Error or a reading, never a crash.
TEST(Manifest, SurvivesDamage) {
  std::mt19937 random(5);
  const std::string good[] = {model(true).manifest.serialize(), model(false).manifest.serialize()};
  for (int i = 0; i < 4000; ++i) {
    std::string text = good[i % 2];
    for (unsigned n = random() % 4 + 1; n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
      case 0: text[at] = char(random()); break;
      case 1: text.erase(at, random() % 20); break;
      case 2: text.insert(at, text.substr(random() % text.size(), random() % 40)); break;
      default: // a digit: numbers of all sizes
        if (const size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos)
          text.replace(digit, 1, std::to_string(random() % 3 ? random() % 100 : uint64_t(random()) * random()));
      }
    }
    errorOf([&] { load(text); });
  }
}

} // namespace
