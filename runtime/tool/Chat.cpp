//===- Chat.cpp - a conversation as the model's prompt --------------------===//
#include "llmc/Support/Error.h"
#include "runtime/tool/Model.h"

namespace llmc {

std::string Model::renderChat(const std::string &messagesJson) {
  throw Error(package_.path() + ": the package has no chat template; use --raw");
}

} // namespace llmc
