//===- CompletionConstraint.h - what holds an answer ------------*- C++ -*-===//
//
// The fields of a request that say which texts the answer may be: OpenAI's
// response_format, and those that vLLM has beside it. docs/constrained.md lists them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_COMPLETIONCONSTRAINT_H
#define LLMC_RUNTIME_TOOL_COMPLETIONCONSTRAINT_H

#include "runtime/tool/CompletionRequest.h"

namespace llmc {

const std::vector<std::string> &constraintFields();
/// Reads one of them. Throws BadRequest, also for a second one that holds the answer.
void readConstraint(CompletionRequest &request, const std::string &field, const nlohmann::ordered_json &value);
/// Compiles what was read into request.request.constraint. Throws BadRequest.
void applyConstraint(CompletionRequest &request, Model &model);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_COMPLETIONCONSTRAINT_H
