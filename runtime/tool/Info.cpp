//===- Info.cpp - what is in the package and what it will take ------------===//
#include "runtime/device/StepPhases.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/Model.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

struct InfoFlags {
  LoadFlags load;
  bool json = false, weights = false, ops = false;
};

std::string readable(uint64_t bytes) {
  char text[32];
  if (bytes < 10 << 10)
    std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes));
  else if (bytes < 10 << 20)
    std::snprintf(text, sizeof text, "%.1f KiB", double(bytes) / 1024);
  else
    std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / (1 << 20));
  return text;
}

Json opList(const llmc_program_v1 &program) {
  Json ops = Json::array();
  for (uint32_t i = 0; i < program.num_launches; ++i) {
    const llmc_launch_v1 &l = program.launches[i];
    Json variants = Json::array(), values = Json::array();
    for (uint32_t v = 0; v < l.num_variants; ++v)
      variants.push_back({{"kernel", l.variants[v].name ? l.variants[v].name : ""},
                          {"max_rows", l.variants[v].max_rows},
                          {"row_block", l.variants[v].row_block},
                          {"col_blocks", l.variants[v].col_blocks}});
    for (uint32_t v = 0; v < l.num_values; ++v)
      values.push_back(l.values[v].name);
    ops.push_back({{"op_id", l.op_id}, {"op", l.op}, {"layer", l.layer}, {"variants", variants}, {"values", values}});
  }
  return ops;
}

// What there is to tell of the loaded, or only surveyed, module.
struct Loaded {
  std::unique_ptr<Device> device;   // of a CPU
  std::optional<CudaSurvey> survey; // of a GPU
  Ledger ledger;
  uint64_t tokens = 0; // of context that the ledger is for

  const llmc_module_v1 *module() const { return device ? &device->module() : survey ? survey->module.get() : nullptr; }
};

Json gpuJson(const CudaSurvey &survey) {
  if (!survey.gpu)
    return {{"missing", survey.whyNot}};
  const uint64_t own = survey.ledger.bytesOf(MemoryKind::Device);
  return {{"name", survey.gpu->name},
          {"detail", survey.gpu->detail},
          {"memory_bytes", survey.gpu->memoryTotal},
          {"empty_context_bytes", survey.gpu->usedBefore},
          {"own_bytes", own},
          {"total_bytes", own + survey.gpu->usedBefore}};
}

Json toJson(Model &model, const Loaded &loaded) {
  Json j = Json::parse(model.package().section("manifest"));
  j["package"] = {{"path", model.package().path()}, {"bytes", model.package().fileSize()}};
  j["sections"] = Json::array();
  for (const llmc_package_section &s : model.package().sections())
    j["sections"].push_back({{"name", s.name}, {"offset", s.offset}, {"bytes", s.size}});
  const Ledger &ledger = loaded.ledger;
  j["memory"] = {{"context", loaded.tokens},
                 {"items", Json::array()},
                 {"anonymous_bytes", ledger.anonymousBytes()},
                 {"device_bytes", ledger.bytesOf(MemoryKind::Device)}};
  for (const LedgerItem &item : ledger.items)
    j["memory"]["items"].push_back({{"name", item.name},
                                    {"bytes", item.bytes},
                                    {"anonymous", item.kind == MemoryKind::Anonymous},
                                    {"kind", toString(item.kind)}});
  if (loaded.survey)
    j["gpu"] = gpuJson(*loaded.survey);
  if (const llmc_module_v1 *module = loaded.module()) {
    j["isa"] = module->isa;
    j["ops"] = opList(module->program);
    if (hasPhases(*module))
      j["prompt_ops"] = opList(module->prompt);
    j["reference_ops_in_oracle"] = module->reference.num_launches;
  }
  return j;
}

void printMemory(const Loaded &loaded) {
  std::printf("\nmemory while serving %llu tokens of context\n", static_cast<unsigned long long>(loaded.tokens));
  for (const LedgerItem &item : loaded.ledger.items)
    std::printf("  %-26s %12s %s\n", item.name.c_str(), readable(item.bytes).c_str(), memoryNote(item.kind));
  std::printf("  %-26s %12s\n", "anonymous, total", readable(loaded.ledger.anonymousBytes()).c_str());
  if (!loaded.survey)
    return;
  const uint64_t own = loaded.ledger.bytesOf(MemoryKind::Device);
  std::printf("  %-26s %12s\n", "GPU, own allocations", readable(own).c_str());
  if (const std::optional<DeviceInfo> &gpu = loaded.survey->gpu) {
    std::printf("  %-26s %12s  measured; other processes included\n", "GPU, empty context", readable(gpu->usedBefore).c_str());
    std::printf("  %-26s %12s  of %s on %s (%s)\n", "GPU, total", readable(own + gpu->usedBefore).c_str(),
                readable(gpu->memoryTotal).c_str(), gpu->name.c_str(), gpu->detail.c_str());
  } else {
    std::printf("  this machine cannot run the package: %s\n", loaded.survey->whyNot.c_str());
  }
}

