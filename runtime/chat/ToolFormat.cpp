//===- ToolFormat.cpp -----------------------------------------------------===//
#include "runtime/chat/ToolFormat.h"

#include <algorithm>

namespace llmc {

using Body = ToolFormat::Body;

// `llama` is last: an answer that is an object is a call there, whatever was asked for.
static constexpr ToolFormat kToolFormats[] = {
    {.name = "hermes", .open = "<tool_call>", .close = "</tool_call>"},
    {.name = "mistral", .open = "[TOOL_CALLS]", .close = "", .section = true, .list = true, .idLength = 9},
    {.name = "mistral-args", .open = "[TOOL_CALLS]", .close = "", .body = Body::Named, .separator = "[ARGS]", .idMark = "[CALL_ID]", .idLength = 9},
    {.name = "granite", .open = "<|tool_call|>", .close = "", .section = true, .list = true},
    {.name = "minimax", .open = "<tool_calls>", .close = "</tool_calls>", .section = true},
    {.name = "llama", .open = "<|python_tag|>", .close = "", .bare = true, .together = false, .argumentsKey = "parameters"},
};

static constexpr ReasoningFormat kReasoningFormats[] = {
    {"think", "<think>", "</think>"},
    {"mistral", "[THINK]", "[/THINK]"},
    {"seed", "<seed:think>", "</seed:think>"},
};

std::vector<std::string> ToolFormat::marks() const {
  std::vector<std::string> all;
  for (std::string_view mark : {open, close, separator, idMark})
    if (!mark.empty())
      all.emplace_back(mark);
  return all;
}

std::span<const ToolFormat> toolFormats() { return kToolFormats; }
std::span<const ReasoningFormat> reasoningFormats() { return kReasoningFormats; }

template <typename Format> static const Format *named(std::span<const Format> all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Format &format) { return name == format.name; });
  return found == all.end() ? nullptr : &*found;
}

const ToolFormat *findToolFormat(std::string_view name) { return named(toolFormats(), name); }
const ReasoningFormat *findReasoningFormat(std::string_view name) { return named(reasoningFormats(), name); }

} // namespace llmc
