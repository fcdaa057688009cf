// /v1/responses: items in, items out, streamed and not.
#include "Serving.h"
#include "ScriptedPackage.h"
#include "llmc/Support/Error.h"
#include "runtime/tool/ResponsesInput.h"

using namespace fake;

namespace {

const std::string kTemplate2 = "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>"
                               "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{% endfor %}{# </think> #}";

class Responses : public Serving {
protected:
  void SetUp() override {
    if (!std::filesystem::exists(*folder_ / "responses")) {
      ScriptedPackage({{'a', {"<think>Hm.", "</think>", "Sure.", "\n<tool_call>{\"name\": \"look\", \"arguments\": {\"c\": \"", "P\"}}", "</tool_call>"}},
                       {'b', {"Well, ", "hello", "."}},
                       {'c', {"<tool_call>{\"name\": \"look\", \"arguments\": {\"x\": ", "oops}}"}}})
          .write(*folder_ / "responses", kTemplate2);
      ScriptedPackage({{'b', {"Well, ", "hello", "."}}}).write(*folder_ / "plain", "{% for m in messages %}{{ m.content }}{% endfor %}");
    }
  }
  void startWith(const std::string &package) {
    llmc::ServiceOptions options;
    options.load.package = *folder_ / package;
    start({}, options);
  }
  static Json ask(const Json &input, Json more = Json::object()) {
    Json body{{"input", input}, {"temperature", 0}, {"tools", {{{"type", "function"}, {"name", "look"}, {"parameters", {{"type", "object"}}}, {"strict", false}}}}};
    body.update(more);
    return body;
  }
  /// The answer, and the same built of the events of a stream.
  std::pair<Json, Json> both(Json body) {
    const Response whole = post("/v1/responses", body);
    EXPECT_EQ(whole.status, 200) << whole.body;
    body["stream"] = true;
    const Response streamed = post("/v1/responses", body);
    EXPECT_EQ(streamed.headers.at("content-type"), "text/event-stream");
    return {whole.json(), rebuilt(streamed)};
  }
  /// Follows the events as a client does, and checks their order.
  static Json rebuilt(const Response &streamed) {
    Json output = Json::array(), last;
    int64_t number = 0;
    for (const Json &event : streamed.events()) {
      EXPECT_EQ(event["sequence_number"], number++);
      const std::string type = event["type"];
      EXPECT_NE(streamed.body.find("event: " + type + "\ndata: {"), std::string::npos);
      EXPECT_TRUE(last.is_null()) << "nothing comes behind the end";
      if (number == 1) {
        EXPECT_EQ(type, "response.created");
        EXPECT_EQ(event["response"]["status"], "in_progress");
      }
      if (type == "response.completed" || type == "response.incomplete")
        last = event["response"];
      if (!event.contains("output_index"))
        continue;
      const size_t index = event["output_index"];
      if (type == "response.output_item.added") {
        EXPECT_EQ(index, output.size());
        output.push_back(event["item"]);
        continue;
      }
      EXPECT_EQ(index, output.size() - 1);
      Json &item = output[index];
      if (type == "response.output_item.done")
        EXPECT_EQ(std::exchange(item, event["item"]).value("arguments", ""), event["item"].value("arguments", "")) << "the pieces are the whole";
      else if (type == "response.content_part.added")
        item["content"].push_back(event["part"]);
      else if (type == "response.output_text.delta" || type == "response.reasoning_text.delta")
        item["content"][0]["text"] = item["content"][0]["text"].get<std::string>() + event["delta"].get<std::string>();
      else if (type == "response.function_call_arguments.delta")
        item["arguments"] = item["arguments"].get<std::string>() + event["delta"].get<std::string>();
      else if (type == "response.output_text.done" || type == "response.reasoning_text.done")
        EXPECT_EQ(item["content"][0]["text"], event["text"]);
      if (event.contains("item_id"))
        EXPECT_EQ(event["item_id"], item["id"]);
    }
    EXPECT_FALSE(last.is_null()) << streamed.body;
    EXPECT_EQ(last["output"], output);
    return last;
  }
  /// Without what differs from answer to answer.
  static Json still(Json answer) {
    for (const char *key : {"id", "created_at", "usage"})
      answer.erase(key);
    for (Json &item : answer["output"]) {
      item.erase("id");
      item.erase("call_id");
    }
    return answer;
  }
};

TEST_F(Responses, ItemsInTheOrderOfTheText) {
  startWith("responses");
  const auto [whole, streamed] = both(ask("a", {{"metadata", {{"k", "v"}}}, {"instructions", "Be brief. "}, {"max_output_tokens", 30}}));
  EXPECT_EQ(still(whole), still(streamed));
  EXPECT_EQ(whole["object"], "response");
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["metadata"], Json({{"k", "v"}}));
  EXPECT_EQ(whole["instructions"], "Be brief. ");
  EXPECT_EQ(whole["max_output_tokens"], 30);
  EXPECT_EQ(whole["store"], false);
  EXPECT_EQ(whole["usage"]["input_tokens"], 15);
  EXPECT_EQ(whole["usage"]["total_tokens"], whole["usage"]["input_tokens"].get<int>() + whole["usage"]["output_tokens"].get<int>());
  const Json &output = whole["output"];
  ASSERT_EQ(output.size(), 3u) << output;
  EXPECT_EQ(output[0]["type"], "reasoning");
  EXPECT_EQ(output[0]["content"][0], Json({{"type", "reasoning_text"}, {"text", "Hm."}}));
  EXPECT_EQ(output[1]["content"][0]["text"], "Sure.");
  EXPECT_EQ(output[2]["type"], "function_call");
  EXPECT_EQ(output[2]["name"], "look");
  EXPECT_EQ(output[2]["arguments"], "{\"c\": \"P\"}");
  EXPECT_TRUE(output[2]["call_id"].get<std::string>().starts_with("call_"));
}

