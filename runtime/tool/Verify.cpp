//===- Verify.cpp - compares the compiled model with its oracle -----------===//
#include "runtime/engine/Verify.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/Model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

// Jane Austen, Pride and Prejudice (1813), chapter 1; public domain.
const char kText[] =
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a "
    "wife.\n\nHowever little known the feelings or views of such a man may be on his first entering a neighbourhood, "
    "this truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful "
    "property of some one or other of their daughters.\n\n\"My dear Mr. Bennet,\" said his lady to him one day, \"have "
    "you heard that Netherfield Park is let at last?\"\n\nMr. Bennet replied that he had not.\n\n\"But it is,\" "
    "returned she; \"for Mrs. Long has just been here, and she told me all about it.\"\n\nMr. Bennet made no "
    "answer.\n\n\"Do not you want to know who has taken it?\" cried his wife impatiently.\n\n\"You want to tell me, and "
    "I have no objection to hearing it.\"\n\nThis was invitation enough.\n\n\"Why, my dear, you must know, Mrs. Long "
    "says that Netherfield is taken by a young man of large fortune from the north of England; that he came down on "
    "Monday in a chaise and four to see the place, and was so much delighted with it that he agreed with Mr. Morris "
    "immediately; that he is to take possession before Michaelmas, and some of his servants are to be in the house by "
    "the end of next week.\"\n\n\"What is his name?\"\n\n\"Bingley.\"\n\n\"Is he married or single?\"\n\n\"Oh! single, "
    "my dear, to be sure! A single man of large fortune; four or five thousand a year. What a fine thing for our "
    "girls!\"\n\n\"How so? how can it affect them?\"\n\n\"My dear Mr. Bennet,\" replied his wife, \"how can you be so "
    "tiresome! You must know that I am thinking of his marrying one of them.\"";

struct VerifyFlags {
  LoadFlags load;
  uint64_t tokens = 128;
  std::string text;
  float bound = 0; // 0: by arithmetic
  bool perLayer = false, json = false;
};

struct Layer {
  double relative = 0;
  std::string op;
};

std::map<int32_t, Layer> byLayer(const VerifyReport &report) {
  std::map<int32_t, Layer> layers;
  for (const ValueError &e : report.values) {
    Layer &layer = layers[e.layer];
    if (layer.op.empty() || e.relative > layer.relative)
      layer = {e.relative, e.op};
  }
  return layers;
}

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(x > 0 ? "inf" : "nan"); }

Json describe(const ValueError &e) {
  return {{"value", e.value}, {"op", e.op}, {"op_id", e.opId}, {"layer", e.layer}, {"relative_error", number(e.relative)},
          {"largest_error", number(e.largest)}};
}

void printJson(const VerifyReport &report, double bound, const std::string &isa) {
  Json j;
  j["tokens"] = report.tokens;
  j["isa"] = isa;
  j["mean_kl"] = number(report.meanKl);
  j["max_kl"] = number(report.maxKl);
  j["top1"] = report.top1;
  j["bound"] = bound;
  const ValueError *first = report.firstBeyond(bound);
  j["ok"] = first == nullptr;
  j["first_beyond_bound"] = first ? describe(*first) : Json();
  j["values"] = Json::array();
  for (const ValueError &e : report.values)
    j["values"].push_back(describe(e));
  std::printf("%s\n", j.dump(1).c_str());
}

void printText(const VerifyReport &report, bool perLayer) {
  if (perLayer) {
    std::printf("layer  largest relative error  op\n");
    for (const auto &[layer, worst] : byLayer(report))
      std::printf("%5s  %22.3e  %s\n", layer < 0 ? "-" : std::to_string(layer).c_str(), worst.relative, worst.op.c_str());
  }
  std::printf("%u tokens, %zu values compared: mean KL %.3e, largest %.3e, same likeliest token %.1f %%\n", report.tokens,
              report.values.size(), report.meanKl, report.maxKl, report.top1 * 100);
}

// f32 differs by summation order only; int8 activations keep two digits, bf16 operands and caches three
// (measured worst values: docs/accuracy.md).
double defaultBound(const std::string &compute) {
  if (compute == "f32")
    return 1e-3;
  return compute == "q8" ? 0.15 : 0.05;
}

int verify(const VerifyFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  std::vector<int32_t> ids = model.encode(flags.text.empty() ? kText : readTextFile(flags.text));
  const uint64_t limit = std::min<uint64_t>({flags.tokens, model.manifest().limits.maxTokens, model.manifest().model.maxContext});
  ids.resize(std::min<size_t>(ids.size(), limit));
  if (ids.empty())
    throw Error("--text: expected a text of at least one token, got none");
  std::unique_ptr<Device> device = model.makeDevice(ids.size());
  verifyWeights(model.weights(), model.manifest(), unsigned(flags.load.threads), [](uint64_t) {});
  const double bound = flags.bound > 0 ? flags.bound : defaultBound(model.manifest().compute);
  const VerifyReport report = verifyModel(*device, ids);
  if (flags.json)
    printJson(report, bound, device->module().isa);
  else
    printText(report, flags.perLayer);
  const ValueError *first = report.firstBeyond(bound);
  if (!first)
    return 0;
  std::fflush(stdout);
  char text[64];
  std::snprintf(text, sizeof text, "%.3e, bound %.3e", first->relative, bound);
  throw Error("first op beyond the bound: " + first->op + " (op " + std::to_string(first->opId) + ", value " + first->value +
              ", relative error " + text + ")");
}

} // namespace

Command addVerify(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App *sub = app.add_subcommand("verify", "compare the compiled model with its reference in plain f32");
  addCount(*sub, "--tokens", flags->tokens, "of the text, at most (default 128)", 1, 1 << 24);
  sub->add_option("--text", flags->text, "file with the text (default: a page of Pride and Prejudice)")->type_name("FILE");
  addReal(*sub, "--bound", flags->bound, "largest relative error of a value (default: 1e-3 for f32, 0.15 for q8, else 0.05)", 1e-12, 1e6);
  sub->add_flag("--per-layer", flags->perLayer, "print the largest error of each layer");
  sub->add_flag("--json", flags->json, "print everything as JSON");
  addLoadFlags(*sub, flags->load);
  sub->footer("Exits with 1 and names the first op beyond the bound, or the damaged weight.\nExample:\n  " + name +
              " verify --per-layer --tokens 256");
  return {sub, [flags, name] { return verify(*flags, name); }};
}

} // namespace llmc
