"""Conversations, tools and options that render_all_templates.py combines."""

S = lambda content: {"role": "system", "content": content}
U = lambda content: {"role": "user", "content": content}
A = lambda content, **more: {"role": "assistant", "content": content, **more}


def call(name, arguments, identifier="call00001"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def text(*parts):
    return [{"type": "text", "text": part} for part in parts]


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather — with \"quotes\", 'single' & <tags>\nsecond line",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "e.g. Zürich, 東京"},
        "days": {"type": "integer", "minimum": 1, "default": 3, "maximum": 12345678901234567890},
        "scale": {"type": ["number", "null"], "default": 0.5, "enum": [0.5, 1.0, 1e22, -0.0, None, True]},
        "where": {"type": "object", "properties": {
            "lat": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string", "enum": ["a<b", "c&d"]}},
            "deep": {"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "required": ["x"]}}}},
        "required": ["city"]}}}
TIME = {"type": "function", "function": {"name": "time", "description": "", "parameters": {"type": "object", "properties": {}}}}
ADD = {"type": "function", "function": {
    "name": "add", "description": "Adds two numbers.", "strict": True, "parameters": {
        "type": "object", "properties": {"zeta": {"type": "number", "description": "first"}, "alpha": {"type": "number", "description": "second"}},
        "required": ["zeta", "alpha"], "additionalProperties": False},
    "return": {"type": "number", "description": "the sum"}}}
FLAT = {"name": "flat", "description": "no wrapper", "parameters": {"type": "object", "properties": {"q": {"type": "string", "description": "Q"}}, "required": ["q"]}}
PYTHON = {"type": "code_interpreter"}

TOOLS = {
    "none": None,
    "empty": [],
    "one": [WEATHER],
    "three": [WEATHER, TIME, ADD],
    "flat": [FLAT],
    "interpreter": [ADD, PYTHON],
}

ARGUMENTS = {"city": "Zürich \"<&>\" 'x'", "days": 2, "scale": 1.0, "deep": {"a": [1, 2.5, None, True], "é": {}}, "big": 9007199254740993}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"temperature\": 21.5}"}
CALL = A(None, tool_calls=[call("get_weather", ARGUMENTS)])

