//===- Filters.h - shared by the filter and method tables -------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TEMPLATE_FILTERS_H
#define LLMC_RUNTIME_TEMPLATE_FILTERS_H

#include "runtime/template/Interpreter.h"

#include <optional>

namespace llmc::jinja {

using Args = const Bound &;

void addListFilters(std::vector<Builtin> &table);
void addSequenceFilters(std::vector<Builtin> &table);
void addNumberFilters(std::vector<Builtin> &table);
void addTextFilters(std::vector<Builtin> &table);

struct Method {
  Builtin builtin;
  unsigned types;
};
enum Types : unsigned { kString = 1, kList = 2, kDict = 4, kLoop = 8, kTuple = 16, kRange = 32, kInteger = 64, kFloat = 128, kCycler = 256, kView = 512, kMarkup = 1024, kSet = 2048 };
void addStringMethods(std::vector<Method> &table);
void addSetMethods(std::vector<Method> &table);

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

inline bool isGiven(Args args, size_t i) { return args.given(i) && !args[i]->isNone(); }
inline bool flag(Args args, size_t i, bool fallback = false) { return args.given(i) ? args[i]->truthy() : fallback; }
/// An int or bool; throws for others. Clamped to 64 bits.
int64_t toInteger(Runtime &runtime, const Value &value);
int64_t integerArgument(Runtime &runtime, Args args, size_t i, int64_t fallback);
/// A string; throws for others.
const std::string &textArgument(Runtime &runtime, const Value &value);

/// The strings that Python's soft_str gives: a string as it is, others by str().
Value softString(Runtime &runtime, const Value &value);

/// A dotted path of attributes, as in map(attribute="a.b.0").
class AttributePath {
public:
  /// Null or none: no path, the item itself.
  AttributePath(Runtime &runtime, const Value *attribute, const Value *fallback = nullptr);
  Value get(Runtime &runtime, const Value &item) const;

private:
  std::vector<Value> parts;
  std::optional<Value> fallback;
};

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// str.replace; `most` < 0: all.
std::string replaceAll(Runtime &runtime, const std::string &text, const std::string &from, const std::string &to,
                       int64_t most);
/// Pairs of a dict as tuples.
std::vector<Value> itemsOf(Runtime &runtime, const Dict &dict);
/// Whether Python has a set for `a - b`: of two sets, or where one side is d.keys() or d.items().
bool isSetDifference(const Value &a, const Value &b);
Value setDifference(Runtime &runtime, const Value &a, const Value &b);
/// Joined spellings of `items`.
std::string joinItems(Runtime &runtime, const std::vector<Value> &items, const std::string &separator);
/// str.splitlines.
std::vector<std::string> splitLines(const std::string &text, bool keepEnds);
/// For HTML; Markup stays as it is.
std::string escaped(Runtime &runtime, const Value &value);
/// Throws where a string of `bytes` would be too long.
void checkLength(Runtime &runtime, uint64_t bytes);
/// markupsafe.Markup.striptags.
std::string stripTags(const std::string &text);

/// Python's "%" on strings: `values` is a tuple, a dict or one value.
Value formatPercent(Runtime &runtime, const Value &format, const Value &values);
/// Python's format(value, specification).
std::string formatValue(Runtime &runtime, const Value &value, const std::string &specification);
/// str.format.
Value formatFields(Runtime &runtime, const Value &format, Args args);

/// Python's int(text, base): null if it is no number.
std::optional<BigInt> parseInteger(const std::string &text, unsigned base);
/// Python's float(text).
std::optional<double> parseFloat(const std::string &text);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_FILTERS_H
