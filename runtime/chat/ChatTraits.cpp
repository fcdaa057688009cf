//===- ChatTraits.cpp -----------------------------------------------------===//
#include "runtime/chat/ChatTraits.h"
#include "llmc/Support/Error.h"
#include "runtime/chat/AnswerParser.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

namespace llmc {

using Json = nlohmann::ordered_json;

static constexpr const char *kFunction = "llmc_probe";

namespace {

/// Renders conversations, and answers in them as a model would write them.
class Probe {
public:
  Probe(const ChatTemplate &chatTemplate, const std::string &bos, const std::string &eos) : template_(chatTemplate) {
    options_.bosToken = bos;
    options_.eosToken = eos;
  }

  void setTools(bool there) {
    options_.toolsJson.clear();
    if (there)
      options_.toolsJson = Json::array({{{"type", "function"},
                                       {"function",
                                        {{"name", kFunction},
                                         {"description", "Says a word."},
                                         {"parameters", {{"type", "object"}, {"properties", {{"word", {{"type", "string"}, {"description", "what to say"}}}}}, {"required", {"word"}}}}}}}})
                             .dump();
  }

  /// Nothing where the template refuses it.
  std::optional<std::string> render(const Json &messages, bool opened) {
    options_.addGenerationPrompt = opened;
    try {
      return renderChatJson(template_, messages.dump(), options_);
    } catch (const Error &) {
      return {};
    }
  }

  /// What a model would have written for `answer`.
  std::optional<std::string> written(const Json &answer) {
    const std::optional<std::string> all = render(Json::array({question()[0], answer}), false);
    for (bool opened : {true, false}) // what opens an answer may differ from what answers given begin with
      if (const std::optional<std::string> before = render(question(), opened); all && before && all->starts_with(*before))
        return all->substr(before->size());
    return all;
  }

  static Json question() { return Json::array({{{"role", "user"}, {"content", "Say hello."}}}); }

private:
  const ChatTemplate &template_;
  ChatOptions options_;
};

} // namespace

// Of nine letters, as some templates want it, or one with the name.
static const std::string kIds[] = {"llmcprobe", std::string("functions.") + kFunction + ":0"};

static Json callOf(const Json &arguments, const std::string &id) {
  return {{"role", "assistant"},
          {"content", ""},
          {"tool_calls", {{{"id", id}, {"type", "function"}, {"function", {{"name", kFunction}, {"arguments", arguments}}}}}}};
}

static bool reads(const ToolFormat &format, const std::string &text, const Json &arguments) {
  AnswerFormat answer;
  answer.tools = &format;
  answer.functions = {kFunction};
  AnswerParser parser(answer);
  AnswerPieces pieces;
  parser.feed(text, pieces);
  return parser.calls() == 1 && std::any_of(pieces.begin(), pieces.end(), [&](const AnswerPiece &piece) {
           return piece.kind == AnswerPiece::Kind::Arguments && Json::parse(piece.text, nullptr, false) == arguments;
         });
}

static void findTools(ChatTraits &traits, Probe &probe) {
  const Json arguments{{"word", "hello"}};
  for (const std::string &id : kIds)
    for (bool text : {false, true}) {
      const std::optional<std::string> written = traits.tools ? std::nullopt : probe.written(callOf(text ? Json(arguments.dump()) : arguments, id));
      for (const ToolFormat &format : toolFormats())
        if (written && !traits.tools && reads(format, *written, arguments)) {
          traits.tools = &format;
          traits.textArguments = text;
        }
    }
}

ChatTraits traitsOf(const ChatTemplate &chatTemplate, const std::string &bos, const std::string &eos) {
  ChatTraits traits;
  Probe probe(chatTemplate, bos, eos);
  traits.opensAnswer = probe.render(Probe::question(), true) != probe.render(Probe::question(), false);
  for (const ReasoningFormat &format : reasoningFormats())
    if (!traits.reasoning && chatTemplate.source().find(format.channels ? format.open : format.close) != std::string::npos)
      traits.reasoning = &format;
  probe.setTools(true);
  const std::optional<std::string> shown = probe.render(Probe::question(), true);
  traits.takesTools = shown && shown->find(kFunction) != std::string::npos;
  probe.setTools(traits.takesTools); // one that fails with them may write calls
  findTools(traits, probe);
  traits.writesCalls = traits.tools;
  return traits;
}

bool mentions(const ChatTemplate &chatTemplate, std::string_view name) {
  const std::string &source = chatTemplate.source();
  auto word = [&](size_t at) { return at < source.size() && (std::isalnum(static_cast<unsigned char>(source[at])) || source[at] == '_'); };
  for (size_t at = source.find(name); !name.empty() && at != std::string::npos; at = source.find(name, at + 1))
    if ((at == 0 || !word(at - 1)) && !word(at + name.size()))
      return true;
  return false;
}

} // namespace llmc
