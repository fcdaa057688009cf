//===- ScratchFolder.cpp --------------------------------------------------===//
#include "llmc/Support/ScratchFolder.h"

#include "llmc/Support/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace llmc;

void llmc::writeFile(const std::string &path, std::string_view bytes) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  bool good = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int reason = errno;
  if (file && std::fclose(file) != 0 && good) {
    good = false;
    reason = errno;
  }
  if (good)
    return;
  std::remove(path.c_str());
  throw Error(path + ": cannot write: " + std::strerror(reason));
}

std::string llmc::readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    throw Error(path + ": cannot read: " + std::strerror(errno));
  return bytes;
}

ScratchFolder::ScratchFolder() {
  const char *parent = std::getenv("TMPDIR");
  path = std::string(parent && *parent ? parent : "/tmp") + "/llmc-XXXXXX";
  if (!mkdtemp(path.data()))
    throw Error(path + ": cannot create a folder: " + std::strerror(errno));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}
