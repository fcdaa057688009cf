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
    {.name = "qwen3-coder", .open = "<tool_call>", .close = "</tool_call>", .body = Body::Tagged, .callOpen = "<function=", .callClose = "</function>", .separator = ">",
     .keyOpen = "<parameter=", .keyClose = ">", .valueClose = "</parameter>", .pad = "\n"},
    {.name = "seed", .open = "<seed:tool_call>", .close = "</seed:tool_call>", .body = Body::Tagged, .callOpen = "<function=", .callClose = "</function>", .separator = ">",
     .keyOpen = "<parameter=", .keyClose = ">", .valueClose = "</parameter>"},
    {.name = "glm", .open = "<tool_call>", .close = "", .body = Body::Tagged, .callClose = "</tool_call>",
     .keyOpen = "<arg_key>", .keyClose = "</arg_key>", .valueOpen = "\n<arg_value>", .valueClose = "</arg_value>"},
    {.name = "deepseek", .open = "<｜tool▁calls▁begin｜>", .close = "<｜tool▁calls▁end｜>", .section = true, .body = Body::Named,
     .callOpen = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", .callClose = "\n```<｜tool▁call▁end｜>", .separator = "\n```json\n"},
    {.name = "deepseek-v3.1", .open = "<｜tool▁calls▁begin｜>", .close = "<｜tool▁calls▁end｜>", .section = true, .body = Body::Named,
     .callOpen = "<｜tool▁call▁begin｜>", .callClose = "<｜tool▁call▁end｜>", .separator = "<｜tool▁sep｜>"},
    {.name = "deepseek-v3.2", .open = "<｜DSML｜function_calls>", .close = "</｜DSML｜function_calls>", .section = true, .body = Body::Tagged,
     .callOpen = "<｜DSML｜invoke name=\"", .callClose = "</｜DSML｜invoke>", .separator = "\">", .keyOpen = "<｜DSML｜parameter name=\"", .keyClose = "\" string=\"",
     .valueOpen = "true\">", .valueClose = "</｜DSML｜parameter>", .jsonOpen = "false\">"},
    {.name = "kimi", .open = "<|tool_calls_section_begin|>", .close = "<|tool_calls_section_end|>", .section = true, .body = Body::Named,
     .callOpen = "<|tool_call_begin|>functions.", .callClose = "<|tool_call_end|>", .separator = "<|tool_call_argument_begin|>", .idMark = ":", .idPrefix = "functions."},
    {.name = "gpt-oss", .open = "<|channel|>", .close = "<|call|>", .body = Body::Channels, .callOpen = "to=functions.", .separator = "<|message|>", .together = false},
    {.name = "llama", .open = "<|python_tag|>", .close = "", .bare = true, .together = false, .argumentsKey = "parameters"},
};

static constexpr ReasoningFormat kReasoningFormats[] = {
    {"think", "<think>", "</think>"},
    {"mistral", "[THINK]", "[/THINK]"},
    {"seed", "<seed:think>", "</seed:think>"},
    {"gpt-oss", "<|channel|>analysis<|message|>", "<|end|>", true},
};

// Marks of tokens within a text: <...>.
static void addMarks(std::vector<std::string> &all, std::string_view text) {
  const auto add = [&](std::string_view mark) {
    if (!mark.empty() && std::find(all.begin(), all.end(), mark) == all.end())
      all.emplace_back(mark);
  };
  add(text);
  for (size_t at = text.find('<'), end = 0; at != text.npos && (end = text.find('>', at)) != text.npos; at = text.find('<', end))
    add(text.substr(at, end + 1 - at));
}

std::vector<std::string> ToolFormat::marks() const {
  std::vector<std::string> all;
  for (std::string_view mark : {open, close, callOpen, callClose, separator, idMark.size() > 1 ? idMark : std::string_view(), keyOpen, keyClose, valueOpen, valueClose})
    addMarks(all, mark);
  if (body == Body::Channels)
    for (std::string_view mark : {"<|start|>", "<|end|>", "<|constrain|>", "<|return|>"})
      addMarks(all, mark);
  return all;
}

std::vector<std::string> ReasoningFormat::marks() const {
  std::vector<std::string> all;
  for (std::string_view mark : {open, close, channels ? std::string_view("<|start|>") : std::string_view()})
    addMarks(all, mark);
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
