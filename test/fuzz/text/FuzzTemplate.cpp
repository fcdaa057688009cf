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
