//===- Filters.h - shared by the filter and method tables -------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TEMPLATE_FILTERS_H
#define LLMC_RUNTIME_TEMPLATE_FILTERS_H

#include "runtime/template/Interpreter.h"

namespace llmc::jinja {

using Args = const Bound &;

void addListFilters(std::vector<Builtin> &table);

/// str.replace; `most` < 0: all.
std::string replaceAll(Runtime &runtime, const std::string &text, const std::string &from, const std::string &to,
                       int64_t most);
/// Pairs of a dict as tuples.
Value itemsOf(Runtime &runtime, const Dict &dict);
/// Joined spellings of `items`.
Value joinItems(Runtime &runtime, const std::vector<Value> &items, const std::string &separator);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_FILTERS_H
