//===- ServiceBatches.cpp - the routes of files and batches ---------------===//
#include "runtime/server/Batches.h"
#include "runtime/server/Form.h"
#include "runtime/server/Service.h"
#include "runtime/tool/Numbers.h"

#include <algorithm>
#include <optional>

namespace llmc {

using Json = nlohmann::ordered_json;

Batches &Service::batches() const {
  if (!batches_)
    throw HttpError(404, "path: expected a server that was started with --batch-dir, got one without", "", "not_found");
  return *batches_;
}

static HttpError noSuch(const std::string &what, const std::string &id) {
  return HttpError(404, "path: expected the id of a " + what + " that is kept here, got " + id.substr(0, 100), what + "_id", "not_found");
}

/// A part of a list as the query asks: `limit`, and `after` an id; `others`: what else it may have.
static HttpResponse part(const HttpRequest &request, std::vector<Json> all, uint64_t most, uint64_t usual, std::initializer_list<const char *> others) {
  uint64_t limit = usual;
  std::optional<std::string> after;
  for (const auto &[key, value] : queryOf(request.target)) {
    if (key == "limit") {
      if (!parseCount(value, limit) || limit < 1 || limit > most)
        throw BadRequest("limit", "expected a whole number from 1 to " + std::to_string(most) + ", got " + value.substr(0, 60));
    } else if (key == "after") {
      after = value;
    } else if (std::find(others.begin(), others.end(), key) == others.end()) {
      throw BadRequest(key.substr(0, 60), "unknown or not supported");
    }
  }
  auto begin = all.begin();
  if (after) {
    begin = std::find_if(all.begin(), all.end(), [&](const Json &item) { return item["id"] == *after; });
    if (begin == all.end())
      throw BadRequest("after", "expected an id of the list, got \"" + after->substr(0, 60) + "\"");
    ++begin;
  }
  const auto end = begin + std::min<ptrdiff_t>(ptrdiff_t(limit), all.end() - begin);
  Json data = Json::array();
  for (auto item = begin; item != end; ++item)
    data.push_back(*item);
  return jsonResponse({{"object", "list"},
                       {"data", data},
                       {"first_id", data.empty() ? Json() : data.front()["id"]},
                       {"last_id", data.empty() ? Json() : data.back()["id"]},
                       {"has_more", end != all.end()}});
}

HttpResponse Service::createFile(const HttpRequest &request) {
  FileStore &files = batches().files();
  std::string purpose;
  const std::vector<FormPart> parts = parseForm(request.type, request.body);
  const FormPart *file = nullptr;
  for (const FormPart &part : parts)
    if (part.name == "purpose")
      purpose = part.content;
    else if (part.name == "file")
      file = &part;
    else
      throw BadRequest(part.name.substr(0, 60), "unknown or not supported");
  if (purpose != "batch")
    throw BadRequest("purpose", "expected batch, got " + (purpose.empty() ? "none" : purpose.substr(0, 60)));
  if (!file || file->content.empty())
    throw BadRequest("file", "expected lines of JSON, got none");
  return jsonResponse(files.add(file->fileName.substr(0, 255), purpose, file->content).describe());
}

HttpResponse Service::files(const HttpRequest &request) {
  std::vector<StoredFile> files = batches().files().list();
  const auto query = queryOf(request.target);
  if (const auto order = query.find("order"); order != query.end()) {
    if (order->second != "asc" && order->second != "desc")
      throw BadRequest("order", "expected asc or desc, got " + order->second.substr(0, 60));
    if (order->second == "asc")
      std::reverse(files.begin(), files.end());
  }
  std::vector<Json> all;
  const auto purpose = query.find("purpose");
  for (const StoredFile &file : files)
    if (purpose == query.end() || file.purpose == purpose->second)
      all.push_back(file.describe());
  return part(request, std::move(all), 10000, 10000, {"order", "purpose"});
}

HttpResponse Service::file(const HttpRequest &request) {
  if (const auto file = batches().files().find(request.param))
    return jsonResponse(file->describe());
  throw noSuch("file", request.param);
}

HttpResponse Service::fileContent(const HttpRequest &request) {
  FileStore &files = batches().files();
  const auto file = files.find(request.param);
  if (!file)
    throw noSuch("file", request.param);
  HttpResponse response;
  response.type = "application/jsonl";
  response.file = std::make_shared<InputFile>(InputFile::open(files.pathOf(file->id)));
  return response;
}

HttpResponse Service::deleteFile(const HttpRequest &request) {
  if (!batches().files().remove(request.param))
    throw noSuch("file", request.param);
  return jsonResponse({{"id", request.param}, {"object", "file"}, {"deleted", true}});
}

HttpResponse Service::createBatch(const HttpRequest &request) {
  Batches &all = batches();
  return jsonResponse(all.create(parseJson(request.body)));
}

HttpResponse Service::listBatches(const HttpRequest &request) { return part(request, batches().list(), 100, 20, {}); }

HttpResponse Service::batch(const HttpRequest &request) {
  if (const auto found = batches().find(request.param))
    return jsonResponse(*found);
  throw noSuch("batch", request.param);
}

HttpResponse Service::cancelBatch(const HttpRequest &request) {
  if (const auto found = batches().cancel(request.param))
    return jsonResponse(*found);
  throw noSuch("batch", request.param);
}

} // namespace llmc
