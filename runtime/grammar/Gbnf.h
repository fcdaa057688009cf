//===- Gbnf.h - llama.cpp's grammars ----------------------------*- C++ -*-===//
//
// GBNF: rules `name ::= ...` of "text", [classes], names, groups, |, * + ? {m,n} and
// comments from # on; the text is one of the rule `root`.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_GBNF_H
#define LLMC_RUNTIME_GRAMMAR_GBNF_H

#include "runtime/grammar/GrammarBuilder.h"

namespace llmc {

/// Throws GrammarError with the line ("grammar, line 3: expected ..., got ...").
Expression addGbnf(GrammarBuilder &builder, std::string_view text);

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_GBNF_H