CHATS = {
    "empty": [],
    "user": [U("What is the capital of France?")],
    "system": [S("You answer in verse."), U("Write a haiku.")],
    "empty system": [S(""), U("Say hello.")],
    "system only": [S("You answer in verse.")],
    "developer": [{"role": "developer", "content": "Be brief."}, U("Hi")],
    "system and developer": [S("Sys"), {"role": "developer", "content": "Be brief."}, U("Hi"), A("Yo"), U("?")],
    "two systems": [S("One."), S("Two."), U("Hi")],
    "late system": [U("Hi"), A("Hello"), S("Now be rude."), U("Again")],
    "spaces": [S("  padded \n"), U("\n\n def f(x):\n\treturn   x\r\n  "), A("  ok \n\n"), U("  ")],
    "turns": [S("Be short."), U("1?"), A("One."), U("2?"), A("Two.\n"), U("3?")],
    "many turns": [m for i in range(6) for m in (U(f"question {i}"), A(f"answer {i}"))] + [U("last")],
    "ends with assistant": [U("Hi"), A("Hello")],
    "assistant first": [A("Hello"), U("Hi")],
    "two users": [U("Hi"), U("There"), A("Hello"), A("again"), U("x")],
    "unicode": [U("用一句话解释什么是编译器。👩‍🚀 \u2028 ﷽ İıß"), A("é e\u0301"), U("<|im_end|><|eot_id|>{{ x }}{% raw %}[INST]</s>")],
    "unknown role": [U("Hi"), {"role": "narrator", "content": "meanwhile"}, U("x")],
    "no content": [U("Hi"), {"role": "assistant"}, U("x")],
    "null content": [U("Hi"), A(None), U("x")],
    "empty content": [U(""), A(""), U("")],
    "parts": [U(text("Hello")), A(text("Hi")), U(text("two ", "parts"))],
    "parts everywhere": [S(text("Be", " short.")), U(text("1?")), A(text("One.")), U(text("a\n", " b "))],
    "no parts": [U([]), A([]), U(text("x"))],
    "image": [U([{"type": "image"}, {"type": "text", "text": "What is this?"}])],
    "image url": [S("See."), U([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}])],
    "video and audio": [U([{"type": "video"}, {"type": "audio"}, {"type": "text", "text": "?"}])],
    "odd part": [U([{"type": "pancake", "x": 1}])],
    "number content": [U(5), A(True)],
    "named users": [{"role": "user", "name": "Ann", "content": "Hi"}, A("Hello", name="Bot"), {"role": "user", "name": "Bob", "content": "x"}],
    "reasoning": [U("2+2?"), A("4", reasoning_content="Two and two."), U("3+3?"), A("6", reasoning_content="\nthree\n"), U("4+4?")],
    "reasoning last": [U("2+2?"), A("4", reasoning_content="Two and two."), U("x"), A("8", reasoning_content="eight\n\n")],
    "thinking key": [U("2+2?"), A("4", thinking="Two and two."), U("x"), A("y", reasoning="because", thinking="because")],
    "think tags": [S("/no_think"), U("2+2?"), A("<think>\nTwo and two.\n</think>\n\n4"), U("3+3? /think"), A("[THINK]x[/THINK]6"), U("z")],
    "think tags odd": [U("a"), A("no open</think>b"), U("c"), A("<think>no close"), U("d"), A("<think></think>"), U("e")],
    "channels": [U("a"), A("<|channel|>analysis<|message|>hmm<|end|>"), U("b")],
    "call": [U("Weather?"), CALL],
    "call and result": [U("Weather?"), CALL, RESULT],
    "call text": [S("Use tools."), U("Weather?"), A("Let me look.", tool_calls=[call("get_weather", ARGUMENTS)]), RESULT, A("21.5 degrees."), U("And tomorrow?")],
    "call empty content": [U("Weather?"), A("", tool_calls=[call("get_weather", {"city": "Rome"})]), RESULT, A("Warm.")],
    "string arguments": [U("Weather?"), A(None, tool_calls=[call("get_weather", "{\"city\": \"Zürich\", \"days\": 2}")]), RESULT],
    "bad string arguments": [U("Weather?"), A("", tool_calls=[call("get_weather", "not json <&>")]), RESULT],
    "no arguments": [U("Time?"), A(None, tool_calls=[call("time", {})]), {"role": "tool", "name": "time", "content": "12:00"}],
    "two calls": [U("Both?"), A(None, tool_calls=[call("get_weather", ARGUMENTS), call("add", {"zeta": 1, "alpha": -2.5}, "call00002")]),
                  RESULT, {"role": "tool", "name": "add", "tool_call_id": "call00002", "content": "-1.5"}, A("Done."), U("Thanks")],
    "calls in turns": [S("Use tools."), U("a"), A("", tool_calls=[call("time", {})]), {"role": "tool", "name": "time", "tool_call_id": "call00001", "content": "12"},
                       A("", reasoning_content="one more", tool_calls=[call("add", {"zeta": 1, "alpha": 2}, "call00002")]),
                       {"role": "tool", "name": "add", "tool_call_id": "call00002", "content": "3"}, A("3 at 12", reasoning_content="done"), U("b")],
    "reasoning call": [U("Weather?"), A(None, reasoning_content="I need the tool.", tool_calls=[call("get_weather", {"city": "Rome"})]), RESULT],
    "thinking call": [U("Weather?"), A("", thinking="I need the tool.", reasoning="I need the tool.", tool_calls=[call("get_weather", {"city": "Rome"})]), RESULT, A("x", thinking="z")],
    "flat call": [U("Weather?"), A(None, tool_calls=[{"name": "get_weather", "arguments": {"city": "Rome"}}]), RESULT],
    "no call id": [U("Weather?"), A(None, tool_calls=[{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}]),
                   {"role": "tool", "name": "get_weather", "content": "x"}],
    "short call id": [U("Weather?"), A(None, tool_calls=[call("get_weather", {"city": "Rome"}, "abc")]), dict(RESULT, tool_call_id="abc"), A("ok"), U("x")],
    "empty calls": [U("Hi"), A("Hello", tool_calls=[]), U("x")],
    "null calls": [U("Hi"), A("Hello", tool_calls=None, reasoning_content=None), U("x")],
    "json result": [U("Weather?"), CALL, dict(RESULT, content={"temperature": 21.5, "sky": "clear <&> é"})],
    "list result": [U("Weather?"), CALL, dict(RESULT, content=[{"type": "text", "text": "21"}, {"type": "text", "text": "clear"}])],
    "null result": [U("Weather?"), CALL, dict(RESULT, content=None)],
    "two results": [U("Weather?"), CALL, RESULT, dict(RESULT, content="again"), U("ok?")],
    "function role": [U("Weather?"), A(None, function_call={"name": "get_weather", "arguments": "{}"}), {"role": "function", "name": "get_weather", "content": "x"}],
    "ipython role": [U("Weather?"), A("<|python_tag|>x"), {"role": "ipython", "content": "21"}, {"role": "tool_response", "content": "22"}],
    "result first": [RESULT, U("x")],
    "call then user": [U("Weather?"), CALL, U("never mind")],
}

# Variables beside the messages; each is tried with every chat.
OPTIONS = {
    "": {},
    "prompt": {"add_generation_prompt": True},
    "no thinking": {"add_generation_prompt": True, "enable_thinking": False, "thinking": False, "reasoning_effort": "low"},
    "thinking": {"add_generation_prompt": True, "enable_thinking": True, "thinking": True, "reasoning_effort": "high", "clear_thinking": False,
                 "preserve_thinking": True, "thinking_budget": 512},
    "documents": {"add_generation_prompt": True, "documents": [{"title": "Doc \"1\"", "text": "Text é <&>", "doc_id": 1, "id": "d1"}, {"title": "B", "text": "b\nc"}]},
    "continued": {"continue_final_message": "content"},
    "reasoning continued": {"continue_final_message": "reasoning_content"},
    "dates": {"add_generation_prompt": True, "date_string": "01 Jan 2025", "today": "2025-01-01", "current_date": "2025-01-01", "custom_tools": None,
              "builtin_tools": ["brave_search", "code_interpreter"], "tools_in_user_message": False, "model_identity": "You are X.",
              "xml_tools": ["a"], "python_tools": ["def f(): pass"], "citation_mode": "accurate", "safety_mode": "strict", "keep_past_thinking": True,
              "truncate_history_thinking": False, "add_vision_id": True, "skip_think": True, "response_format": {"type": "json_object"}},
}
