//===- SideFilesFuzzer.cpp - config, tokenizer, index and their like ------===//
//
// The first byte says which file the rest is.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/HuggingFace/HuggingFace.h"

#include <cstddef>

using namespace llmc;
using namespace llmc::huggingface;

static void readOne(char kind, std::string_view text) {
  JsonDocument document = JsonDocument::parse(text, "fuzz.json");
  JsonView root = document.root();
  ModelFacts facts;
  facts.vocab = 300;
  switch (kind) {
  case 'c':
    readConfig(root, facts);
    readIds(root, "eos_token_id");
    break;
  case 't':
    facts.tokenizer = readTokenizer(root, facts.vocab, facts.warnings);
    facts.tokenizer.serialize();
    break;
  case 'k':
    facts.tokenizer.tokens = {"a", "b"};
    readTokenizerConfig(root, facts);
    break;
  case 'i':
    readIndex(root);
    break;
  default:
    break;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string_view text(reinterpret_cast<const char *>(data), size);
  try {
    readOne(text[0], text.substr(1));
  } catch (const Error &) {
  }
  return 0;
}
