//===- LinksTest.cpp - symbolic links in model folders --------------------===//
#include "TestModels.h"
#include "llmc/Support/Error.h"

#include <filesystem>

using namespace llmc;
using namespace llmc::test;
namespace fs = std::filesystem;

namespace {

const char *const sideFiles[] = {"config.json", "tokenizer.json", "model.safetensors"};

class Links : public ::testing::Test {
protected:
  TempDir dir;
  std::string folder = dir.file("model");

  void SetUp() override {
    dir.write("model/config.json", tinyConfig());
    dir.write("model/tokenizer.json", tinyTokenizer());
    dir.write("model/model.safetensors", safetensors(tinyTensors()));
  }
  /// Moves model/NAME to PATH, with a link in its place that says `target`.
  void moveAndLink(const std::string &name, const std::string &path, const std::string &target) {
    fs::create_directories(fs::path(dir.file(path)).parent_path());
    fs::rename(folder + "/" + name, dir.file(path));
    fs::create_symlink(target, folder + "/" + name);
  }
};

TEST_F(Links, HubCache) {
  fs::create_directories(dir.file("hub/models--a--b/snapshots"));
  fs::rename(folder, dir.file("hub/models--a--b/snapshots/0123abcd"));
  folder = dir.file("hub/models--a--b/snapshots/0123abcd");
  for (const char *name : sideFiles)
    moveAndLink(name, std::string("hub/models--a--b/blobs/") + name, std::string("../../blobs/") + name);
  EXPECT_EQ(loadModelFacts(folder).layers, 2);
  // refs and snapshots may be reached by links as well; so may the blobs.
  fs::create_symlink("hub/models--a--b/snapshots/0123abcd", dir.file("latest"));
  EXPECT_EQ(loadModelFacts(dir.file("latest")).layers, 2);
  EXPECT_EQ(loadModelFacts(dir.file("latest/")).layers, 2);
  fs::rename(dir.file("hub/models--a--b/blobs"), dir.file("blobs"));
  fs::create_symlink("../../blobs", dir.file("hub/models--a--b/blobs"));
  expectError(folder, {"config.json", "got a link to"}); // another disk's folder that is no hub cache
}

TEST_F(Links, FoldersOfOlderHubClients) {
  // --local-dir with links: the folder is anywhere, its files are in the cache.
  fs::create_directories(dir.file("hub/models--a--b/snapshots"));
  for (const char *name : sideFiles)
    moveAndLink(name, std::string("hub/models--a--b/blobs/") + name, dir.file("hub/models--a--b/blobs/") + name);
  EXPECT_EQ(loadModelFacts(folder).layers, 2);
}

TEST_F(Links, InsideTheFolder) {
  moveAndLink("model.safetensors", "model/data/weights", "data/weights");
  moveAndLink("config.json", "model/data/config", folder + "/data/config");
  EXPECT_EQ(loadModelFacts(folder).layers, 2);
  fs::create_symlink("model", dir.file("alias"));
  EXPECT_EQ(loadModelFacts(dir.file("alias")).layers, 2);
}

TEST_F(Links, OutOfTheFolder) {
  for (const char *name : sideFiles) {
    moveAndLink(name, "elsewhere/file", "../elsewhere/file");
    expectError(folder, {std::string("/model/") + name + ": expected a file inside the model folder", "got a link to",
                         "/elsewhere/file"});
    fs::remove(folder + "/" + name);
    fs::rename(dir.file("elsewhere/file"), folder + "/" + name);
  }
  // "model2" starts like "model".
  moveAndLink("config.json", "model2/config.json", "../model2/config.json");
  expectError(folder, {"config.json", "got a link to"});
}

TEST_F(Links, ShardsOutOfTheFolder) {
  std::string map;
  for (const StoredTensor &tensor : tinyTensors())
    map += (map.empty() ? "\"" : ",\"") + tensor.name + "\": \"sub/x.safetensors\"";
  dir.write("model/model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  fs::create_directories(dir.file("other"));
  fs::rename(folder + "/model.safetensors", dir.file("other/x.safetensors"));
  fs::create_directory_symlink("../other", folder + "/sub");
  expectError(folder, {"sub/x.safetensors", "got a link to", "/other/x.safetensors"});
  fs::remove(folder + "/sub");
  fs::create_directory(folder + "/sub");
  fs::create_symlink("../../other/x.safetensors", folder + "/sub/x.safetensors");
  expectError(folder, {"sub/x.safetensors", "got a link to"});
}

TEST_F(Links, ToNothingAndToThemselves) {
  fs::remove(folder + "/tokenizer.json");
  fs::create_symlink("tokenizer.json", folder + "/tokenizer.json");
  expectError(folder, {"tokenizer.json"});
  fs::remove(folder + "/tokenizer.json");
  fs::create_symlink("/no/such/file", folder + "/tokenizer.json");
  expectError(folder, {"tokenizer.json"});
  fs::remove(folder + "/model.safetensors");
  fs::create_symlink("/dev/zero", folder + "/model.safetensors");
  expectError(folder, {"model.safetensors", "/dev/zero"});
}

} // namespace
