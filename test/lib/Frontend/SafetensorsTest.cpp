//===- SafetensorsTest.cpp - honest and hostile headers -------------------===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <sys/resource.h>

using namespace llmc;
using namespace llmc::test;

namespace {

class Safetensors : public ::testing::Test {
protected:
  TempDir dir;
  void SetUp() override { tinyFolder(dir); }
  void refuse(const std::string &bytes, std::vector<std::string> parts) {
    dir.write("model.safetensors", bytes);
    parts.push_back("model.safetensors");
    expectError(dir.path, parts);
  }
};

const std::string oneTensor = R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";

TEST_F(Safetensors, HeaderLength) {
  std::string good = safetensorsRaw(oneTensor, 16);
  auto with = [&](uint64_t length) { return bytesOf(length) + good.substr(8); };
  refuse(with(uint64_t(1) << 63), {"header length at byte 0", "too large"});
  refuse(with(~uint64_t(0)), {"too large"});
  refuse(with(100000001), {"past the end of the file", "100000001"});
  refuse(with(10000), {"past the end of the file", "10000"});
  refuse(with(10), {"header: byte", "expected JSON"});
  refuse(with(0), {"at least 2, got 0"});
  refuse(good.substr(0, 7), {"at least 8 bytes, got 7"});
  refuse("", {"at least 8 bytes, got 0"});
  // Good in itself, so that what is missed is the model's tensors.
  refuse(good, {"model.embed_tokens.weight", "got none"});
  refuse(safetensorsRaw(oneTensor + "     \n", 16), {"model.embed_tokens.weight", "got none"});
  refuse(safetensorsRaw(" " + oneTensor, 16), {"byte 8", "expected \"{\""});
}

TEST_F(Safetensors, ClaimedSizesDriveNoAllocation) {
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (uint64_t length : {uint64_t(1) << 63, uint64_t(1) << 40, uint64_t(1) << 30, uint64_t(200) << 20, uint64_t(1000)})
    refuse(bytesOf(length) + oneTensor + std::string(100, '\0'), {"header length at byte 0"});
  refuse(safetensorsRaw(R"({"t":{"dtype":"U8","shape":[1152921504606846976],"data_offsets":[0,1152921504606846976]}})", 8),
         {"data_offsets[1]", "end of the file"});
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "KiB of peak memory from claimed sizes";
}

TEST_F(Safetensors, Metadata) {
  auto with = [](const std::string &metadata) {
    return safetensorsRaw("{\"__metadata__\":" + metadata + R"(,"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 8);
  };
  refuse(with(R"({"format":"pt"})"), {"model.embed_tokens.weight"}); // good as far as it goes
  refuse(with(R"({"format":1})"), {"\"__metadata__\".format", "a string, got 1"});
  refuse(with(R"({"format":null})"), {"\"__metadata__\".format"});
  refuse(with("[]"), {"\"__metadata__\"", "an object"});
  refuse(with(R"({"a":"x","a":"y"})"), {"repeated key \"a\""});
}

TEST_F(Safetensors, PaddedHeaderOfAModel) {
  std::string good = safetensors(tinyTensors());
  uint64_t length;
  std::memcpy(&length, good.data(), 8);
  dir.write("model.safetensors",
            bytesOf(length + 64) + good.substr(8, length) + std::string(64, ' ') + good.substr(8 + length));
  EXPECT_EQ(loadModelFacts(dir.path).find("token_embd.weight")->offset, 8 + length + 64);
}

TEST_F(Safetensors, Truncated) {
  std::string good = safetensors(tinyTensors());
  uint64_t length;
  std::memcpy(&length, good.data(), 8);
  std::string last = tinyTensors().back().name;
  refuse(good.substr(0, good.size() - 1), {last, "end of the file"});
  refuse(good.substr(0, good.size() - 80), {last, "end of the file"});
  refuse(good.substr(0, 8 + length), {"model.embed_tokens.weight", "end of the file"});
  refuse(good.substr(0, 20), {"past the end"});
  for (size_t size = 0; size < good.size(); size += size < 4000 ? 13 : 997)
    refuse(good.substr(0, size), {"expected"});
}

TEST_F(Safetensors, Entries) {
  auto entry = [&](const std::string &dtype, const std::string &shape, const std::string &offsets) {
    return safetensorsRaw(
        R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 16);
  };
  refuse(entry("\"F32\"", "[4]", "[0,12]"), {"\"t\".data_offsets", "expected 16 bytes", "got 12"});
  refuse(entry("\"F32\"", "[3]", "[0,16]"), {"expected 12 bytes"});
  refuse(entry("\"F32\"", "[4]", "[0,17]"), {"data_offsets[1]", "end of the file"});
  refuse(entry("\"F32\"", "[4]", "[16,0]"), {"data_offsets[1]"});
  refuse(entry("\"F32\"", "[4]", "[-16,0]"), {"data_offsets[0]"});
  refuse(entry("\"F32\"", "[4]", "[0]"), {"two offsets"});
  refuse(entry("\"F32\"", "[4]", "[0,18446744073709551615]"), {"data_offsets[1]"});
  refuse(entry("\"F32\"", "[-4]", "[0,16]"), {"shape[0]"});
  refuse(entry("\"F32\"", "[4611686018427387904,4]", "[0,0]"), {"shape[0]", "2^60"});
  refuse(entry("\"F32\"", "[0,4611686018427387904]", "[0,0]"), {"shape[1]"});
  refuse(entry("\"F32\"", "[4294967296,4294967296]", "[0,0]"), {"shape[1]", "2^60"});
  refuse(entry("\"F32\"", "4", "[0,16]"), {"shape", "an array"});
  refuse(entry("\"Q4\"", "[4]", "[0,16]"), {"dtype", "\"Q4\""});
  refuse(entry("7", "[4]", "[0,16]"), {"dtype", "a string"});
  refuse(safetensorsRaw(R"({"t":3})", 0), {"\"t\"", "an object"});
  refuse(safetensorsRaw(R"({"t":{}})", 0), {"\"t\"", "dtype"});
  refuse(safetensorsRaw(R"({})", 16), {"cover the 16 bytes", "got 0"});
}

TEST_F(Safetensors, OverlapsGapsAndRepeats) {
  auto two = [](const char *first, const char *second, const char *name) {
    return std::string(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":)") + first + R"(},")" + name +
           R"(":{"dtype":"U8","shape":[8],"data_offsets":)" + second + "}}";
  };
  refuse(safetensorsRaw(two("[0,8]", "[4,12]", "b"), 16), {"\"b\"", "start after tensor \"a\""});
  refuse(safetensorsRaw(two("[0,8]", "[0,8]", "b"), 8), {"start after"});
  refuse(safetensorsRaw(two("[0,8]", "[9,17]", "b"), 17), {"cover the 17 bytes", "got 16"});
  refuse(safetensorsRaw(two("[0,8]", "[8,16]", "b"), 17), {"cover the 17 bytes"});
  refuse(safetensorsRaw(two("[0,8]", "[8,16]", "a"), 16), {"repeated key \"a\""});
}

} // namespace
