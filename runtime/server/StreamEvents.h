//===- StreamEvents.h - an answer as server-sent events ---------*- C++ -*-===//
#ifndef LLMC_RUNTIME_SERVER_STREAMEVENTS_H
#define LLMC_RUNTIME_SERVER_STREAMEVENTS_H

#include "runtime/server/Completion.h"

namespace llmc {

class AnswerEvents {
public:
  /// As the request's interface has them. `model`: what the answer calls the model where the request does not.
  static std::unique_ptr<AnswerEvents> make(const Completion &completion, const std::string &model);
  virtual ~AnswerEvents() = default;

  /// All that `state` has, with what ends the stream.
  virtual std::string of(const Completion::State &state) = 0;
  /// A comment: keeps proxies from giving up while nothing comes.
  static const char *heartbeat() { return ": waiting\n\n"; }
};

/// Of chats and texts: "data: {...}\n\n" for every piece, and "[DONE]".
class StreamEvents : public AnswerEvents {
public:
  StreamEvents(const Completion &completion, const std::string &model);
  std::string of(const Completion::State &state) override;

private:
  void add(std::string &events, const nlohmann::ordered_json &choices, const nlohmann::ordered_json &usage) const;
  nlohmann::ordered_json choice(size_t index, const AnswerPiece *piece, std::span<const TokenRow> rows, const char *finish);

  const Completion &completion_;
  std::string model_;
  std::vector<bool> begun_; // by choice
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_STREAMEVENTS_H
