//===- ResponseEvents.h - an answer of /v1/responses as events --*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_RESPONSEEVENTS_H
#define LLMC_RUNTIME_SERVER_RESPONSEEVENTS_H

#include "runtime/server/StreamEvents.h"
#include "runtime/tool/ResponseOutput.h"

namespace llmc {

/// "event: TYPE\ndata: {...}\n\n" for every step.
class ResponseEvents : public AnswerEvents {
public:
  ResponseEvents(const Completion &completion, const std::string &model);
  std::string of(const Completion::State &state) override;

private:
  void tell(const char *type, nlohmann::ordered_json fields);
  void tellWhole(const char *type, const ChoiceEnd *end);

  const Completion &completion_;
  const std::string model_;
  ResponseOutput output_;
  std::string events_; // not handed on yet
  uint64_t number_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_RESPONSEEVENTS_H