void print(Model &model, const Loaded &loaded, bool listWeights) {
  const Manifest &m = model.manifest();
  std::printf("%s, %s: %llu layers, hidden %llu, %llu heads (%llu KV) of %llu, ffn %llu, vocabulary %llu, context %llu\n",
              m.model.name.c_str(), m.model.architecture.c_str(), static_cast<unsigned long long>(m.model.layers),
              static_cast<unsigned long long>(m.model.hidden), static_cast<unsigned long long>(m.model.heads),
              static_cast<unsigned long long>(m.model.kvHeads), static_cast<unsigned long long>(m.model.headDim),
              static_cast<unsigned long long>(m.model.ffn), static_cast<unsigned long long>(m.model.vocab),
              static_cast<unsigned long long>(m.model.maxContext));
  std::printf("made by llmc %s from %s; arithmetic %s%s, KV cache %s, at most %u tokens a step\n", m.version.c_str(),
              m.source.path.c_str(), m.compute.c_str(), m.numerics == "phase" ? " (prompts: bf16)" : "", m.kvElement.c_str(), m.limits.maxTokens);
  std::printf("ops computed by the reference: %zu\n\nsections\n", m.referenceOps.size());
  for (const llmc_package_section &s : model.package().sections())
    std::printf("  %-24s %14s\n", s.name, readable(s.size).c_str());
  std::map<std::string, std::pair<uint64_t, uint64_t>> layouts; // count, bytes
  for (const Manifest::Weight &w : m.weights) {
    ++layouts[w.layout].first;
    layouts[w.layout].second += w.bytes;
  }
  std::printf("\nweights\n");
  for (const auto &[layout, sum] : layouts)
    std::printf("  %-12s %4llu %20s\n", layout.c_str(), static_cast<unsigned long long>(sum.first), readable(sum.second).c_str());
  for (const Manifest::Weight &w : m.weights)
    if (listWeights)
      std::printf("  %-32s %-10s %6llu x %-6llu %12llu bytes at %llu\n", w.name.c_str(), w.layout.c_str(),
                  static_cast<unsigned long long>(w.rows), static_cast<unsigned long long>(w.cols),
                  static_cast<unsigned long long>(w.bytes), static_cast<unsigned long long>(w.offset));
  printMemory(loaded);
}

Loaded load(Model &model, const LoadFlags &flags) {
  const uint64_t longest = model.manifest().model.maxContext;
  Loaded loaded;
  loaded.tokens = std::min(flags.context ? flags.context : longest, longest);
  if (model.gpu()) {
    loaded.survey = model.surveyGpu(flags.context ? loaded.tokens : 0);
    loaded.ledger = loaded.survey->ledger;
    loaded.tokens = std::min(longest, loaded.survey->kvTokens);
  } else if (missingFeatures(leastIsa(), detectCpuFeatures()).empty()) { // else the package can be read, but not loaded
    loaded.device = model.makeDevice(loaded.tokens, false);
    loaded.ledger = loaded.device->ledger();
  } else {
    return loaded;
  }
  model.tokenizer();
  model.addTo(loaded.ledger);
  return loaded;
}

int info(const InfoFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  const Loaded loaded = load(model, flags.load);
  if (flags.json)
    std::printf("%s\n", toJson(model, loaded).dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  else
    print(model, loaded, flags.weights);
  return 0;
}

} // namespace

Command addInfo(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App *sub = app.add_subcommand("info", "print what is inside and the memory that it will take");
  sub->add_flag("--weights", flags->weights, "list every weight");
  sub->add_flag("--json", flags->json, "print everything as JSON, the ops included");
  addLoadFlags(*sub, flags->load);
  sub->footer("Example:\n  " + name + " info --context 4096");
  return {sub, [flags, name] { return info(*flags, name); }};
}

} // namespace llmc
