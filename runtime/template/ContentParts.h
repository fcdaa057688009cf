//===- ContentParts.h - messages whose content is no string -----*- C++ -*-===//
//
// A request may give the content of a message as a list of parts, or null beside
// tool calls. Some templates expect that and some print Python's spelling of it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_CONTENTPARTS_H
#define LLMC_RUNTIME_TEMPLATE_CONTENTPARTS_H

#include "runtime/template/Value.h"

#include <functional>

namespace llmc {

/// Between text parts of a message for a template that takes strings alone.
inline constexpr const char *kPartSeparator = "\n";

/// Renders `messages`, a list of dicts, with `render`. Where it has lists or nulls
/// as contents, it is rendered both with them and with strings in their place
/// (texts joined by kPartSeparator, "" for null and for no parts); the template
/// gets the strings if it refuses the others, drops their texts, or prints them as
/// a list or as None. Decided for all messages of a role together. Throws Error for
/// a part that is no text if `textOnly`, and otherwise where the template cannot
/// take it.
std::string renderWithParts(const jinja::Value &messages, bool textOnly,
                            const std::function<std::string(jinja::Value)> &render);

} // namespace llmc

#endif // LLMC_RUNTIME_TEMPLATE_CONTENTPARTS_H
