//===- Manifest.cpp -------------------------------------------------------===//
#include "runtime/package/Manifest.h"
#include "llmc/Support/Error.h"
#include "llmc/abi.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace llmc {

using Json = nlohmann::ordered_json;

namespace {

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Reads keys of one object and names them in errors.
class Object {
public:
  Object(const Json &json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object())
      throw Error(where_ + ": expected an object, got " + json.type_name());
  }

  Object object(const char *key) const { return Object(at(key), where_ + "." + key); }
  const Json &array(const char *key) const {
    const Json &value = at(key);
    if (!value.is_array())
      wrong(key, "an array", value);
    return value;
  }
  std::string text(const char *key) const {
    const Json &value = at(key);
    if (!value.is_string())
      wrong(key, "a string", value);
    return value.get<std::string>();
  }
  template <typename T> T number(const char *key) const { return toNumber<T>(at(key), key); }
  template <typename T> T toNumber(const Json &value, const char *key) const {
    if constexpr (std::is_signed_v<T>) {
      if (value.is_number_integer() && value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max())
        return value.get<T>();
    } else if (value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<T>::max()) {
      return value.get<T>();
    }
    wrong(key, std::is_signed_v<T> ? "an integer" : "a non-negative integer", value);
  }
  uint64_t hash(const char *key) const {
    const std::string digits = text(key);
    if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
      wrong(key, "16 hexadecimal digits", at(key));
    return std::stoull(digits, nullptr, 16);
  }
  std::vector<std::string> texts(const char *key) const {
    std::vector<std::string> result;
    for (const Json &item : array(key)) {
      if (!item.is_string())
        wrong(key, "strings", item);
      result.push_back(item.get<std::string>());
    }
    return result;
  }
  const std::string &where() const { return where_; }

private:
  const Json &at(const char *key) const {
    auto it = json_.find(key);
    if (it == json_.end())
      throw Error(where_ + ": no key '" + key + "'");
    return *it;
  }
  [[noreturn]] void wrong(const char *key, const std::string &expected, const Json &value) const {
    throw Error(where_ + "." + key + ": expected " + expected + ", got " +
                value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80));
  }

  const Json &json_;
  std::string where_;
};

Manifest::Weight parseWeight(const Object &o) {
  Manifest::Weight w;
  w.name = o.text("name");
  w.layout = o.text("layout");
  w.offset = o.number<uint64_t>("offset");
  w.bytes = o.number<uint64_t>("bytes");
  w.rows = o.number<uint64_t>("rows");
  w.cols = o.number<uint64_t>("cols");
  w.xxh3 = o.hash("xxh3");
  return w;
}

} // namespace

const char *layoutName(uint32_t layout) {
  switch (layout) {
  case LLMC_LAYOUT_ROWS_F32:
    return "rows_f32";
  case LLMC_LAYOUT_N16_F32:
    return "n16_f32";
  case LLMC_LAYOUT_N16_F16:
    return "n16_f16";
  case LLMC_LAYOUT_N16_BF16:
    return "n16_bf16";
  case LLMC_LAYOUT_N16_Q4_0:
    return "n16_q4_0";
  case LLMC_LAYOUT_N16_Q4_1:
    return "n16_q4_1";
  case LLMC_LAYOUT_N16_Q8_0:
    return "n16_q8_0";
  }
  return "unknown";
}

std::string Manifest::serialize() const {
  Json j;
  j["format"] = kFormat;
  j["llmc"] = version;
  j["model"] = {{"name", model.name},
                {"architecture", model.architecture},
                {"hidden", model.hidden},
                {"layers", model.layers},
                {"heads", model.heads},
                {"kv_heads", model.kvHeads},
                {"head_dim", model.headDim},
                {"ffn", model.ffn},
                {"vocab", model.vocab},
                {"max_context", model.maxContext}};
  j["compute"] = compute;
  j["kv"] = {{"element", kvElement}, {"block", kvBlock}};
  j["isas"] = isas;
  j["limits"] = {{"max_tokens", limits.maxTokens}, {"max_seqs", limits.maxSeqs}, {"max_logits", limits.maxLogits}};
  j["weights"] = Json::array();
  for (const Weight &w : weights)
    j["weights"].push_back({{"name", w.name},
                            {"layout", w.layout},
                            {"offset", w.offset},
                            {"bytes", w.bytes},
                            {"rows", w.rows},
                            {"cols", w.cols},
                            {"xxh3", hex(w.xxh3)}});
  j["ledger"] = Json::array();
  for (const LedgerItem &item : ledger)
    j["ledger"].push_back({{"name", item.name}, {"bytes", item.bytes}});
  j["reference_ops"] = referenceOps;
  j["eos"] = eosIds;
  j["source"] = {{"path", source.path}, {"bytes", source.bytes}};
  // Names come from model files and may be no UTF-8.
  return j.dump(1, ' ', false, Json::error_handler_t::replace);
}

Manifest Manifest::parse(std::string_view text, const std::string &where) {
  Json json;
  try {
    json = Json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::exception &error) {
    throw Error(where + ": the manifest is no JSON: " + error.what());
  }
  Object o(json, where + ": manifest");
  const auto format = o.number<uint32_t>("format");
  if (format == 0 || format > kFormat)
    throw Error(o.where() + ".format: expected at most " + std::to_string(kFormat) + ", got " +
                std::to_string(format) + "; a newer llmc made this package");
  Manifest m;
  m.version = o.text("llmc");
  Object model = o.object("model");
  m.model.name = model.text("name");
  m.model.architecture = model.text("architecture");
  for (auto [key, field] : {std::pair{"hidden", &m.model.hidden},
                            {"layers", &m.model.layers},
                            {"heads", &m.model.heads},
                            {"kv_heads", &m.model.kvHeads},
                            {"head_dim", &m.model.headDim},
                            {"ffn", &m.model.ffn},
                            {"vocab", &m.model.vocab},
                            {"max_context", &m.model.maxContext}})
    *field = model.number<uint64_t>(key);
  m.compute = o.text("compute");
  Object kv = o.object("kv");
  m.kvElement = kv.text("element");
  m.kvBlock = kv.number<uint32_t>("block");
  m.isas = o.texts("isas");
  Object limits = o.object("limits");
  m.limits = {limits.number<uint32_t>("max_tokens"), limits.number<uint32_t>("max_seqs"),
              limits.number<uint32_t>("max_logits")};
  size_t index = 0;
  for (const Json &item : o.array("weights"))
    m.weights.push_back(parseWeight(Object(item, o.where() + ".weights[" + std::to_string(index++) + "]")));
  for (const Json &item : o.array("ledger")) {
    Object entry(item, o.where() + ".ledger");
    m.ledger.push_back({entry.text("name"), entry.number<uint64_t>("bytes")});
  }
  m.referenceOps = o.texts("reference_ops");
  for (const Json &item : o.array("eos"))
    m.eosIds.push_back(o.toNumber<int32_t>(item, "eos"));
  Object source = o.object("source");
  m.source = {source.text("path"), source.number<uint64_t>("bytes")};
  return m;
}

} // namespace llmc
