//===- BatchItem.h - a line of a batch and its result -----------*- C++ -*-===//
//
// The form of OpenAI's batch interface, shared by the command `batch` and the server.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_BATCHITEM_H
#define LLMC_RUNTIME_TOOL_BATCHITEM_H

#include "runtime/tool/BatchFile.h"
#include "runtime/tool/CompletionRequest.h"

#include <optional>

namespace llmc {

/// What a line asks: {"custom_id", "method", "url", "body"}.
struct BatchItem {
  nlohmann::ordered_json customId; // null: the line has none
  CompletionRequest request;
  std::optional<BadRequest> bad; // what is wrong with the line; then there is no request
};
/// `url`: the only one that the lines may have; empty: any that a batch answers.
BatchItem readBatchItem(const BatchLine &line, Model &model, const std::string &url = "");
bool isBatchUrl(const std::string &url);

/// The line of the results.
std::string batchResult(const BatchLine &line, const nlohmann::ordered_json &customId, int status, nlohmann::ordered_json body);
/// That of a line which is wrong.
std::string batchRefusal(const BatchLine &line, const nlohmann::ordered_json &customId, const BadRequest &bad);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_BATCHITEM_H
