//===- Builtins.h - filters, tests, functions, methods ----------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TEMPLATE_BUILTINS_H
#define LLMC_RUNTIME_TEMPLATE_BUILTINS_H

#include "runtime/template/Value.h"

#include <string_view>
#include <vector>

namespace llmc::jinja {

class Runtime;

using Named = std::vector<std::pair<std::string, Value>>;

/// Arguments by parameter; a null pointer is one not given. For a variadic
/// builtin the positional rest and all named arguments follow in `extra`, `named`.
struct Bound {
  std::vector<const Value *> by;
  std::vector<const Value *> extra;
  std::vector<std::pair<std::string_view, const Value *>> named;

  const Value *operator[](size_t i) const { return by[i]; }
  bool given(size_t i) const { return by[i] != nullptr; }
};

struct Builtin {
  std::string_view name;
  std::vector<std::string_view> parameters;
  size_t required; // the first so many must be given
  /// `self` is what is filtered or tested, or the object of a method.
  Value (*call)(Runtime &, const Value &self, const Bound &);
  bool variadic = false;
  bool positionalOnly = false; // as most methods of Python's types
};

/// Null when there is none of that name.
const Builtin *findFilter(std::string_view name);
const Builtin *findTest(std::string_view name);
const Builtin *findFunction(std::string_view name);
/// The method that Python's type of `object` has under that name.
const Builtin *findMethod(const Value &object, std::string_view name);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_BUILTINS_H
