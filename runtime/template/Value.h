//===- Value.h - what a template computes with ------------------*- C++ -*-===//
//
// Python's values as far as chat templates need them. Strings, lists and dicts
// are immutable and shared; a namespace is the one thing that can be assigned to.
// Lists and dicts hold plain data only (no macro, loop or namespace), so values
// form no cycles and nothing outlives the scope that it refers to.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_VALUE_H
#define LLMC_RUNTIME_TEMPLATE_VALUE_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace llmc::jinja {

struct List;
class Dict;
struct Namespace;
struct LoopState;  // Interpreter.h
struct Callable;   // Interpreter.h

/// A value that is not there; printing gives nothing, most other uses an error
/// that names it (jinja2's default Undefined).
struct Undefined {
  std::shared_ptr<const std::string> name; // may be null
};
struct None {};

using String = std::shared_ptr<const std::string>;

class Value {
public:
  using Storage = std::variant<Undefined, None, bool, int64_t, double, String, std::shared_ptr<const List>,
                               std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, LoopState *,
                               std::shared_ptr<const Callable>>;
  Value() = default;
  Value(Storage storage) : storage(std::move(storage)) {}
  Value(bool b) : storage(b) {}
  Value(int64_t i) : storage(i) {}
  Value(double d) : storage(d) {}
  Value(std::string s) : storage(std::make_shared<const std::string>(std::move(s))) {}
  Value(const char *s) : Value(std::string(s)) {}
  static Value none() { return Value(Storage(None{})); }
  static Value undefined(std::string name);
  /// Context data made outside a template; depth is computed, at most kMaxDataDepth
  /// (Error beyond).
  static Value list(std::vector<Value> items, bool tuple = false);
  static Value dict(Dict dict);
  /// JSON text (RFC 8259), keys in order; throws Error naming `what` and the offset.
  static Value fromJson(std::string_view text, const std::string &what);

  template <typename T> bool is() const { return std::holds_alternative<T>(storage); }
  template <typename T> const T *get() const { return std::get_if<T>(&storage); }
  bool isUndefined() const { return is<Undefined>(); }
  bool isNone() const { return is<None>(); }
  bool isString() const { return is<String>(); }
  bool isNumber() const { return is<bool>() || is<int64_t>() || is<double>(); }
  const std::string *string() const {
    auto *s = get<String>();
    return s ? s->get() : nullptr;
  }
  const List *list() const {
    auto *l = get<std::shared_ptr<const List>>();
    return l ? l->get() : nullptr;
  }
  const Dict *dict() const {
    auto *d = get<std::shared_ptr<const Dict>>();
    return d ? d->get() : nullptr;
  }
  /// True for what a list or dict may hold.
  bool isData() const {
    return !is<std::shared_ptr<Namespace>>() && !is<LoopState *>() && !is<std::shared_ptr<const Callable>>();
  }
  /// Python's name of the type, for messages: "str", "list", "undefined", ...
  const char *typeName() const;
  bool truthy() const;
  unsigned depth() const;  // 0 for scalars
  uint64_t weight() const; // at least 1; grows with the bytes of strings

  Storage storage;
};

struct List {
  std::vector<Value> items;
  bool tuple = false;
  /// What Python gives as a generator (map, select, ...): it can only be iterated,
  /// and it is true even when nothing comes out.
  bool lazy = false;
  unsigned depth = 1; // nesting of containers, this one included
  uint64_t weight = 1; // work to walk it as a tree; shared parts count as often as they occur
};

/// Keeps insertion order. Keys compare as Python's (1 == 1.0 == true).
class Dict {
public:
  const Value *find(const Value &key) const;
  const Value *findName(std::string_view key) const;
  void set(Value key, Value value);
  const std::vector<std::pair<Value, Value>> &items() const { return entries; }
  size_t size() const { return entries.size(); }
  unsigned depth = 1;
  uint64_t weight = 1;

private:
  size_t position(const Value &key) const; // size() if absent
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string, size_t> index; // of string keys
};

struct Namespace {
  Dict attributes;
};

inline constexpr unsigned kMaxDataDepth = 100;

/// Walks the smaller of the two.
bool equal(const Value &a, const Value &b);

/// Thrown by the spelling functions below; a list of lists that share parts may
/// be spelled exponentially long.
struct TooLong {};
inline constexpr size_t kMaxText = 16u << 20; // bytes

/// Python's str() and repr(). Values without a stable spelling (macros, loops)
/// give "<function>" and the like. Throws TooLong beyond kMaxText.
std::string toString(const Value &value);
std::string toRepr(const Value &value);
/// Python's repr of a float: the shortest digits that read back the same.
std::string floatRepr(double value);

struct JsonStyle {
  bool asciiOnly = false, sortKeys = false;
  int indent = -1; // -1: one line
  std::string itemSeparator = ", ", keySeparator = ": ";
};
/// json.dumps; throws Error for a value that JSON has not, TooLong beyond kMaxText.
std::string toJson(const Value &value, const JsonStyle &style);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_VALUE_H
