//===- llmc.hpp - llmc.h for C++ --------------------------------*- C++ -*-===//
//
// Owners in the place of free functions, exceptions in the place of error buffers.
// Only llmc.h is below it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LLMC_HPP
#define LLMC_LLMC_HPP

#include "llmc/llmc.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc::api {

struct Options : llmc_options {
  Options() { llmc_options_init(this); }
};

struct End {
  std::string finish, error;
  uint64_t promptTokens = 0, cachedTokens = 0, completionTokens = 0;
};

class Request {
public:
  /// Waits for more text; empty: the request has ended. Valid until the next call.
  std::string_view next() {
    llmc_event event;
    if (llmc_next(request_.get(), &event, -1) == LLMC_EVENT_TEXT)
      return {event.text, event.text_bytes};
    return {};
  }
  /// Waits for the end; text that was not read is lost.
  End end() {
    llmc_event event;
    while (llmc_next(request_.get(), &event, -1) != LLMC_EVENT_END)
      ;
    return {event.finish, event.error, event.prompt_tokens, event.cached_tokens, event.completion_tokens};
  }
  /// All that is left of the text.
  std::string rest() {
    std::string text;
    for (std::string_view piece = next(); !piece.empty(); piece = next())
      text += piece;
    return text;
  }
  void cancel() { llmc_cancel(request_.get()); }
  llmc_request *get() { return request_.get(); }

private:
  friend class Model;
  struct Free {
    void operator()(llmc_request *request) const { llmc_request_free(request); }
  };
  explicit Request(llmc_request *request) : request_(request) {}
  std::unique_ptr<llmc_request, Free> request_;
};

class Model {
public:
  /// Throws std::runtime_error.
  explicit Model(const std::string &path, const Options &options = {}) {
    char error[LLMC_ERROR_BYTES];
    model_.reset(llmc_load(path.c_str(), &options, error));
    if (!model_)
      throw std::runtime_error(error);
  }
  /// `body`: JSON. Throws std::runtime_error for a request that is refused.
  Request chat(const std::string &body) { return submit("/v1/chat/completions", body); }
  Request complete(const std::string &body) { return submit("/v1/completions", body); }

  llmc_metrics metrics() const {
    llmc_metrics metrics;
    metrics.struct_size = sizeof metrics;
    llmc_get_metrics(model_.get(), &metrics);
    return metrics;
  }
  std::vector<llmc_ledger_item> ledger() const {
    std::vector<llmc_ledger_item> items(llmc_get_ledger(model_.get(), nullptr, 0));
    items.resize(std::min(items.size(), llmc_get_ledger(model_.get(), items.data(), items.size())));
    return items;
  }
  llmc_model *get() { return model_.get(); }

private:
  Request submit(const char *url, const std::string &body) {
    char error[LLMC_ERROR_BYTES];
    llmc_request *request = llmc_submit(model_.get(), url, body.c_str(), error);
    if (!request)
      throw std::runtime_error(error);
    return Request(request);
  }
  struct Free {
    void operator()(llmc_model *model) const { llmc_model_free(model); }
  };
  std::unique_ptr<llmc_model, Free> model_;
};

} // namespace llmc::api

#endif // LLMC_LLMC_HPP
