// Calls of tools and thoughts through HTTP, streamed and not.
#include "Serving.h"
#include "ScriptedPackage.h"

using namespace fake;

namespace {

// In the manner of Hermes; tools by name alone, since the context is short.
const std::string kToolTemplate =
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>"
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{% endfor %}"
    "{% if enable_thinking %}<think>{% endif %}{# </think> #}";

const std::vector<Script> kScripts{
    {'a', {"Sure.", "\n<tool_call>", "{\"name\": \"look\", \"arg", "uments\": {\"city\": \"P", "aris\"}", "}\n</tool", "_call>"}},
    {'b', {"<tool_call>{\"name\": \"look\", \"arguments\": {\"x\": ", "oops}}", "</tool_call>"}},
    {'c', {"<think>\n", "Hm, ", "well.", "\n</think>\n\n", "Hello."}},
    {'d', {"<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>", "\n<tool_call>{\"name\": \"find\", \"arguments\": {\"n\": 1}}</tool_call>"}},
    {'>', {"So ", "so.</think>", "Bye."}}};

Json toolOf(const std::string &name) { return {{"type", "function"}, {"function", {{"name", name}, {"parameters", {{"type", "object"}, {"properties", Json::object()}}}}}}; }

class Tools : public Serving {
protected:
  void SetUp() override {
    if (!std::filesystem::exists(*folder_ / "tools")) {
      ScriptedPackage(kScripts).write(*folder_ / "tools", kToolTemplate);
      std::string mistral = kToolTemplate;
      mistral.replace(mistral.find("<tool_call>"), 11, "[TOOL_CALLS][");
      mistral.replace(mistral.find("</tool_call>"), 12, "]");
      // In the manner of Qwen3-Coder and gpt-oss, whose marks are special tokens.
      const std::string head = "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}";
      ScriptedPackage({{'a', {"Sure.\n", "<tool_call>\n<function=look>\n<para", "meter=city>\nPar", "is\n</parameter>\n", "<parameter=n>\n3", "\n</parameter>\n</function>", "\n</tool_call>"}}})
          .write(*folder_ / "qwen3-coder", head + "<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments|items %}<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}{% endfor %}");
      ScriptedPackage({{'a', {"<|channel|>", "analysis", "<|message|>", "Hm, ", "well.", "<|end|>", "<|start|>", "assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>{\"city\": ", "\"Paris\"}"}},
                       {'b', {"<|channel|>final<|message|>Hel", "lo."}}})
          .write(*folder_ / "gpt-oss", head + "<|start|>assistant to=functions.{{ c.function.name }}<|channel|>commentary json<|message|>{{ c.function.arguments | tojson }}<|call|>{% endfor %}{% endfor %}{# <|channel|>analysis<|message|> #}");
      ScriptedPackage({{'a', {"[TOOL_CALLS]", "[{\"name\": \"look\", \"arguments\": {}}", "]"}}}).write(*folder_ / "mistral", mistral);
    }
  }
  void startTools(const std::string &package = "tools", const std::string &format = "auto") {
    llmc::ServiceOptions options;
    options.load.package = *folder_ / package;
    options.load.toolFormat = format;
    start({}, options);
  }
  static Json ask(const std::string &text, Json more = Json::object()) {
    Json body = chatBody(text, {{"tools", {toolOf("look"), toolOf("find")}}, {"max_tokens", 40}});
    body.update(more);
    return body;
  }
  /// The choice of the answer; what is streamed adds up to the same.
  Json choice(Json body) {
    const Response whole = post("/v1/chat/completions", body);
    EXPECT_EQ(whole.status, 200) << whole.body;
    if (whole.status != 200)
      return {};
    Json choice = whole.json()["choices"][0];
    body["stream"] = true;
    const Response streamed = post("/v1/chat/completions", body);
    EXPECT_TRUE(streamed.done()) << streamed.body;
    Json sum = joined(streamed);
    Json wanted = choice;
    for (Json *one : {&sum, &wanted})
      for (Json &call : (*one)["message"]["tool_calls"])
        call["id"] = call["id"].get<std::string>().size(); // all differ
    if (choice["finish_reason"] == "tool_calls" || !sum["message"].contains("tool_calls")) // a call that failed cannot be taken back
      EXPECT_EQ(sum["message"].value("tool_calls", Json()), wanted["message"].value("tool_calls", Json()));
    for (const char *key : {"content", "reasoning_content"})
      EXPECT_EQ(textOf(sum, key), textOf(choice, key)) << key;
    EXPECT_EQ(sum["finish_reason"], choice["finish_reason"]);
    return choice;
  }

private:
  static std::string textOf(const Json &choice, const char *key) {
    const Json &message = choice["message"];
    return message.contains(key) && message[key].is_string() ? message[key].get<std::string>() : "";
  }
  static Json joined(const Response &response) {
    Json choice{{"message", Json::object()}};
    Json &message = choice["message"];
    for (const Json &event : response.events()) {
      const Json &one = event["choices"][0];
      EXPECT_TRUE(choice["finish_reason"].is_null()) << "nothing comes behind the end";
      choice["finish_reason"] = one["finish_reason"];
      for (const char *key : {"content", "reasoning_content"})
        if (one["delta"].contains(key) && one["delta"][key].is_string())
          message[key] = message.value(key, "") + one["delta"][key].get<std::string>();
      for (const Json &call : one["delta"].value("tool_calls", Json::array())) {
        const size_t index = call["index"];
        if (call.contains("id")) {
          EXPECT_EQ(index, message.value("tool_calls", Json::array()).size());
          EXPECT_EQ(call["function"]["arguments"], "") << "the name comes first";
          message["tool_calls"].push_back({{"id", call["id"]}, {"type", call["type"]}, {"function", call["function"]}});
        } else {
          EXPECT_FALSE(call["function"].contains("name"));
          Json &arguments = message["tool_calls"][index]["function"]["arguments"];
          arguments = arguments.get<std::string>() + call["function"]["arguments"].get<std::string>();
        }
      }
    }
    return choice;
  }
};

TEST_F(Tools, CallsComeAsCalls) {
  startTools();
  const Json one = choice(ask("a"));
  EXPECT_EQ(one["finish_reason"], "tool_calls");
  EXPECT_EQ(one["message"]["content"], "Sure.");
  ASSERT_EQ(one["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(one["message"]["tool_calls"][0]["type"], "function");
  EXPECT_EQ(one["message"]["tool_calls"][0]["function"], Json({{"name", "look"}, {"arguments", "{\"city\": \"Paris\"}"}}));
  const Json two = choice(ask("d"))["message"];
  EXPECT_EQ(two["content"], nullptr);
  ASSERT_EQ(two["tool_calls"].size(), 2u);
  EXPECT_EQ(two["tool_calls"][1]["function"], Json({{"name", "find"}, {"arguments", "{\"n\": 1}"}}));
  EXPECT_NE(two["tool_calls"][0]["id"], two["tool_calls"][1]["id"]);
  const Json first = choice(ask("d", {{"parallel_tool_calls", false}}))["message"];
  EXPECT_EQ(first["tool_calls"].size(), 1u);
}

TEST_F(Tools, ArgumentsAreStreamedAsTheyAreWritten) {
  startTools();
  const Response streamed = post("/v1/chat/completions", ask("a", {{"stream", true}, {"logprobs", true}}));
  size_t pieces = 0, rows = 0;
  for (const Json &event : streamed.events()) {
    const Json &one = event["choices"][0];
    pieces += one["delta"].contains("tool_calls");
    rows += one["logprobs"].is_null() ? 0 : one["logprobs"]["content"].size();
  }
  EXPECT_GE(pieces, 2u) << streamed.body;
  EXPECT_EQ(rows, 7u) << "every token has its row";
}

TEST_F(Tools, WhatIsNoCallIsContent) {
  startTools();
  const Json broken = choice(ask("b"));
  EXPECT_EQ(broken["finish_reason"], "stop");
  EXPECT_EQ(broken["message"]["content"], "<tool_call>{\"name\": \"look\", \"arguments\": {\"x\": oops}}</tool_call>");
  EXPECT_FALSE(broken["message"].contains("tool_calls"));
  const std::string text = "Sure.\n<tool_call>{\"name\": \"look\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>";
  EXPECT_EQ(choice(ask("a", {{"tools", {toolOf("other")}}}))["message"]["content"], text) << "a function that the request has not";
  EXPECT_EQ(choice(ask("a", {{"tool_choice", "none"}}))["message"]["content"], text);
  EXPECT_EQ(choice(ask("a", {{"tools", Json::array()}}))["message"]["content"], text);
  const Json cut = choice(ask("a", {{"max_tokens", 4}}));
  EXPECT_EQ(cut["finish_reason"], "length");
  EXPECT_EQ(cut["message"]["tool_calls"][0]["function"]["arguments"], "{\"city\": \"P");
}

TEST_F(Tools, ThoughtsComeApart) {
  startTools();
  const Json thought = choice(chatBody("c", {{"max_tokens", 40}}));
  EXPECT_EQ(thought["message"]["reasoning_content"], "Hm, well.");
  EXPECT_EQ(thought["message"]["content"], "Hello.");
  const Json hidden = choice(chatBody("c", {{"max_tokens", 40}, {"include_reasoning", false}}))["message"];
  EXPECT_FALSE(hidden.contains("reasoning_content"));
  EXPECT_EQ(hidden["content"], "Hello.");
  EXPECT_GE(post("/v1/chat/completions", chatBody("c")).json()["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
  const Json opened = choice(chatBody("x", {{"chat_template_kwargs", {{"enable_thinking", true}}}}))["message"];
  EXPECT_EQ(opened["reasoning_content"], "So so.") << "the prompt ends with the mark";
  EXPECT_EQ(opened["content"], "Bye.");
}

TEST_F(Tools, ThoughtsMayStay) {
  llmc::ServiceOptions options;
  options.load.package = *folder_ / "tools";
  options.load.reasoningFormat = "none";
  start({}, options);
  EXPECT_EQ(choice(chatBody("c", {{"max_tokens", 40}}))["message"]["content"], "<think>\nHm, well.\n</think>\n\nHello.");
}

TEST_F(Tools, ResultsGoBackToTheModel) {
  startTools();
  const Json call{{"id", "call_1"}, {"type", "function"}, {"function", {{"name", "look"}, {"arguments", "{\"n\": 1}"}}}};
  const Json conversation{{{"role", "user"}, {"content", "x"}}, {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}}, {{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", "21 c"}}};
  const Json answer = choice(ask("", {{"messages", conversation}}));
  EXPECT_EQ(answer["message"]["content"], "Hello.");
  EXPECT_EQ(answer["message"]["reasoning_content"], "Hm, well.");
}

// Marks that are special tokens show nothing where nobody looks for them.
TEST_F(Tools, MarksThatAreSpecialTokens) {
  startTools("mistral");
  const Json call = choice(ask("a"))["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "look");
  EXPECT_EQ(call["id"].get<std::string>().size(), 9u) << "as the template wants it";
  EXPECT_EQ(choice(chatBody("a"))["message"]["content"], "[{\"name\": \"look\", \"arguments\": {}}]");
  Json strict = toolOf("look");
  strict["function"]["strict"] = true;
  const Json held = choice(ask("a", {{"tools", {strict}}}))["message"]["tool_calls"][0]["function"];
  EXPECT_EQ(held, Json({{"name", "look"}, {"arguments", "{}"}})) << "the grammar has the token";
  stop();
  startTools("mistral", "hermes");
  EXPECT_EQ(choice(ask("a"))["message"]["content"], "[{\"name\": \"look\", \"arguments\": {}}]") << "told to look for something else";
  stop();
  startTools("mistral", "none");
  EXPECT_NE(errorOf(post("/v1/chat/completions", ask("a"))).find("tools: expected none"), std::string::npos);
}

TEST_F(Tools, ArgumentsBetweenMarks) {
  startTools("qwen3-coder");
  Json look = toolOf("look");
  look["function"]["parameters"]["properties"] = {{"city", {{"type", "string"}}}, {"n", {{"type", "integer"}}}};
  for (bool strict : {false, true}) {
    look["function"]["strict"] = strict;
    const Json answer = choice(ask("a", {{"tools", {look}}}));
    EXPECT_EQ(answer["finish_reason"], "tool_calls");
    EXPECT_EQ(answer["message"]["content"], "Sure.");
    EXPECT_EQ(answer["message"]["tool_calls"][0]["function"], Json({{"name", "look"}, {"arguments", "{\"city\": \"Paris\", \"n\": 3}"}})) << strict;
  }
  look["function"]["parameters"]["properties"] = {{"n", {{"type", "integer"}}}, {"city", {{"enum", {"Rome", "Oslo"}}}}};
  look["function"]["parameters"]["required"] = {"city"};
  const Json held = choice(ask("a", {{"tools", {look}}, {"tool_choice", "required"}, {"max_tokens", 120}}))["message"]["tool_calls"][0]["function"];
  const Json arguments = Json::parse(held["arguments"].get<std::string>(), nullptr, false);
  EXPECT_TRUE(arguments["city"] == "Rome" || arguments["city"] == "Oslo") << held;
}

// All of an answer is messages with heads.
TEST_F(Tools, Channels) {
  startTools("gpt-oss");
  Json look = toolOf("look");
  look["function"]["parameters"]["properties"]["city"] = {{"type", "string"}};
  for (bool strict : {false, true}) {
    look["function"]["strict"] = strict;
    for (const Json &demand : {Json("auto"), Json("required")}) {
      const Json answer = choice(ask("a", {{"tools", {look}}, {"tool_choice", demand}}));
      EXPECT_EQ(answer["finish_reason"], "tool_calls");
      EXPECT_EQ(answer["message"]["reasoning_content"], "Hm, well.") << answer;
      EXPECT_EQ(answer["message"]["tool_calls"][0]["function"], Json({{"name", "look"}, {"arguments", "{\"city\": \"Paris\"}"}})) << strict << demand;
    }
  }
  EXPECT_EQ(choice(chatBody("b", {{"max_tokens", 40}}))["message"]["content"], "Hello.");
}

TEST_F(Tools, RefusedByName) {
  startTools();
  auto function = [](Json changes) {
    Json tool = toolOf("look");
    tool["function"].update(changes);
    return Json{{"tools", {tool}}};
  };
  const std::vector<std::tuple<Json, std::string, std::string>> bad{
      {{{"tools", "x"}}, "tools", "a list of at most 128 tools"},
      {{{"tools", {1}}}, "tools[0]", "an object"},
      {{{"tools", {{{"type", "web_search"}}}}}, "tools[0].type", "\"function\""},
      {{{"tools", {{{"type", "function"}}}}}, "tools[0].function", "an object"},
      {function({{"name", "a b"}}), "tools[0].function.name", "1 to 64 letters"},
      {function({{"name", std::string(65, 'a')}}), "tools[0].function.name", "1 to 64 letters"},
      {function({{"strict", true}, {"parameters", {{"not", Json::object()}}}}), "tools", "this keyword is not supported"},
      {function({{"strict", 1}}), "tools[0].function.strict", "true or false"},
      {function({{"parameters", 1}}), "tools[0].function.parameters", "a JSON schema"},
      {function({{"returns", 1}}), "tools[0].function.returns", "unknown or not supported"},
      {{{"tools", {toolOf("look"), toolOf("look")}}}, "tools[1].function.name", "a name that no other tool has"},
      {{{"tools", std::vector<Json>(129, toolOf("look"))}}, "tools", "at most 128"},
      {{{"tool_choice", "required"}, {"response_format", {{"type", "json_object"}}}}, "response_format", "expected none beside a tool_choice that demands a call"},
      {{{"response_format", {{"type", "json_object"}}}, {"tools", function({{"strict", true}})["tools"]}}, "response_format", "expected none beside tools that are strict"},
      {{{"tool_choice", "required"}, {"tools", {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"not", Json::object()}}}}}}}}}, "tools", "this keyword is not supported"},
      {{{"tool_choice", 1}}, "tool_choice", "\"none\", \"auto\", \"required\" or an object"},
      {{{"tool_choice", {{"type", "function"}, {"function", {{"name", "other"}}}}}}, "tool_choice.function.name", "the name of one of the tools"},
      {{{"tool_choice", "required"}, {"tools", Json::array()}}, "tool_choice", "expected tools with it"},
      {{{"tool_choice", {{"type", "allowed_tools"}, {"allowed_tools", {{"mode", "x"}}}}}}, "tool_choice.allowed_tools.mode", "\"auto\" or \"required\""},
      {{{"parallel_tool_calls", 1}}, "parallel_tool_calls", "true or false"},
      {{{"chat_template_kwargs", 1}}, "chat_template_kwargs", "an object"},
      {{{"chat_template_kwargs", {{"messages", 1}}}}, "chat_template_kwargs", "variables of the template's own"},
      {{{"chat_template_kwargs", {{"thinking", true}}}}, "chat_template_kwargs.thinking", "does not mention"},
      {{{"reasoning_effort", "low"}}, "reasoning_effort", "knows no other effort"},
      {{{"reasoning_effort", "much"}}, "reasoning_effort", "expected none, minimal"},
      {{{"include_reasoning", 1}}, "include_reasoning", "true or false"},
      {{{"functions", Json::array()}}, "functions", "unknown or not supported"}};
  for (const auto &[more, param, part] : bad) {
    const Response r = post("/v1/chat/completions", ask("a", more));
    EXPECT_EQ(r.status, 400) << more;
    EXPECT_EQ(r.json()["error"]["param"], param) << more;
    EXPECT_NE(errorOf(r).find(part), std::string::npos) << errorOf(r);
  }
  for (const auto &[message, part] : std::vector<std::pair<Json, std::string>>{
           {{{"role", "user"}, {"tool_calls", {1}}}, "messages[0].tool_calls: expected calls in messages of the role assistant"},
           {{{"role", "assistant"}, {"tool_calls", 1}}, "messages[0].tool_calls: expected a list"},
           {{{"role", "assistant"}, {"tool_calls", {{{"type", "custom"}}}}}, "messages[0].tool_calls[0]: expected an object of type"},
           {{{"role", "assistant"}, {"tool_calls", {{{"function", {{"name", "f"}}}}}}}, "messages[0].tool_calls[0].function.arguments: expected a string"}}) {
    const Response r = post("/v1/chat/completions", ask("", {{"messages", {message}}}));
    EXPECT_EQ(r.status, 400);
    EXPECT_NE(errorOf(r).find(part), std::string::npos) << errorOf(r);
  }
}

// A model that would say something else is held to calls of the tools.
TEST_F(Tools, CallsThatAreDemanded) {
  startTools();
  Json find = toolOf("find");
  find["function"]["strict"] = true;
  find["function"]["parameters"] = {{"type", "object"}, {"properties", {{"n", {{"type", "integer"}, {"maximum", 9}, {"minimum", 0}}}}}, {"required", {"n"}}, {"additionalProperties", false}};
  const Json noSpace{{"9", -100}, {"10", -100}, {"13", -100}, {"32", -100}}; // but where nothing else may come
  for (const Json &demand : {Json("required"), Json{{"type", "function"}, {"function", {{"name", "find"}}}}})
    for (bool parallel : {true, false}) {
      const Json answer = choice(ask("x", {{"tools", {find}}, {"tool_choice", demand}, {"parallel_tool_calls", parallel}, {"max_tokens", 80}, {"logit_bias", noSpace}}));
      const Json &calls = answer["message"]["tool_calls"];
      ASSERT_GE(calls.size(), 1u) << answer;
      EXPECT_TRUE(answer["finish_reason"] == "tool_calls" || answer["finish_reason"] == "length");
      EXPECT_EQ(calls[0]["function"]["name"], "find");
      const Json arguments = Json::parse(calls[0]["function"]["arguments"].get<std::string>());
      EXPECT_TRUE(arguments.size() == 1 && arguments["n"].is_number_integer()) << arguments;
      if (!parallel)
        EXPECT_EQ(answer["finish_reason"], "tool_calls");
    }
}

// Nobody demands a call: text stays as it is, but a call that is begun is one of a function, with arguments of its schema where it is strict.
TEST_F(Tools, StrictToolsHoldTheirCalls) {
  startTools();
  Json find = toolOf("find"), look = toolOf("look");
  find["function"]["strict"] = true;
  find["function"]["parameters"] = {{"type", "object"}, {"properties", {{"n", {{"type", "integer"}, {"maximum", 9}, {"minimum", 0}}}}}, {"required", {"n"}}, {"additionalProperties", false}};
  look["function"]["parameters"] = {{"type", "object"}, {"properties", {{"city", {{"enum", {"Rome", "Oslo"}}}}}}, {"additionalProperties", false}};
  const auto withoutIds = [](Json message) {
    if (message.contains("tool_calls"))
      for (Json &call : message["tool_calls"])
        call.erase("id");
    return message;
  };
  for (const char *good : {"c", "d"}) // a text, and calls as the schemas want them
    EXPECT_EQ(withoutIds(choice(ask(good, {{"tools", {find, look}}}))["message"]), withoutIds(choice(ask(good))["message"])) << good;
  const Json noSpace{{"9", -100}, {"10", -100}, {"13", -100}, {"32", -100}}, limits{{"max_tokens", 120}, {"logit_bias", noSpace}};
  const auto callOf = [&](const std::vector<Json> &tools) {
    Json more = limits;
    more["tools"] = tools;
    return choice(ask("a", more))["message"]["tool_calls"][0]["function"];
  };
  EXPECT_EQ(callOf({find, look}), Json({{"name", "look"}, {"arguments", "{\"city\": \"Paris\"}"}})) << "look is not strict";
  look["function"]["strict"] = true;
  const Json held = Json::parse(callOf({find, look})["arguments"].get<std::string>());
  EXPECT_TRUE(held.empty() || held["city"] == "Rome" || held["city"] == "Oslo") << held;
  EXPECT_EQ(callOf({find})["name"], "find") << "the only one that there is";
}

TEST_F(Tools, SomeOfTheToolsMayBeAllowed) {
  startTools();
  const Json only{{"type", "allowed_tools"}, {"allowed_tools", {{"mode", "auto"}, {"tools", {{{"type", "function"}, {"function", {{"name", "find"}}}}}}}}};
  const Json answer = choice(ask("d", {{"tool_choice", only}}))["message"];
  ASSERT_EQ(answer["tool_calls"].size(), 1u);
  EXPECT_EQ(answer["tool_calls"][0]["function"]["name"], "find");
  EXPECT_EQ(answer["content"], "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>");
}

} // namespace