TEST_F(Responses, CutAndBroken) {
  startWith("responses");
  const auto [cut, cutStreamed] = both(ask("b", {{"max_output_tokens", 2}}));
  EXPECT_EQ(still(cut), still(cutStreamed));
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"], Json({{"reason", "max_output_tokens"}}));
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
  EXPECT_EQ(cut["output"][0]["content"][0]["text"], "Well, hello");
  const auto [broken, brokenStreamed] = both(ask("c"));
  const std::string text = "<tool_call>{\"name\": \"look\", \"arguments\": {\"x\": oops}}";
  ASSERT_EQ(broken["output"].size(), 1u);
  EXPECT_EQ(broken["output"][0]["content"][0]["text"], text);
  ASSERT_EQ(brokenStreamed["output"].size(), 2u) << "what was told cannot be taken back";
  EXPECT_EQ(brokenStreamed["output"][0]["status"], "incomplete");
  EXPECT_EQ(brokenStreamed["output"][1]["content"][0]["text"], text);
}

TEST_F(Responses, LogProbabilities) {
  startWith("plain");
  Json body = ask("b", {{"top_logprobs", 2}});
  body.erase("tools");
  const auto [whole, streamed] = both(body);
  EXPECT_EQ(still(whole), still(streamed));
  const Json &rows = whole["output"][0]["content"][0]["logprobs"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["token"], "hello");
  EXPECT_EQ(rows[1]["top_logprobs"].size(), 2u);
}

TEST_F(Responses, AnswersGoBackAsItems) {
  startWith("responses");
  Json input = Json::array({{{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "hi"}}}}}});
  const Json first = post("/v1/responses", ask("a")).json();
  for (const Json &item : first["output"])
    input.push_back(item);
  input.push_back({{"type", "function_call_output"}, {"call_id", input.back()["call_id"]}, {"output", "21 b"}});
  const Json answer = post("/v1/responses", ask(input)).json();
  EXPECT_EQ(answer["output"][0]["content"][0]["text"], "Well, hello.") << answer;
  EXPECT_EQ(llmc::messagesOfInput(nlohmann::ordered_json::parse(input.dump())).dump(),
            "[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"reasoning_content\":\"Hm.\",\"content\":\"Sure.\",\"tool_calls\":[{\"id\":\"" +
                input[3]["call_id"].get<std::string>() +
                "\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{\\\"c\\\": \\\"P\\\"}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"" +
                input[3]["call_id"].get<std::string>() + "\",\"content\":\"21 b\"}]");
}

