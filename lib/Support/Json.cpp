//===- Json.cpp -----------------------------------------------------------===//
//
// nlohmann's SAX parser feeds a tree builder. It reads through an iterator that
// publishes where it is, which is how nodes get their byte positions.
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Json.h"
#include "llmc/Support/File.h"
#include "llmc/Support/Text.h"

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

using namespace llmc;

static constexpr size_t maxDepth = 128;
/// Of one text: a value costs some 50 bytes and the text of one only two. Four times what the largest tokenizer.json has.
static constexpr size_t maxValues = size_t(1) << 23;

namespace {

struct TrackedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;
  const char *at;
  const char **current;

  reference operator*() const { return *at; }
  TrackedIterator &operator++() {
    *current = ++at;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedIterator &other) const { return at == other.at; }
  bool operator!=(const TrackedIterator &other) const { return at != other.at; }
};

class TreeBuilder {
public:
  using json = nlohmann::json;
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  TreeBuilder(const std::string &file, const char *start, const char *const &current, uint64_t base,
              JsonNode &root)
      : file(file), start(start), current(current), base(base), root(root) {}

  bool null() { return put(std::monostate()); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(number_integer_t value) { return put(static_cast<int64_t>(value)); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return put(static_cast<double>(value));
    return put(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t &) { return put(value); }
  bool string(string_t &value) { return put(std::move(value)); }
  bool binary(binary_t &) { return false; } // not in JSON text
  bool start_object(std::size_t) { return open(JsonNode::Object()); }
  bool start_array(std::size_t) { return open(JsonNode::Array()); }
  bool end_array() { return close(); }
  bool end_object() {
    keys.pop_back();
    return close();
  }
  bool key(string_t &name) {
    if (!keys.back().insert(name).second)
      fail("repeated key " + quote(name));
    std::get<JsonNode::Object>(stack.back()->value).push_back({std::move(name), {}});
    return true;
  }
  bool parse_error(std::size_t byte, const std::string &, const json::exception &exception) {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while ...; last read: '...'"
    std::string message = exception.what();
    size_t cut = message.find(": ");
    if (cut != std::string::npos)
      message.erase(0, cut + 2);
    // The last token read may be the whole text.
    size_t end = message.size(), most = 300;
    std::string tail = end > most ? message.substr(end - most / 2) : "";
    message = printable(message.substr(0, end > most ? most / 2 : end), most);
    if (!tail.empty())
      message += " ... " + printable(tail, most);
    // For out-of-range numbers nlohmann passes the position as well.
    throw Error(file + ": byte " + std::to_string(base + byte) + ": expected JSON, got a " + message);
  }

private:
  [[noreturn]] void fail(const std::string &message) const {
    throw Error(file + ": byte " + std::to_string(offset()) + ": " + message);
  }
  uint64_t offset() const { return base + static_cast<uint64_t>(current - start); }

  template <class T> JsonNode &place(T &&value) {
    if (++values > maxValues)
      fail("expected at most " + std::to_string(maxValues) + " values, got more");
    JsonNode *node = &root;
    if (!stack.empty()) {
      if (auto *object = std::get_if<JsonNode::Object>(&stack.back()->value))
        node = &object->back().node;
      else
        node = &std::get<JsonNode::Array>(stack.back()->value).emplace_back();
    }
    node->value = std::forward<T>(value);
    node->position = offset();
    return *node;
  }
  template <class T> bool put(T &&value) {
    place(std::forward<T>(value));
    return true;
  }
  template <class T> bool open(T &&container) {
    if (stack.size() == maxDepth)
      fail("expected at most " + std::to_string(maxDepth) + " nested levels, got more");
    // A parent's vector does not grow while its child is open, so the pointer stays.
    stack.push_back(&place(std::forward<T>(container)));
    if constexpr (std::is_same_v<std::decay_t<T>, JsonNode::Object>)
      keys.emplace_back();
    return true;
  }
  bool close() {
    stack.pop_back();
    return true;
  }

  const std::string &file;
  const char *start;
  const char *const &current;
  uint64_t base;
  size_t values = 0;
  JsonNode &root;
  std::vector<JsonNode *> stack;
  std::vector<std::unordered_set<std::string>> keys; // of the open objects
};

} // namespace

JsonDocument JsonDocument::parse(std::string_view text, std::string file) {
  JsonDocument document;
  document.file = std::move(file);
  document.tree = std::make_unique<JsonNode>();
  uint64_t base = 0;
  auto starts = [&](std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; };
  using namespace std::string_view_literals;
  if (starts("\xef\xbb\xbf"sv)) {
    text.remove_prefix(3);
    base = 3;
  }
  bool utf16 = starts("\xff\xfe"sv) || starts("\xfe\xff"sv) || (text.size() >= 2 && (!text[0] || !text[1]));
  if (utf16)
    throw Error(document.file + ": byte 0: expected UTF-8 text, got UTF-16 or binary");
  const char *current = text.data();
  TreeBuilder builder(document.file, text.data(), current, base, *document.tree);
  TrackedIterator first{text.data(), &current}, last{text.data() + text.size(), &current};
  nlohmann::json::sax_parse(first, last, &builder);
  return document;
}

JsonDocument JsonDocument::readFile(const std::string &path) { return parse(readTextFile(path), path); }

//===----------------------------------------------------------------------===//
// JsonView
//===----------------------------------------------------------------------===//

Error JsonView::error(const std::string &message) const {
  // Keys are as untrusted as values.
  return Error(*file + ": " + (keyPath.empty() ? "" : printable(keyPath, 300) + ": ") + message + " (byte " +
               std::to_string(json->position) + ")");
}

Error JsonView::expected(const std::string &what) const {
  struct Describe {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const {
      char text[40];
      std::snprintf(text, sizeof text, "%.17g", value);
      return text;
    }
    std::string operator()(const std::string &value) const { return quote(value); }
    std::string operator()(const JsonNode::Array &value) const {
      return "an array of " + std::to_string(value.size());
    }
    std::string operator()(const JsonNode::Object &) const { return "an object"; }
  };
  return error("expected " + what + ", got " + std::visit(Describe(), json->value));
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  for (const JsonMember &member : object())
    if (member.key == key) {
      if (member.node.isNull())
        return std::nullopt;
      return at(member);
    }
  return std::nullopt;
}

JsonView JsonView::at(const JsonMember &member) const {
  return JsonView(*file, member.node, keyPath.empty() ? member.key : keyPath + "." + member.key);
}

JsonView JsonView::get(std::string_view key) const {
  if (auto view = find(key))
    return *view;
  throw error("expected the key " + quote(key) + ", got none");
}

JsonView JsonView::at(size_t index) const {
  return JsonView(*file, array().at(index), keyPath + "[" + std::to_string(index) + "]");
}

const JsonNode::Array &JsonView::array() const {
  if (auto *value = json->array())
    return *value;
  throw expected("an array");
}

const JsonNode::Object &JsonView::object() const {
  if (auto *value = json->object())
    return *value;
  throw expected("an object");
}

const std::string &JsonView::string() const {
  if (auto *value = json->string())
    return *value;
  throw expected("a string");
}

bool JsonView::boolean() const {
  if (auto *value = std::get_if<bool>(&json->value))
    return *value;
  throw expected("true or false");
}

double JsonView::number() const {
  if (auto *value = std::get_if<double>(&json->value))
    return *value;
  if (auto *value = std::get_if<int64_t>(&json->value))
    return static_cast<double>(*value);
  throw expected("a number");
}

int64_t JsonView::integer() const {
  if (auto *value = std::get_if<int64_t>(&json->value))
    return *value;
  if (auto *value = std::get_if<double>(&json->value))
    if (std::trunc(*value) == *value && std::fabs(*value) < 0x1p53)
      return static_cast<int64_t>(*value);
  throw expected("an integer");
}
