//===- Links.cpp ----------------------------------------------------------===//
#include "Links.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <filesystem>

using namespace llmc;
namespace fs = std::filesystem;

const std::string &huggingface::checkedFileName(const JsonView &view) {
  const std::string &name = view.string();
  if (name.empty())
    throw view.error("expected the name of a shard, got an empty one");
  if (name.find('\0') != std::string::npos)
    throw view.error("expected a shard name without a NUL, got " + quote(name));
  if (name.front() == '/')
    throw view.error("expected a shard inside the model folder, got the absolute path " + quote(name));
  for (const fs::path &part : fs::path(name))
    if (part == "..")
      throw view.error("expected a shard inside the model folder, got " + quote(name));
  return name;
}

void huggingface::checkLinks(const std::string &folder, const std::string &name) {
  std::error_code failure, ignored;
  fs::path target = fs::canonical(fs::path(folder) / name, failure);
  if (failure) // nothing there, or a link to nothing: whoever opens it says so
    return;
  fs::path root = fs::canonical(folder, failure);
  if (!failure && std::mismatch(root.begin(), root.end(), target.begin(), target.end()).first == root.end())
    return;
  fs::path blobs = target.parent_path();
  if (blobs.filename() == "blobs" && fs::is_directory(blobs.parent_path() / "snapshots", ignored))
    return;
  throw Error(folder + "/" + name + ": expected a file inside the model folder, or in the blobs of a hub cache, got a link to " +
              quote(target.string(), 200));
}

void huggingface::checkSideFileLinks(const std::string &folder) {
  for (const char *name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
        "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja",
        "chat_template.json", "model.safetensors", "model.safetensors.index.json"})
    checkLinks(folder, name);
}
