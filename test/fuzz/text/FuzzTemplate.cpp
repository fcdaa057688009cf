// Any bytes as a template: an Error or text, within the limits.
#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/tokenizer/Utf8.h"

#include <cstdint>
#include <cstdlib>

using namespace llmc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::string messages =
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "é\n"},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]},
          {"role": "tool", "content": {"x": true}}])";
  ChatOptions options;
  options.bosToken = "<s>";
  options.toolsJson = R"([{"type": "function", "function": {"name": "f"}}])";
  options.extraJson = R"({"s": "Hello, W\u00f6rld", "u": "\u01c5 \u00df \u0130\u03a3", "n": 7, "big": 1180591620717411303424, "f": -2.5, "no": null,
      "xs": [3, 1, 2], "d": {"b": 1, "a": [1, 2.0, null], "1": true}, "words": ["pear", "Apple"],
      "people": [{"name": "Ann", "age": 31}, {"name": "bob", "age": 25}],
      "tree": [{"v": 1, "c": [{"v": 2, "c": []}]}]})";
  options.now = std::tm{};
  try {
    ChatTemplate chatTemplate = ChatTemplate::parse({reinterpret_cast<const char *>(data), size});
    std::string text = renderChatJson(chatTemplate, messages, options);
    if (utf8::firstInvalid(text) != text.size())
      std::abort();
  } catch (const Error &) {
  }
  return 0;
}
