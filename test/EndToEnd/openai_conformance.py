#!/usr/bin/env python3
"""OpenAI's own client against a server of llmc: openai_conformance.py URL MODEL. One line of JSON a check: [name, good, detail].

Run by serve.py with the interpreter that scripts/openai-client.sh makes; the client is not changed in any way.
"""
import json
import re
import sys
import threading
import time

import openai
import pydantic  # the client brings it

MESSAGES = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]


def check(name, good, detail=""):
    print(json.dumps([name, bool(good), str(detail)[:300]]), flush=True)


def text_of(stream):
    """(text, finish reasons, usage) of a stream of chats."""
    text, finish, usage = "", [], None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish += [choice.finish_reason] if choice.finish_reason else []
    return text, finish, usage


def chats(client, model):
    root = str(client.base_url).removesuffix("/v1/")

    def ask(**more):
        return client.chat.completions.create(model=model, messages=MESSAGES, **{"temperature": 0, "max_tokens": 24, **more})

    whole = ask()
    want = whole.choices[0].message.content
    check("chat", "Paris" in want and whole.object == "chat.completion" and whole.model == model, want)
    check("usage adds up", whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, whole.usage)
    text, finish, usage = text_of(ask(stream=True, stream_options={"include_usage": True}))
    check("streamed: the same text", text == want, text)
    check("streamed: one finish reason", finish == [whole.choices[0].finish_reason], finish)
    check("streamed: the same usage", usage and usage.completion_tokens == whole.usage.completion_tokens, usage)
    check("max_completion_tokens", ask(max_tokens=openai.omit, max_completion_tokens=3).usage.completion_tokens == 3)
    stopped = ask(stop=["Paris", "zzz"]).choices[0]
    check("stop", stopped.message.content == want[:want.index("Paris")] and stopped.finish_reason == "stop", stopped)
    check("stop, streamed", text_of(ask(stop="Paris", stream=True))[0] == stopped.message.content)
    sampled = [ask(temperature=1.0, top_p=0.9, seed=seed, n=2) for seed in (7, 7, 8)]
    texts = [[c.message.content for c in s.choices] for s in sampled]
    check("seed: the same answers", texts[0] == texts[1] and texts[0][1] == texts[2][0] and texts[0][0] != texts[0][1], texts)
    check("n: indices", [c.index for c in sampled[0].choices] == [0, 1])
    content = ask(logprobs=True, top_logprobs=3).choices[0].logprobs.content
    check("logprobs", len(content) == whole.usage.completion_tokens and all(len(t.top_logprobs) == 3 and t.top_logprobs[0].logprob == t.logprob <= 0 for t in content))
    check("logprobs: the tokens are the text", b"".join(bytes(t.bytes) for t in content).decode().startswith(want), want)
    rows = [c.logprobs.content for chunk in ask(logprobs=True, top_logprobs=3, stream=True) for c in chunk.choices if c.logprobs]
    check("logprobs, streamed", [t for row in rows for t in row] == content)
    ids = client.post(root + "/tokenize", body={"prompt": " Paris"}, cast_to=object)["tokens"]
    banned = ask(logit_bias={str(ids[0]): -100}, presence_penalty=0.5, frequency_penalty=0.5).choices[0].message.content
    check("logit_bias and penalties", " Paris" not in banned, banned)
    check("fields of our own", ask(extra_body={"top_k": 1, "temperature": 5, "min_p": 0.1, "ignore_eos": True, "priority": 3, "cache_salt": "a"}).choices[0].message.content[:20] == want[:20])
    parts = [{"role": "user", "content": [{"type": "text", "text": MESSAGES[0]["content"]}]}]
    check("content in parts", client.chat.completions.create(model=model, messages=parts, temperature=0, max_tokens=24).choices[0].message.content == want)


TOOL = {"name": "get_weather", "description": "Current weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


def tools(client, model):
    """The model may call or not; streamed and not it does the same."""
    def ask(**more):
        return client.chat.completions.create(model=model, **{"messages": [{"role": "user", "content": "Call get_weather for Paris."}], "temperature": 0, "max_tokens": 64,
                                                              "tools": [{"type": "function", "function": TOOL}], **more})

    whole = ask().choices[0]
    calls = [(c.function.name, c.function.arguments) for c in whole.message.tool_calls or []]
    check("tools", (whole.finish_reason == "tool_calls") == bool(calls) or whole.finish_reason == "length", whole)
    with client.chat.completions.stream(model=model, messages=[{"role": "user", "content": "Call get_weather for Paris."}], temperature=0, max_tokens=64,
                                        tools=[{"type": "function", "function": TOOL}]) as stream:
        for _ in stream:
            pass
        last = stream.current_completion_snapshot.choices[0]  # the final one is refused by the client if it was cut
    check("tools, streamed", [(c.function.name, c.function.arguments) for c in last.message.tool_calls or []] == calls and (last.message.content or "") == (whole.message.content or ""), last)
    check("tool_choice none", ask(tool_choice="none").choices[0].message.tool_calls is None)
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        held = ask(tool_choice=choice, parallel_tool_calls=False, max_tokens=200).choices[0]
        calls = held.message.tool_calls or []
        check(f"tool_choice {choice}", held.finish_reason == "tool_calls" and len(calls) == 1 and isinstance(json.loads(calls[0].function.arguments)["city"], str), held)
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}
    told = ask(messages=[{"role": "user", "content": "How warm is it in Paris?"}, {"role": "assistant", "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": "call_1", "content": "{\"celsius\": 21}"}], tool_choice="none").choices[0]
    check("results of tools", "21" in told.message.content, told.message.content)


