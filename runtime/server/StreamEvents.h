//===- StreamEvents.h - an answer as server-sent events ---------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_STREAMEVENTS_H
#define LLMC_RUNTIME_SERVER_STREAMEVENTS_H

#include "runtime/server/Completion.h"

namespace llmc {

/// "data: {...}\n\n" for every piece, as the interface of chats or texts has them.
class StreamEvents {
public:
  /// `model`: what the answer calls the model where the request does not.
  StreamEvents(const Completion &completion, const std::string &model);

  /// All that `state` has, "[DONE]" included.
  std::string of(const Completion::State &state);
  /// A comment: keeps proxies from giving up while nothing comes.
  static const char *heartbeat() { return ": waiting\n\n"; }

private:
  void add(std::string &events, const nlohmann::ordered_json &choices, const nlohmann::ordered_json &usage) const;
  nlohmann::ordered_json choice(size_t index, const std::string &text, std::span<const TokenRow> rows, const char *finish);

  const Completion &completion_;
  std::string model_;
  std::vector<bool> begun_; // by choice
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_STREAMEVENTS_H
