//===- InspectCommand.cpp - llmc inspect ----------------------------------===//
#include "Commands.h"

#include "llmc/Frontend/Inspect.h"

#include <cstdio>

using namespace llmc;

void llmc::inspectCommand(int argc, char **argv) {
  std::string model;
  bool json = false;
  Flags flags("llmc inspect", "Shows what a model's files say: geometry, tensors, tokenizer, template. Reads no weights.",
              "  llmc inspect SmolLM2-135M-Instruct.gguf\n  llmc inspect SmolLM2-135M-Instruct/ --json | jq .architecture\n");
  flags.positional(model, "MODEL", "a GGUF file or a Hugging Face folder");
  flags.toggle("json", json, true, "one JSON object");
  if (!flags.parse(argc, argv))
    return;
  ModelFacts facts = loadModelFacts(model);
  std::fputs((json ? inspectJson(facts) : inspectText(facts)).c_str(), stdout);
}
