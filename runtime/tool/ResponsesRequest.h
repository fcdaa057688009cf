//===- ResponsesRequest.h - the body of a request to /v1/responses -*- C++ -*-===//
//
// The same conversation in other words: it becomes a request for a chat, whose checks
// it shares. Errors name the fields as they are called here.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_RESPONSESREQUEST_H
#define LLMC_RUNTIME_TOOL_RESPONSESREQUEST_H

#include "runtime/tool/CompletionRequest.h"

namespace llmc {

/// Its `repeated` is set. Throws BadRequest.
CompletionRequest readResponses(const nlohmann::ordered_json &body, Model &model, bool mayStream = false);
/// The fields that it takes.
std::vector<std::string> responsesFields();

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_RESPONSESREQUEST_H
