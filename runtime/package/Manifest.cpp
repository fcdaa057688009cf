//===- Manifest.cpp -------------------------------------------------------===//
#include "runtime/package/Manifest.h"
#include "llmc/Support/Error.h"
#include "llmc/abi.h"
#include "runtime/package/ManifestWeights.h"

#include <iterator>

namespace llmc {

// By layout.
static constexpr const char *layoutNames[] = {"rows_f32",  "n16_f32",  "n16_f16",  "n16_bf16", "n16_q4_0", "n16_q4_1",
                                              "n16_q8_0",  "rows_bf16", "n16_q5_0", "n16_q5_1", "n16_q2_k", "n16_q3_k",
                                              "n16_q4_k",  "n16_q5_k", "n16_q6_k", "n16_iq4_nl", "n16_iq4_xs",
                                              "n16_e4m3",  "rows_e4m3"};
static_assert(std::size(layoutNames) == LLMC_LAYOUT_ROWS_E4M3 + 1);

const char *layoutName(uint32_t layout) { return layout < std::size(layoutNames) ? layoutNames[layout] : "unknown"; }

std::optional<uint32_t> layoutOf(std::string_view name) {
  for (uint32_t layout = 0; layout < std::size(layoutNames); ++layout)
    if (name == layoutNames[layout])
      return layout;
  return std::nullopt;
}

std::string Manifest::serialize() const {
  Json j;
  j["format"] = weightsOrigin.kind == WeightsOrigin::Kind::Embedded ? 1 : kFormat;
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
  j["numerics"] = numerics;
  j["kv"] = {{"element", kvElement}, {"block", kvBlock}};
  j["isas"] = isas;
  j["limits"] = {{"max_tokens", limits.maxTokens}, {"max_seqs", limits.maxSeqs}, {"max_logits", limits.maxLogits}};
  writeWeights(j, *this);
  j["ledger"] = Json::array();
  for (const LedgerItem &item : ledger)
    j["ledger"].push_back({{"name", item.name}, {"bytes", item.bytes}});
  j["reference_ops"] = referenceOps;
  if (trapChecks)
    j["trap_checks"] = true;
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
  JsonObject o(json, where + ": manifest");
  const auto format = o.number<uint32_t>("format");
  if (format == 0 || format > kFormat)
    throw Error(o.where() + ".format: expected at most " + std::to_string(kFormat) + ", got " +
                std::to_string(format) + "; a newer llmc made this package");
  Manifest m;
  m.version = o.text("llmc");
  JsonObject model = o.object("model");
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
  if (o.has("numerics")) // older packages: exact
    m.numerics = o.text("numerics");
  JsonObject kv = o.object("kv");
  m.kvElement = kv.text("element");
  m.kvBlock = kv.number<uint32_t>("block");
  m.isas = o.texts("isas");
  JsonObject limits = o.object("limits");
  m.limits = {limits.number<uint32_t>("max_tokens"), limits.number<uint32_t>("max_seqs"),
              limits.number<uint32_t>("max_logits")};
  readWeights(o, m);
  for (const Json &item : o.array("ledger")) {
    JsonObject entry(item, o.where() + ".ledger");
    m.ledger.push_back({entry.text("name"), entry.number<uint64_t>("bytes")});
  }
  m.referenceOps = o.texts("reference_ops");
  m.trapChecks = o.has("trap_checks") && o.boolean("trap_checks");
  for (const Json &item : o.array("eos"))
    m.eosIds.push_back(o.toNumber<int32_t>(item, "eos"));
  JsonObject source = o.object("source");
  m.source = {source.text("path"), source.number<uint64_t>("bytes")};
  return m;
}

} // namespace llmc
