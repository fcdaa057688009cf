//===- Inspect.h - what `llmc inspect MODEL` prints -------------*- C++ -*-===//
#ifndef LLMC_FRONTEND_INSPECT_H
#define LLMC_FRONTEND_INSPECT_H

#include "llmc/Frontend/ModelFacts.h"

namespace llmc {

/// Bytes of K and V of one token over all layers: 2 * layers * kv heads * head
/// dimension * bytes of an element.
uint64_t kvBytesPerToken(const ModelFacts &facts, unsigned elementBytes);

/// For people: architecture, geometry, rope, KV bytes a token, tensors with type,
/// shape and bytes, totals by type, tokenizer, template, warnings. Ends with a newline.
std::string inspectText(const ModelFacts &facts);

/// The same as one JSON object (keys in a fixed order), indented, with a newline.
std::string inspectJson(const ModelFacts &facts);

} // namespace llmc

#endif // LLMC_FRONTEND_INSPECT_H
