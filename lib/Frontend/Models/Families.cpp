//===- Families.cpp - which family builds which architecture --------------===//
#include "lib/Frontend/Models/Families.h"

#include "llmc/Frontend/ModelBuilder.h"
#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/Error.h"

using namespace llmc;

void llmc::buildFamily(ModelBuilder &builder, const ModelFacts &facts) {
  struct Family {
    const char *architecture;
    void (*build)(ModelBuilder &, const ModelFacts &);
  };
  static constexpr Family families[] = {
      {"llama", buildLlama}, {"mistral", buildLlama}, {"qwen2", buildLlama}, {"gemma2", buildLlama}, {"granite_swa", buildLlama}};
  for (const Family &family : families)
    if (facts.architecture == family.architecture)
      return family.build(builder, facts);
  throw Error("expected an architecture among " + supportedArchitectures() + ", got '" + facts.architecture +
              "'");
}
