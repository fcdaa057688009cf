//===- Value.h - what a template computes with ------------------*- C++ -*-===//
//
// Python's values as far as chat templates need them. Strings, lists and dicts
// are immutable and shared (transformers' sandbox forbids their changing methods
// too). What can change, namespaces, generators and loops, lives as long as the
// run that made it (Runtime::keep), which breaks cycles.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_VALUE_H
#define LLMC_RUNTIME_TEMPLATE_VALUE_H

#include "runtime/template/BigInt.h"

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
struct Callable;  // Interpreter.h
struct LoopState; // Iteration.h
class Generator;  // Iteration.h

/// A value that is not there; printing gives nothing, most other uses an error
/// that names it (jinja2's default Undefined).
struct Undefined {
  std::shared_ptr<const std::string> name; // null: a variable that is not set yet
};
struct None {};

using String = std::shared_ptr<const std::string>;

/// A string that the filters safe or escape have made: markupsafe.Markup, which
/// escapes plain strings that it is joined with.
struct Markup {
  String text;
};

class Value {
public:
  using Storage = std::variant<Undefined, None, bool, int64_t, std::shared_ptr<const BigInt>, double, String, Markup,
                               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
                               std::shared_ptr<Generator>, std::shared_ptr<LoopState>, std::shared_ptr<const Callable>>;
  Value() = default;
  Value(Storage storage) : storage(std::move(storage)) {}
  Value(bool b) : storage(b) {}
  Value(int64_t i) : storage(i) {}
  Value(double d) : storage(d) {}
  Value(std::string s) : storage(std::make_shared<const std::string>(std::move(s))) {}
  Value(const char *s) : Value(std::string(s)) {}
  static Value none() { return Value(Storage(None{})); }
  static Value undefined(std::string name);
  static Value markup(std::string s) { return Value(Storage(Markup{std::make_shared<const std::string>(std::move(s))})); }
  /// An int, of 64 bits where that is enough.
  static Value integer(const BigInt &i);
  /// Context data made outside a template; depth is computed, at most kMaxDataDepth
  /// (Error beyond).
  static Value list(std::vector<Value> items, bool tuple = false);
  static Value list(List list);
  static Value dict(Dict dict);
  /// JSON text (RFC 8259), keys in order, integers exact; throws Error naming
  /// `what` and the offset.
  static Value fromJson(std::string_view text, const std::string &what);

  template <typename T> bool is() const { return std::holds_alternative<T>(storage); }
  template <typename T> const T *get() const { return std::get_if<T>(&storage); }
  bool isUndefined() const { return is<Undefined>(); }
  bool isNone() const { return is<None>(); }
  bool isMarkup() const { return is<Markup>(); }
  bool isString() const { return is<String>() || isMarkup(); }
  /// int or bool.
  bool isInteger() const { return is<bool>() || is<int64_t>() || is<std::shared_ptr<const BigInt>>(); }
  bool isNumber() const { return isInteger() || is<double>(); }
  const std::string *string() const {
    if (auto *s = get<String>())
      return s->get();
    auto *m = get<Markup>();
    return m ? m->text.get() : nullptr;
  }
  /// Also of tuples, ranges, views of dicts and sets.
  const List *list() const {
    auto *l = get<std::shared_ptr<const List>>();
    return l ? l->get() : nullptr;
  }
  const Dict *dict() const {
    auto *d = get<std::shared_ptr<const Dict>>();
    return d ? d->get() : nullptr;
  }
  /// Python's name of the type, for messages: "str", "list", "undefined", ...
  const char *typeName() const;
  bool truthy() const;
  unsigned depth() const;  // 0 for scalars
  uint64_t weight() const; // at least 1; grows with the bytes of strings

  Storage storage;
};

struct List {
  enum class Kind { List, Tuple, Range, Keys, Values, Items, Group, Set };
  std::vector<Value> items;
  Kind kind = Kind::List;
  int64_t start = 0, stop = 0, step = 1; // of a range
  unsigned depth = 1;  // nesting of containers, this one included
  uint64_t weight = 1; // work to walk it as a tree; shared parts count as often as they occur

  /// A Group is the named tuple (grouper, list) of the groupby filter.
  bool isTuple() const { return kind == Kind::Tuple || kind == Kind::Group; }
  /// Views of dicts and sets have no item at a place.
  bool isIndexed() const { return kind == Kind::List || kind == Kind::Range || isTuple(); }
  /// What Python compares as sets, whatever the order.
  bool isSetLike() const { return kind == Kind::Keys || kind == Kind::Items || kind == Kind::Set; }
};

/// Keeps insertion order. Keys compare as Python's (1 == 1.0 == true).
class Dict {
public:
  /// Throws Unhashable.
  const Value *find(const Value &key) const;
  const Value *findName(std::string_view key) const;
  void set(Value key, Value value);
  const std::vector<std::pair<Value, Value>> &items() const { return entries; }
  size_t size() const { return entries.size(); }
  void clear();
  unsigned depth = 1;
  uint64_t weight = 1;

private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index; // by hashKey
};

/// Thrown where Python has no hash of a value (lists, dicts).
struct Unhashable {
  const char *type;
};
/// Equal for values that are equal as keys of a dict; throws Unhashable.
std::string hashKey(const Value &value);

struct Namespace {
  Dict attributes;
};

inline constexpr unsigned kMaxDataDepth = 100;

/// Walks the smaller of the two.
bool equal(const Value &a, const Value &b);
/// Of two numbers: <0, 0, >0; 2 where one is no number (NaN).
int compareNumbers(const Value &a, const Value &b);
/// Value of a number.
double toDouble(const Value &number);
BigInt toBigInt(const Value &integer);

/// Thrown by the spelling functions below; a list of lists that share parts may
/// be spelled exponentially long.
struct TooLong {};
inline constexpr size_t kMaxText = 16u << 20; // bytes

/// Thrown where Python prints an address in memory, or has too many digits.
struct NoSpelling {
  std::string what;
};

/// Python's str() and repr(). Throws TooLong beyond kMaxText, NoSpelling.
std::string toString(const Value &value);
std::string toRepr(const Value &value);
/// Python's repr of a float: the shortest digits that read back the same.
std::string floatRepr(double value);

struct JsonStyle {
  bool asciiOnly = false, sortKeys = false, pretty = false;
  std::string indent; // of a level, if pretty
  std::string itemSeparator = ", ", keySeparator = ": ";
};
/// json.dumps; throws Error for a value that JSON has not, TooLong beyond kMaxText.
std::string toJson(const Value &value, const JsonStyle &style);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_VALUE_H
