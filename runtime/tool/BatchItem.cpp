//===- BatchItem.cpp ------------------------------------------------------===//
#include "runtime/tool/BatchItem.h"
#include "runtime/tool/CompletionResponse.h"
#include "runtime/tool/ResponsesRequest.h"

namespace llmc {

using Json = nlohmann::ordered_json;

static constexpr const char *kChatUrl = "/v1/chat/completions", *kTextUrl = "/v1/completions", *kResponsesUrl = "/v1/responses";

bool isBatchUrl(const std::string &url) { return url == kChatUrl || url == kTextUrl || url == kResponsesUrl; }

static void read(const Json &json, Model &model, const std::string &wanted, BatchItem &item) {
  if (!json.is_object())
    throw BadRequest("", "expected an object with custom_id, method, url and body");
  auto text = [&](const char *key) {
    if (!json.contains(key) || !json[key].is_string())
      throw BadRequest(key, "expected a string, got " + (json.contains(key) ? std::string(json[key].type_name()) : "none"));
    return json[key].get<std::string>();
  };
  if (json.contains("custom_id"))
    item.customId = json["custom_id"];
  text("custom_id");
  if (const std::string method = text("method"); method != "POST")
    throw BadRequest("method", "expected POST, got " + method);
  const std::string url = text("url");
  if (!isBatchUrl(url) || (!wanted.empty() && url != wanted))
    throw BadRequest("url", "expected " + (wanted.empty() ? std::string(kChatUrl) + ", " + kTextUrl + " or " + kResponsesUrl : wanted) + ", got " + url);
  if (!json.contains("body"))
    throw BadRequest("body", "expected an object, got none");
  item.request = url == kResponsesUrl ? readResponses(json["body"], model) : readCompletion(json["body"], url == kChatUrl, model);
}

BatchItem readBatchItem(const BatchLine &line, Model &model, const std::string &url) {
  BatchItem item;
  try {
    read(parseJson(line.text), model, url, item);
  } catch (const BadRequest &bad) {
    item.bad = bad;
  }
  return item;
}

std::string batchResult(const BatchLine &line, const Json &customId, int status, Json body) {
  return jsonText({{"id", line.id},
                   {"custom_id", customId},
                   {"response", {{"status_code", status}, {"request_id", line.id}, {"body", std::move(body)}}},
                   {"error", nullptr}});
}

std::string batchRefusal(const BatchLine &line, const Json &customId, const BadRequest &bad) {
  return batchResult(line, customId, 400, errorBody(bad.what(), "invalid_request_error", bad.param));
}

} // namespace llmc
