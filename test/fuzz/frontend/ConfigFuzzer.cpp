//===- ConfigFuzzer.cpp - config.json to the tensors it asks for ----------===//
#include "lib/Frontend/FactsChecks.h"
#include "lib/Frontend/HuggingFace/HuggingFace.h"
#include "llmc/Frontend/Inspect.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>

using namespace llmc;
using namespace llmc::huggingface;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  try {
    JsonDocument document = JsonDocument::parse(text, "config.json");
    ModelFacts facts;
    readConfig(document.root(), facts);
    for (const char *key : {"bos_token_id", "eos_token_id", "pad_token_id"})
      readIds(document.root(), key);
    makeTensors("config.json", size % 2 ? DType::BF16 : DType::Q4_0, facts);
    frontend::checkFacts(facts, {"config.json", "config.json", [&](const std::string &name) { return fileName(name, facts.postNorms); }});
    for (float frequency : facts.rope.inverseFrequencies())
      if (!std::isfinite(frequency))
        std::abort(); // bad rope numbers got through
    inspectJson(facts);
  } catch (const Error &) {
  }
  return 0;
}
