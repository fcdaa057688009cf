//===- Shards.cpp - which files hold the tensors --------------------------===//
#include "../FactsChecks.h"
#include "HuggingFace.h"
#include "Links.h"
#include "llmc/Support/Text.h"

#include <filesystem>
#include <unordered_map>

using namespace llmc;
using namespace llmc::huggingface;
namespace fs = std::filesystem;

std::map<std::string, std::string> huggingface::readIndex(const JsonView &index) {
  JsonView weights = index.get("weight_map");
  std::map<std::string, std::string> shards;
  for (const JsonMember &member : weights.object())
    shards.emplace(member.key, checkedFileName(weights.at(member)));
  if (shards.empty())
    throw weights.error("expected tensors, got none");
  return shards;
}

/// Never throws: a name that the file system refuses does not exist.
static bool exists(const std::string &path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

bool huggingface::hasNoWeights(const std::string &folder) {
  return !exists(folder + "/model.safetensors") && !exists(folder + "/model.safetensors.index.json");
}

namespace {

class FolderTensors {
public:
  FolderTensors(const std::string &folder, ModelFacts &facts) : folder(folder), facts(facts) {}

  void run() {
    std::string single = folder + "/model.safetensors", index = single + ".index.json";
    // transformers prefers the single file as well.
    if (exists(single)) {
      readShard(single, nullptr);
    } else if (exists(index)) {
      readSharded(index);
    } else {
      throw Error(folder + ": expected model.safetensors or model.safetensors.index.json, got neither" +
                  hint());
    }
    refuseOtherTypes();
  }

private:
  std::string hint() const {
    for (const char *other :
         {"pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.safetensors"})
      if (exists(folder + "/" + other))
        return std::string(" (") + other + " is not supported)";
    return " (--weights=random:SEED needs none)";
  }

  void readSharded(const std::string &indexPath) {
    JsonDocument document = JsonDocument::readFile(indexPath);
    std::map<std::string, std::string> index = readIndex(document.root());
    std::map<std::string, std::set<std::string>> promised; // shard -> tensors
    for (const auto &[tensor, shard] : index)
      promised[shard].insert(tensor);
    for (const auto &[shard, names] : promised) {
      std::string path = folder + "/" + shard;
      if (!exists(path))
        throw Error(indexPath + ": tensor " + quote(*names.begin()) + ": expected the shard " + quote(shard) +
                    ", got no such file");
      checkLinks(folder, shard);
      readShard(path, &names);
      for (const std::string &name : names)
        if (!seen.count(name))
          throw Error(indexPath + ": tensor " + quote(name) + ": expected it in the shard " + quote(shard) +
                      ", got none there");
    }
  }

  /// `promised`: what the index says is in this shard; the rest is not used.
  void readShard(const std::string &path, const std::set<std::string> *promised) {
    SafetensorsHeader header = readSafetensors(InputFile::open(path));
    uint32_t file = static_cast<uint32_t>(facts.files.size());
    facts.files.push_back(path);
    for (const auto &[name, type] : header.otherTypes)
      if (take(name, path, promised))
        otherTypes.emplace(name, path + ": tensor " + quote(name) + ": expected type F32, F16, BF16 or F8_E4M3, got " +
                                     type);
    for (TensorFact &tensor : header.tensors)
      if (take(tensor.sourceName, path, promised)) {
        tensor.file = file;
        tensor.name = canonicalName(tensor.sourceName, facts.postNorms);
        facts.tensors.push_back(std::move(tensor));
      }
  }

  bool take(const std::string &name, const std::string &path, const std::set<std::string> *promised) {
    if (promised && !promised->count(name)) {
      facts.warnings.push_back(path + ": tensor " + quote(name) + ": not in the index, not used");
      return false;
    }
    seen.insert(name);
    return true;
  }

  /// Of another type and part of the model: refused. Else only worth a warning.
  void refuseOtherTypes() {
    for (const auto &[name, message] : otherTypes) {
      std::string canonical = canonicalName(name, facts.postNorms);
      bool buffer = name.find("inv_freq") != std::string::npos ||
                    name.find("rotary_emb") != std::string::npos || name.ends_with(".attn.bias");
      if (canonical != name && !buffer)
        throw Error(message);
      facts.warnings.push_back(message + ", not used");
    }
  }

  const std::string &folder;
  ModelFacts &facts;
  std::set<std::string> seen;
  std::map<std::string, std::string> otherTypes;
};

} // namespace

void huggingface::readTensors(const std::string &folder, ModelFacts &facts) {
  FolderTensors(folder, facts).run();
  attachScales(facts);
}
