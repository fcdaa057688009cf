//===- CompletionRequest.h - the body of an OpenAI request ------*- C++ -*-===//
//
// Of /v1/chat/completions and /v1/completions. Everything is checked by type and
// range; what is not known or not supported is refused by name and never ignored.
// docs/batch.md lists the fields.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_COMPLETIONREQUEST_H
#define LLMC_RUNTIME_TOOL_COMPLETIONREQUEST_H

#include "runtime/chat/AnswerParser.h"
#include "runtime/engine/Engine.h"
#include "runtime/grammar/ConstraintSource.h"
#include "runtime/tool/JsonFields.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

class Model;

inline constexpr int64_t kMaxChoices = 128;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonKeys = 2048; // of an object: finding one among its keys takes time in their number

/// Throws BadRequest for what is no JSON, nested deeper than kMaxJsonDepth or has an object of more than kMaxJsonKeys keys. Of
/// equal keys the last counts.
nlohmann::ordered_json parseJson(std::string_view text);

/// One line. What is no UTF-8 in a string becomes U+FFFD.
std::string jsonText(const nlohmann::ordered_json &json);

struct CompletionRequest {
  bool chat = false;
  std::string model; // as the request calls it
  int64_t choices = 1;
  bool stream = false, includeUsage = false; // the answer as events; their last one has the usage
  Request request; // the prompt's ids and all parameters
  std::string constraintField; // that says what the answer is held by; empty: none does
  std::optional<ConstraintSource> constraint;
  AnswerFormat answer; // of chats: what to look for in the text
  std::shared_ptr<const nlohmann::ordered_json> repeated; // not null: of /v1/responses; what the answer repeats

  /// The requests of the choices: seeds follow each other.
  std::vector<Request> requests() const;
};

/// `chat`: of a conversation. `mayStream`: the caller can answer as events. Throws BadRequest.
CompletionRequest readCompletion(const nlohmann::ordered_json &body, bool chat, Model &model, bool mayStream = false);
/// The fields that it takes.
std::vector<std::string> completionFields(bool chat, bool mayStream);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_COMPLETIONREQUEST_H
