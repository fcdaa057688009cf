//===- Weights.cpp - the weights as files, and their hashes ---------------===//
#include "llmc/Support/Error.h"
#include "runtime/package/Shards.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/Progress.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <sys/statvfs.h>
#include <unistd.h>

namespace llmc {

namespace {

constexpr uint64_t kPiece = 64u << 20;

struct WeightsFlags {
  LoadFlags load;
  std::string materialize;
  uint64_t maxShard = 0;
  bool check = false;
};

void prepareFolder(const std::string &folder, uint64_t bytes) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  struct statvfs disk;
  if (failure || statvfs(folder.c_str(), &disk) != 0)
    throw Error("--materialize: " + folder + ": cannot use this folder: " + (failure ? failure.message() : std::strerror(errno)));
  if (const uint64_t room = uint64_t(disk.f_bavail) * disk.f_frsize; room < bytes)
    throw Error("--materialize: " + folder + ": expected " + std::to_string(bytes) + " bytes free on its disk, got " +
                std::to_string(room));
}

std::string baseName(const std::string &path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.empty() ? "model" : name;
}

// The next piece is read (or generated, by all threads) while one is hashed and written.
int materialize(const WeightsFlags &flags, Model &model) {
  const auto start = std::chrono::steady_clock::now();
  const WeightSource &source = model.weights();
  const std::string &folder = flags.materialize;
  prepareFolder(folder, source.size());
  ShardWriter writer(folder, baseName(model.package().path()), source.size(), flags.maxShard);
  std::vector<char> pieces[2];
  auto fetch = [&](uint64_t at, std::vector<char> &piece) {
    piece.resize(std::min(kPiece, source.size() - at));
    source.readParallel(at, piece.data(), piece.size(), unsigned(flags.load.threads));
  };
  {
    Progress progress("wrote", source.size());
    std::future<void> next = std::async(std::launch::async, [&] { fetch(0, pieces[0]); });
    for (uint64_t at = 0, index = 0; at < source.size(); at += kPiece, ++index) {
      next.get();
      const std::vector<char> &piece = pieces[index % 2];
      if (at + piece.size() < source.size())
        next = std::async(std::launch::async, [&, at, index] { fetch(at + kPiece, pieces[(index + 1) % 2]); });
      writer.append(piece.data(), piece.size());
      progress(at + piece.size());
    }
  }
  ShardIndex index{model.manifest().weightsId(), source.size(), writer.close()};
  writer.rename();
  index.write(folder);
  writer.keep();
  const double seconds = secondsSince(start), gigabytes = double(source.size()) / 1e9;
  std::printf("wrote %.3f GB in %zu files to %s in %.2f s (%.2f GB/s); load them with --weights-dir\n", gigabytes,
              index.shards.size(), folder.c_str(), seconds, gigabytes / std::max(seconds, 1e-9));
  return 0;
}

int check(const WeightsFlags &flags, Model &model) {
  const WeightSource &source = model.weights();
  uint64_t compared = 0;
  {
    Progress progress("checked", source.size());
    compared = verifyWeights(source, model.manifest(), unsigned(flags.load.threads), std::ref(progress));
  }
  const size_t all = model.manifest().weights.size();
  std::printf("%llu of %zu weights have the hash of the manifest (%s)\n", static_cast<unsigned long long>(compared), all,
              source.describe().c_str());
  if (compared < all)
    std::printf("%llu have none there: random weights are what their recipe makes\n", static_cast<unsigned long long>(all - compared));
  return 0;
}

int weights(const WeightsFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  if (!flags.materialize.empty())
    return materialize(flags, model);
  if (flags.check)
    return check(flags, model);
  std::printf("%zu weights, %llu bytes: %s\n", model.manifest().weights.size(),
              static_cast<unsigned long long>(model.weights().size()), model.weights().describe().c_str());
  return 0;
}

} // namespace

Command addWeights(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<WeightsFlags>();
  CLI::App *sub = app.add_subcommand("weights", "say where the weights are, check their hashes, write them as files");
  auto *write = sub->add_option("--materialize", flags->materialize, "write the weights as shard files and an index into DIR");
  write->type_name("DIR");
  addSize(*sub, "--max-shard-size", flags->maxShard, "of one file of --materialize (default: one file)");
  sub->get_option("--max-shard-size")->needs(write);
  sub->add_flag("--check", flags->check, "compare every weight and shard with its hash")->excludes(write);
  addWeightsFlags(*sub, flags->load);
  sub->footer("Example:\n  " + name + " weights --materialize /tmp/weights --max-shard-size 1GiB\n  " + name +
              " bench --weights-dir /tmp/weights");
  return {sub, [flags, name] { return weights(*flags, name); }};
}

} // namespace llmc