TEST_F(Responses, RefusedByName) {
  startWith("responses");
  const std::vector<std::tuple<Json, std::string, std::string>> bad{
      {{{"store", true}}, "store", "answers are not kept"},
      {{{"previous_response_id", "resp_1"}}, "previous_response_id", "give the conversation in input"},
      {{{"conversation", "c"}}, "conversation", "give the conversation in input"},
      {{{"background", true}}, "background", "nothing else is supported"},
      {{{"truncation", "auto"}}, "truncation", "nothing else is supported"},
      {{{"prompt", {{"id", "p"}}}}, "prompt", "nothing else is supported"},
      {{{"max_output_tokens", -1}}, "max_output_tokens", "a whole number"},
      {{{"temperature", -1}}, "temperature", "a number from 0"},
      {{{"tools", {{{"type", "web_search"}}}}}, "tools[0].type", "\"function\""},
      {{{"tools", {{{"type", "function"}, {"name", "a b"}}}}}, "tools[0].name", "1 to 64 letters"},
      {{{"tool_choice", {{"type", "function"}, {"name", "other"}}}}, "tool_choice.name", "the name of one of the tools"},
      {{{"tool_choice", {{"type", "allowed_tools"}, {"mode", "x"}, {"tools", Json::array()}}}}, "tool_choice.mode", "\"auto\" or \"required\""},
      {{{"text", {{"verbosity", "low"}}}}, "text.verbosity", "unknown or not supported"},
      {{{"reasoning", {{"summary", "auto"}}}}, "reasoning.summary", "unknown or not supported"},
      {{{"reasoning", {{"effort", "low"}}}}, "reasoning.effort", "knows no efforts"},
      {{{"include", {"reasoning.encrypted_content"}}}, "include", "nothing else is supported"},
      {{{"top_logprobs", 2}}, "top_logprobs", "a model that thinks"},
      {{{"metadata", 1}}, "metadata", "an object"},
      {{{"stream_options", {{"include_obfuscation", false}}}}, "stream_options", "\"stream\": true"},
      {{{"messages", Json::array()}}, "messages", "unknown or not supported"},
      {{{"n", 2}}, "n", "unknown or not supported"},
      {{{"model", "other"}}, "model", "expected fake"},
      {{{"input", nullptr}}, "input", "a string or a list"},
      {{{"input", Json::array()}}, "input", "at least one item"},
      {{{"input", std::string(97, 'x')}}, "input", "at most 96 tokens"},
      {{{"input", {{{"type", "item_reference"}, {"id", "x"}}}}}, "input[0].type", "nothing else is supported"},
      {{{"input", {{{"role", "user"}, {"content", {{{"type", "input_image"}}}}}}}}, "input[0].content[0].type", "text of the type input_text"},
      {{{"input", {{{"role", "tool"}, {"content", "x"}}}}}, "input[0].role", "user, assistant"},
      {{{"input", {{{"type", "function_call"}, {"call_id", "x"}, {"name", "f"}}}}}, "input[0].arguments", "a string"},
      {{{"input", {{{"type", "reasoning"}, {"encrypted_content", "x"}}}}}, "input[0].encrypted_content", "unknown or not supported"}};
  for (const auto &[more, param, part] : bad) {
    const Response r = post("/v1/responses", ask("b", more));
    EXPECT_EQ(r.status, param == "model" ? 404 : 400) << more;
    EXPECT_EQ(r.json()["error"]["param"], param) << more << r.body;
    EXPECT_NE(errorOf(r).find(part), std::string::npos) << errorOf(r);
  }
  EXPECT_EQ(post("/v1/responses", Json::array()).status, 400);
}

} // namespace