def responses(client, model):
    question = MESSAGES[0]["content"]
    whole = client.responses.create(model=model, input=question, temperature=0, max_output_tokens=24, store=False, metadata={"k": "v"})
    want = client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, max_tokens=24).choices[0].message.content
    check("responses", whole.output_text == want and whole.status in ("completed", "incomplete") and whole.metadata == {"k": "v"}, whole)
    check("responses: usage", whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens, whole.usage)
    with client.responses.stream(model=model, input=question, temperature=0, max_output_tokens=24) as stream:
        events = list(stream)
    kinds, last = [event.type for event in events], events[-1].response
    check("responses, streamed", last.output_text == want and last.status == whole.status and kinds[0] == "response.created" and "response.output_text.delta" in kinds, kinds)
    items = [{"role": "user", "content": [{"type": "input_text", "text": question}]}]
    check("responses: items and instructions", client.responses.create(model=model, input=items, instructions="Answer briefly.", temperature=0, max_output_tokens=24).output_text)
    told = client.responses.create(model=model, temperature=0, max_output_tokens=40, tool_choice="none", tools=[{"type": "function", "strict": False, **TOOL}], input=[
        {"role": "user", "content": "How warm is it in Paris?"},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{\"city\": \"Paris\"}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "{\"celsius\": 21}"}])
    check("responses: results of tools", "21" in told.output_text, told.output_text)
    for param, value in (("previous_response_id", "resp_1"), ("store", True), ("background", True), ("truncation", "auto")):
        try:
            check(f"responses: {param} is refused", False, client.responses.create(model=model, input="x", **{param: value}))
        except openai.BadRequestError as error:
            check(f"responses: {param} is refused", error.param == param, error.message)


def texts(client, model):
    root = str(client.base_url).removesuffix("/v1/")

    def ask(**more):
        return client.completions.create(model=model, **{"prompt": "The capital of France is", "temperature": 0, "max_tokens": 8, **more})

    whole = ask()
    want = whole.choices[0].text
    check("text", "Paris" in want and whole.usage.completion_tokens == 8, want)
    check("text, streamed", "".join(c.text for chunk in ask(stream=True) for c in chunk.choices) == want)
    ids = client.post(root + "/tokenize", body={"prompt": "The capital of France is"}, cast_to=object)
    check("text from ids", ask(prompt=ids["tokens"]).choices[0].text == want)
    check("detokenize", client.post(root + "/detokenize", body={"tokens": ids["tokens"]}, cast_to=object)["prompt"] == "The capital of France is")
    check("logprobs of a text", len(ask(logprobs=2).choices[0].logprobs.token_logprobs) == 8)


def held(client, model):
    """Answers under a constraint, streamed and not; docs/constrained.md."""
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "population": {"type": "integer", "minimum": 0, "maximum": 99999999},
                                               "kind": {"enum": ["village", "town", "city"]}},
              "required": ["city", "population", "kind"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema, "strict": True}}

    def ask(**more):
        return client.chat.completions.create(model=model, **{"messages": MESSAGES, "max_tokens": 120, "temperature": 0, **more})

    choice = ask(response_format=form).choices[0]
    place = json.loads(choice.message.content)
    check("a schema holds the answer", choice.finish_reason == "stop" and list(place) == ["city", "population", "kind"] and place["kind"] in schema["properties"]["kind"]["enum"],
          choice.message.content)
    streamed = "".join(c.delta.content or "" for chunk in ask(response_format=form, stream=True) for c in chunk.choices)
    check("streamed it is the same", streamed == choice.message.content, streamed)
    warm = [json.loads(c.message.content) for c in ask(response_format=form, temperature=1.5, n=3, seed=1).choices if c.finish_reason == "stop"]
    check("hot answers are held, too", all(isinstance(w["population"], int) for w in warm), warm)

    class Number(pydantic.BaseModel):
        value: int
        even: bool

    parsed = client.chat.completions.parse(model=model, messages=MESSAGES, response_format=Number, max_tokens=80, temperature=0).choices[0].message.parsed
    check("the client's own models", isinstance(parsed, Number), parsed)
    text = ask(response_format={"type": "json_object"}, max_tokens=200).choices[0]
    check("a JSON object", text.message.content.startswith("{") and (text.finish_reason == "length" or isinstance(json.loads(text.message.content), dict)), text.message.content)
    for field, value, pattern in (("guided_regex", "[A-Z][a-z]{2,8}, [0-9]{4}", "[A-Z][a-z]{2,8}, [0-9]{4}"), ("guided_choice", ["red", "green"], "red|green"),
                                  ("guided_grammar", 'root ::= "<" [a-z]{1,5} ">" | "-"', "<[a-z]{1,5}>|-"), ("structured_outputs", {"regex": "[01]{8}"}, "[01]{8}")):
        got = ask(extra_body={field: value}).choices[0]
        check(field, got.finish_reason == "stop" and re.fullmatch(pattern, got.message.content) is not None, got.message.content)
    for bad in ({"type": "object", "minProperties": 1}, {"type": "string", "pattern": "(?=a)"}):
        try:
            check("a schema is refused", False, ask(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": bad}}))
        except openai.BadRequestError as error:
            check("a schema is refused", error.param == "response_format.json_schema.schema" and "schema." in error.message, error.message)


def refused(client, model):
    def ask(**more):
        return client.chat.completions.create(**{"model": model, "messages": MESSAGES, "max_tokens": 4, **more})

    for param, value in (("temperature", -1), ("top_p", 1.5), ("max_tokens", -1), ("n", 0), ("stop", [""]), ("top_logprobs", 21), ("seed", "x"),
                         ("messages", []), ("response_format", {"type": "xml"}), ("tools", "f"), ("reasoning_effort", "low"), ("functions", []), ("stream_options", {"include_usage": True}), ("logit_bias", {"x": 1}),
                         ("modalities", ["audio"]), ("prediction", {"type": "content", "content": "x"})):
        try:
            check(f"{param} is refused", False, ask(**{param: value}))
        except openai.BadRequestError as error:
            check(f"{param} is refused", error.param == param and param in error.message and error.type == "invalid_request_error", error.message)
    try:
        check("another model is refused", False, ask(model="gpt-4o"))
    except openai.NotFoundError as error:
        check("another model is refused", error.code == "model_not_found", error.message)


def together(client, model):
    """As many at a time as alone."""
    prompts = [f"Count from {i} to {i + 5}:" for i in range(12)]

    def ask(prompt):
        return client.completions.create(model=model, prompt=prompt, temperature=0, max_tokens=12).choices[0].text

    alone, got = [ask(p) for p in prompts], {}
    threads = [threading.Thread(target=lambda p=p: got.__setitem__(p, ask(p))) for p in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("twelve at a time answer as alone", [got.get(p) for p in prompts] == alone)


def batches(client, model):
    lines = [{"custom_id": f"c{i}", "method": "POST", "url": "/v1/chat/completions",
              "body": {"model": model, "messages": MESSAGES, "temperature": 0, "max_tokens": 24 if i < 3 else -1}} for i in range(4)]
    file = client.files.create(file=("in.jsonl", "\n".join(map(json.dumps, lines)).encode()), purpose="batch")
    check("a file is kept", client.files.retrieve(file.id).filename == "in.jsonl" and file.id in [f.id for f in client.files.list()], file)
    check("its content comes back", client.files.content(file.id).text.splitlines() == list(map(json.dumps, lines)))
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"k": "v"})
    end = time.monotonic() + 60
    while (batch := client.batches.retrieve(batch.id)).status in ("validating", "in_progress", "finalizing") and time.monotonic() < end:
        time.sleep(0.1)
    check("a batch is completed", batch.status == "completed" and batch.request_counts.completed == 3 and batch.request_counts.failed == 1 and batch.metadata == {"k": "v"}, batch)
    want = client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, max_tokens=24).choices[0].message.content
    output = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
    check("its answers are those of chats", sorted(o["custom_id"] for o in output) == ["c0", "c1", "c2"]
          and all(o["response"]["body"]["choices"][0]["message"]["content"] == want for o in output), output)
    errors = client.files.content(batch.error_file_id).text
    check("its errors have a file", json.loads(errors)["custom_id"] == "c3" and "max_tokens" in errors, errors)
    check("batches are listed", [b.id for b in client.batches.list(limit=1)] == [batch.id])
    check("one that is over cannot be cancelled", client.batches.cancel(batch.id).status == "completed")
    client.files.delete(file.id)
    try:
        check("a deleted file is gone", False, client.files.retrieve(file.id))
    except openai.NotFoundError as error:
        check("a deleted file is gone", error.code == "not_found", error.message)


def main():
    url, model = sys.argv[1:3]
    client = openai.OpenAI(base_url=url + "/v1", api_key="key", timeout=120, max_retries=0)
    check("models", [m.id for m in client.models.list()] == [model] and client.models.retrieve(model).id == model)
    for part in (chats, tools, responses, texts, held, refused, together, batches):
        part(client, model)
    response = client.chat.completions.with_raw_response.create(model=model, messages=MESSAGES, max_tokens=1, extra_headers={"x-request-id": "mine"})
    check("request ids come back", response.headers["x-request-id"] == "mine")
    try:
        openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0).models.list()
        check("a wrong key is refused", False)
    except openai.AuthenticationError as error:
        check("a wrong key is refused", error.code == "invalid_api_key", error.message)


if __name__ == "__main__":
    main()
