//===- KernelCache.cpp - compiled kernels by content ----------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Target/KernelCompiler.h"
#include "llmc/Target/TargetInfo.h"

#include "llvm/Config/llvm-config.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace llmc;
namespace fs = std::filesystem;

std::string KernelCache::defaultFolder() {
  auto variable = [](const char *name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (std::string folder = variable("LLMC_CACHE_DIR"); !folder.empty())
    return folder;
  if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty())
    return folder + "/llmc";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/llmc";
}

KernelCache::KernelCache(std::string where) : folder(std::move(where)) {
  if (folder.empty())
    return;
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  std::string self = readFile("/proc/self/exe"); // any change of the compiler makes other kernels
  compilerHash = XXH3_64bits(self.data(), self.size());
}

std::string KernelCache::key(const KernelJob &job) const {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  auto add = [&](std::string_view part) {
    uint64_t size = part.size(); // parts must not run into each other
    XXH3_128bits_update(&state, &size, sizeof size);
    XXH3_128bits_update(&state, part.data(), part.size());
  };
  add(job.bytecode);
  if (const GPUTarget *gpu = findGPUTarget(job.isa)) {
    for (const std::string &part : {gpu->isa, gpu->features, job.ptxasVersion})
      add(part);
  } else {
    CPUTarget target = lookupCPUTarget(job.isa);
    for (const std::string &part : {target.isa, target.cpu, target.features})
      add(part);
  }
  add(job.form);
  add(LLVM_VERSION_STRING);
  XXH3_128bits_update(&state, &compilerHash, sizeof compilerHash);
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

// A file is the code, then its XXH3-64.
std::optional<std::string> KernelCache::load(const std::string &key) const {
  if (folder.empty())
    return {};
  std::ifstream file(folder + "/" + key, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  uint64_t hash;
  if (!file || bytes.size() < sizeof hash)
    return {};
  std::memcpy(&hash, bytes.data() + bytes.size() - sizeof hash, sizeof hash);
  bytes.resize(bytes.size() - sizeof hash);
  if (XXH3_64bits(bytes.data(), bytes.size()) != hash)
    return {};
  return bytes;
}

void KernelCache::store(const std::string &key, std::string_view code) const {
  if (folder.empty())
    return;
  uint64_t hash = XXH3_64bits(code.data(), code.size());
  std::string bytes(code);
  bytes.append(reinterpret_cast<const char *>(&hash), sizeof hash);
  std::string temporary = folder + "/" + key + "." + std::to_string(getpid());
  try {
    writeFile(temporary, bytes);
  } catch (const Error &) {
    return; // a full or absent cache costs time, nothing else
  }
  if (std::rename(temporary.c_str(), (folder + "/" + key).c_str()) != 0)
    std::remove(temporary.c_str());
}
