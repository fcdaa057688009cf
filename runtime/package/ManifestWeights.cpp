//===- ManifestWeights.cpp ------------------------------------------------===//
#include "runtime/package/ManifestWeights.h"
#include "runtime/package/PackageReader.h"

#include <bit>

namespace llmc {

namespace {

using Origin = Manifest::WeightsOrigin;
constexpr std::pair<Origin::Kind, const char *> kKinds[] = {{Origin::Kind::Separate, "separate"}, {Origin::Kind::Random, "random"}};

std::string floatsToHex(const std::vector<float> &values) {
  std::string text;
  for (float value : values)
    text += hexDigits(std::bit_cast<uint32_t>(value)).substr(8);
  return text;
}

std::vector<float> hexToFloats(const JsonObject &o, const char *key) {
  const std::string digits = o.text(key);
  if (digits.size() % 8 != 0 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error(o.where() + "." + key + ": expected 8 hexadecimal digits a value, got " + digits.substr(0, 80));
  std::vector<float> values;
  for (size_t at = 0; at < digits.size(); at += 8)
    values.push_back(std::bit_cast<float>(uint32_t(std::stoul(digits.substr(at, 8), nullptr, 16))));
  return values;
}

Json writeRecipe(const Manifest::Recipe &r) {
  Json j = {{"storage", r.storage}, {"vector", r.vector ? 1 : 0}, {"interleave", r.interleave}};
  if (r.sources.empty()) {
    j["value"] = floatsToHex(r.value);
    return j;
  }
  j["sources"] = Json::array();
  for (const Manifest::Recipe::Source &s : r.sources)
    j["sources"].push_back({{"tensor", s.tensor}, {"row", s.row}, {"rows", s.rows}, {"deinterleave", s.deinterleave}});
  return j;
}

Manifest::Recipe readRecipe(const JsonObject &o) {
  Manifest::Recipe r;
  r.storage = o.text("storage");
  r.vector = o.number<uint32_t>("vector") != 0;
  r.interleave = o.number<uint64_t>("interleave");
  if (!o.has("sources")) {
    r.value = hexToFloats(o, "value");
    return r;
  }
  for (const Json &item : o.array("sources")) {
    JsonObject source(item, o.where() + ".sources");
    r.sources.push_back({source.text("tensor"), source.number<uint64_t>("row"), source.number<uint64_t>("rows"),
                         source.number<uint64_t>("deinterleave")});
  }
  if (r.sources.empty())
    throw Error(o.where() + ".sources: expected at least one, got none");
  return r;
}

Manifest::Weight readWeight(const JsonObject &o, bool random) {
  Manifest::Weight w;
  w.name = o.text("name");
  w.layout = o.text("layout");
  w.offset = o.number<uint64_t>("offset");
  w.bytes = o.number<uint64_t>("bytes");
  w.rows = o.number<uint64_t>("rows");
  w.cols = o.number<uint64_t>("cols");
  if (!random || o.has("xxh3"))
    w.xxh3 = o.hash("xxh3");
  if (random)
    w.recipe = readRecipe(o.object("recipe"));
  return w;
}

Json writeList(const Manifest &manifest) {
  Json list = Json::array();
  for (const Manifest::Weight &w : manifest.weights) {
    list.push_back({{"name", w.name},
                    {"layout", w.layout},
                    {"offset", w.offset},
                    {"bytes", w.bytes},
                    {"rows", w.rows},
                    {"cols", w.cols}});
    if (w.xxh3)
      list.back()["xxh3"] = hexDigits(*w.xxh3);
    if (w.recipe)
      list.back()["recipe"] = writeRecipe(*w.recipe);
  }
  return list;
}

Origin readOrigin(const JsonObject &o) {
  Origin origin;
  const std::string kind = o.text("kind");
  for (auto [value, name] : kKinds)
    if (kind == name)
      origin.kind = value;
  if (origin.kind == Origin::Kind::Embedded)
    throw Error(o.where() + ".kind: expected separate or random, got " + kind + "; a newer llmc made this package");
  origin.bytes = o.number<uint64_t>("bytes");
  if (origin.kind == Origin::Kind::Random)
    origin.seed = o.number<uint64_t>("seed");
  else
    origin.shards = readShards(o, "shards", origin.bytes);
  return origin;
}

} // namespace

Json writeShards(const std::vector<Manifest::Shard> &shards) {
  Json list = Json::array();
  for (const Manifest::Shard &s : shards)
    list.push_back({{"file", s.file}, {"bytes", s.bytes}, {"xxh3", hexDigits(s.xxh3)}});
  return list;
}

std::vector<Manifest::Shard> readShards(const JsonObject &o, const char *key, uint64_t bytes) {
  std::vector<Manifest::Shard> shards;
  uint64_t left = bytes;
  for (const Json &item : o.array(key)) {
    JsonObject entry(item, o.where() + "." + key + "[" + std::to_string(shards.size()) + "]");
    Manifest::Shard s{entry.text("file"), entry.number<uint64_t>("bytes"), entry.hash("xxh3")};
    if (s.file.empty() || s.file == "." || s.file == ".." || s.file.find('/') != std::string::npos ||
        s.file.find('\0') != std::string::npos)
      entry.wrong("file", "a file name without a folder", item["file"]);
    if (s.bytes == 0 || s.bytes > left)
      entry.wrong("bytes", "1 to " + std::to_string(left) + " (what the other shards leave of the " + std::to_string(bytes) + " bytes)",
                  item["bytes"]);
    left -= s.bytes;
    shards.push_back(std::move(s));
  }
  if (left)
    throw Error(o.where() + "." + key + ": expected shards of " + std::to_string(bytes) + " bytes, got " +
                std::to_string(bytes - left));
  return shards;
}

void writeWeights(Json &json, const Manifest &manifest) {
  json["weights"] = writeList(manifest);
  const Origin &origin = manifest.weightsOrigin;
  for (auto [kind, name] : kKinds)
    if (kind == origin.kind)
      json["weights_origin"] = {{"kind", name}, {"bytes", origin.bytes}};
  if (origin.kind == Origin::Kind::Random)
    json["weights_origin"]["seed"] = origin.seed;
  if (origin.kind == Origin::Kind::Separate)
    json["weights_origin"]["shards"] = writeShards(origin.shards);
}

void readWeights(const JsonObject &json, Manifest &manifest) {
  if (json.has("weights_origin"))
    manifest.weightsOrigin = readOrigin(json.object("weights_origin"));
  const Origin &origin = manifest.weightsOrigin;
  size_t index = 0;
  for (const Json &item : json.array("weights")) {
    JsonObject entry(item, json.where() + ".weights[" + std::to_string(index++) + "]");
    Manifest::Weight w = readWeight(entry, origin.kind == Origin::Kind::Random);
    if (origin.kind != Origin::Kind::Embedded && (w.offset > origin.bytes || w.bytes > origin.bytes - w.offset))
      throw Error(entry.where() + ": expected weight '" + w.name + "' inside the " + std::to_string(origin.bytes) +
                  " bytes of weights, got " + std::to_string(w.bytes) + " bytes at " + std::to_string(w.offset));
    manifest.weights.push_back(std::move(w));
  }
}

uint64_t Manifest::weightsId() const {
  Json j = writeList(*this);
  j.push_back(weightsOrigin.kind == WeightsOrigin::Kind::Random ? Json(weightsOrigin.seed) : Json());
  const std::string text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  return packageHash(text.data(), text.size());
}

} // namespace llmc
