#include "test/ErrorOf.h"
#include "FakePackage.h"
#include "llmc/Support/Error.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <csignal>

using namespace llmc;
using namespace fake;

namespace {

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

// Everything that a runtime does with a package before it loads it.
void readAll(const std::string &path) {
  PackageReader reader(path);
  reader.manifest();
  for (const llmc_package_section &s : reader.sections())
    if (std::string(s.name) != "weights")
      reader.section(s.name);
}

TEST(Package, RoundTrip) {
  TemporaryFolder folder;
  const std::string path = folder / "p", stub = folder / "stub";
  writeFile(stub, std::string(5000, 's'));
  writePackage(path, stub);
  PackageReader reader(path);
  EXPECT_EQ(reader.section("template"), kTemplate);
  EXPECT_EQ(reader.section("module.avx2"), readFile(LLMC_FAKE_MODULE));
  EXPECT_EQ(reader.weights().size, kWeightsBytes);
  EXPECT_EQ(reader.weights().offset % (2 << 20), 0u);
  for (const llmc_package_section &s : reader.sections())
    EXPECT_EQ(s.offset % 4096, 0u);
  const std::string bytes = readFile(path);
  EXPECT_EQ(bytes.substr(0, 5000), std::string(5000, 's'));
  const std::vector<uint8_t> expected = weights();
  EXPECT_EQ(0, std::memcmp(bytes.data() + reader.weights().offset, expected.data(), expected.size()));
  const Manifest m = reader.manifest();
  EXPECT_EQ(m.serialize(), manifest().serialize());
  EXPECT_EQ(m.weights[1].name, "output.weight");
  EXPECT_EQ(m.weights[1].xxh3, manifest().weights[1].xxh3);
  EXPECT_EQ(m.model.maxContext, kMaxContext);
  struct stat info;
  ASSERT_EQ(0, stat(path.c_str(), &info));
  EXPECT_EQ(info.st_mode & 0777, 0755u);
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(Package, EveryTruncationIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder / "p", cut = folder / "cut";
  writePackage(path, "");
  const std::string bytes = readFile(path);
  std::vector<size_t> lengths = {0, 1, 7, 8, 47, 48, bytes.size() - 1, bytes.size() - 8, bytes.size() - 48, bytes.size() - 49};
  PackageReader reader(path);
  for (const llmc_package_section &s : reader.sections())
    lengths.insert(lengths.end(), {s.offset, s.offset + s.size / 2, s.offset + s.size});
  for (size_t length : lengths) {
    writeFile(cut, bytes.substr(0, length));
    EXPECT_ERROR(readAll(cut), "no package");
  }
  writeFile(cut, bytes.substr(0, 100) + bytes.substr(200)); // a hole
  EXPECT_ERROR(readAll(cut), "damaged package: expected " + std::to_string(bytes.size()) + " bytes, got");
}

TEST(Package, EveryLieIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder / "p", bad = folder / "bad";
  writePackage(path, "");
  const std::string good = readFile(path);
  auto trailer = [&](const std::function<void(llmc_package_trailer &)> &change, const std::string &part) {
    std::string bytes = good;
    llmc_package_trailer t;
    std::memcpy(&t, bytes.data() + bytes.size() - sizeof t, sizeof t);
    change(t);
    std::memcpy(bytes.data() + bytes.size() - sizeof t, &t, sizeof t);
    writeFile(bad, bytes);
    EXPECT_ERROR(readAll(bad), part);
  };
  trailer([](auto &t) { t.magic[0] = 'X'; }, "no package");
  trailer([](auto &t) { t.version = 2; }, "expected package version 1, got 2");
  trailer([](auto &t) { t.file_size += 1; }, "damaged package: expected");
  trailer([](auto &t) { t.count = 0xffffffff; }, "does not end at the trailer");
  trailer([](auto &t) { t.table_offset = UINT64_MAX; }, "does not end at the trailer");
  trailer([](auto &t) { t.table_offset += 64; }, "does not end at the trailer");
  trailer([](auto &t) { t.table_xxh3 ^= 1; }, "the table of sections has a wrong hash");
  auto entry = [&](const std::string &name, const std::function<void(llmc_package_section &)> &change, const std::string &part) {
    std::string bytes = good;
    llmc_package_trailer t;
    std::memcpy(&t, bytes.data() + bytes.size() - sizeof t, sizeof t);
    std::vector<llmc_package_section> table(t.count);
    std::memcpy(table.data(), bytes.data() + t.table_offset, t.count * sizeof table[0]);
    for (llmc_package_section &s : table)
      if (s.name == name)
        change(s);
    t.table_xxh3 = packageHash(table.data(), t.count * sizeof table[0]);
    std::memcpy(bytes.data() + t.table_offset, table.data(), t.count * sizeof table[0]);
    std::memcpy(bytes.data() + bytes.size() - sizeof t, &t, sizeof t);
    writeFile(bad, bytes);
    EXPECT_ERROR(readAll(bad), part);
  };
  entry("weights", [](auto &s) { s.offset = UINT64_MAX; }, "section 'weights'");
  entry("weights", [](auto &s) { s.size = UINT64_MAX; }, "ends beyond the table");
  entry("weights", [](auto &s) { s.size -= 64; }, "weight 'output.weight'");
  entry("weights", [](auto &s) { s.offset -= 4096; }, "expected a multiple of 2097152");
  entry("template", [](auto &s) { std::memset(s.name, 'a', sizeof s.name); }, "a section has no name");
  entry("template", [](auto &s) { s.name[0] = 0; }, "a section has no name");
  entry("template", [](auto &s) { std::strcpy(s.name, "weights"); }, "two sections are named 'weights'");
  entry("template", [](auto &s) { s.size += 1; }, "section 'template' has a wrong hash");
  entry("manifest", [](auto &s) { s.name[0] = 'M'; }, "the package has no section 'manifest'");
}

TEST(Package, DamagedSectionsAreNamed) {
  TemporaryFolder folder;
  const std::string path = folder / "p", bad = folder / "bad";
  writePackage(path, "");
  const std::string good = readFile(path);
  PackageReader reader(path);
  for (const llmc_package_section &s : reader.sections()) {
    if (std::string(s.name) == "weights")
      continue;
    std::string bytes = good;
    bytes[s.offset + s.size / 2] ^= 0x10;
    writeFile(bad, bytes);
    EXPECT_ERROR(readAll(bad), "section '" + std::string(s.name) + "' has a wrong hash");
  }
}

TEST(Package, NoPackageAtAll) {
  TemporaryFolder folder;
  EXPECT_ERROR(PackageReader(folder / "absent"), "absent: cannot open: No such file");
  EXPECT_ERROR(PackageReader(folder.path.string()), "expected a regular file");
  writeFile(folder / "text", std::string(1000, 'x'));
  EXPECT_ERROR(PackageReader(folder / "text"), "no package, or a truncated one");
}

TEST(Manifest, WrongKeysAreNamed) {
  const std::string good = manifest().serialize();
  auto with = [&](const std::string &from, const std::string &to, const std::string &part) {
    std::string text = good;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_ERROR(Manifest::parse(text, "p"), part);
  };
  with("\"format\": 1", "\"format\": 3", "p: manifest.format: expected at most 2, got 3; a newer llmc made this package");
  with("\"format\": 1", "\"form\": 1", "no key 'format'");
  with("\"hidden\": 32", "\"hidden\": -32", "p: manifest.model.hidden: expected a non-negative integer, got -32");
  with("\"hidden\": 32", "\"hidden\": 32.5", "expected a non-negative integer, got 32.5");
  with("\"compute\": \"f32\"", "\"compute\": []", "p: manifest.compute: expected a string");
  with("\"xxh3\": \"", "\"xxh3\": \"zz", "p: manifest.weights[0].xxh3: expected 16 hexadecimal digits");
  with("\"block\": 16", "\"block\": 4294967296", "p: manifest.kv.block");
  EXPECT_ERROR(Manifest::parse("", "p"), "p: the manifest is no JSON");
  EXPECT_ERROR(Manifest::parse("[1]", "p"), "expected an object, got array");
  EXPECT_ERROR(Manifest::parse(good.substr(0, good.size() / 2), "p"), "no JSON");
}

TEST(PackageWriter, NothingIsLeftAfterAnError) {
  TemporaryFolder folder;
  const std::string path = folder / "p";
  writeFile(path, "the old one");
  { // thrown away in the middle
    PackageWriter writer(path);
    writer.section("manifest", "{}");
  }
  EXPECT_ERROR(PackageWriter(path).stub(folder / "absent"), "absent: cannot read the runtime");
  EXPECT_EQ(readFile(path), "the old one");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 1);
  EXPECT_ERROR(PackageWriter("/nonexistent/folder/p"), "/nonexistent/folder/p: cannot write");
  EXPECT_ERROR(PackageWriter(folder.path.string()), "got a directory");
  PackageWriter writer(path);
  writer.section("manifest", "{}");
  EXPECT_ERROR(writer.section("manifest", "{}"), "exists already");
  EXPECT_ERROR(writer.section(std::string(48, 'n'), "{}"), "cannot begin");
}

// A full disk, by a limit on the size of files.
TEST(PackageWriter, FullDiskNamesThePathAndLeavesNothing) {
  TemporaryFolder folder;
  const std::string path = folder / "p";
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old, small{100000, 0};
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
  small.rlim_max = old.rlim_max;
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &small));
  const std::string text = errorOf([&] { writePackage(path, ""); });
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_NE(text.find(path + ": cannot write at byte"), std::string::npos) << text;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

} // namespace
