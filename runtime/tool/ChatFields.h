//===- ChatFields.h - what makes a request one of a conversation -*- C++ -*-===//
//
// The messages, the tools that the answer may call, and what the template is told
// beside them. docs/tools.md lists the fields.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_CHATFIELDS_H
#define LLMC_RUNTIME_TOOL_CHATFIELDS_H

#include "runtime/tool/JsonFields.h"

namespace llmc {

class ChatTemplate;
class Model;
struct ChatTraits;
struct CompletionRequest;

inline constexpr size_t kMaxTools = 128;

class ChatFields {
public:
  /// They refer to this.
  void addReaders(FieldReaders &readers);
  /// Makes the prompt and the format of the answer of what was read. Throws BadRequest, and Error as Model::encodeChat.
  void prepare(Model &model, CompletionRequest &request);

private:
  using Json = nlohmann::ordered_json;

  void readTools(const Json &value);
  void readVariables(const Json &value);
  /// Which functions may be called, and whether one must be.
  struct Choice {
    std::vector<std::string> functions;
    bool required = false;
  };
  Choice choice() const;
  Choice allowed(const Json &value) const;
  std::string functionOf(const std::string &field, const Json &value) const;
  std::vector<std::string> functions() const;
  void checkMessages(const ChatTraits &traits, const ChatTemplate &chatTemplate);
  void setEffort(Model &model);
  void holdToCalls(Model &model, CompletionRequest &request, bool demanded) const;

  Json messages_, tools_ = Json::array(), variables_ = Json::object();
  Json choice_; // as it came
  std::string effort_;
  bool parallel_ = true, showReasoning_ = true, strict_ = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_CHATFIELDS_H
