"""256 streams through HTTP beside the engine alone, on the 8B shape; and with some of them, or all, held by a JSON schema."""
import json
import os
import sys

from peers import HERE, json_lines

ABOVE = os.path.dirname(HERE)  # benchmarks, or a kit's first part
sys.path.append(ABOVE)
from serve_load import RECORD  # noqa: E402

CLIENTS, REQUESTS = 256, 384
FLAGS = ("--context", 8192, "--prefix-cache=off", "--kv-memory=30GiB")  # room for all clients, twice on a card: the server stays while the engine runs


def valid(text):
    record = json.loads(text)
    return list(record) == RECORD["required"] and 3 <= len(record["name"]) <= 12 and record["age"] in range(121) and record["kind"] in ("a", "b", "other") \
        and 1 <= len(record["tags"]) <= 5 and all(3 <= len(tag) <= 12 for tag in record["tags"])


def held_answers(report, kit, exe):
    """Greedy and drawn, chosen by the GPU and (with log-probabilities) by the host, side by side: all that end are records."""
    requests, answers = (os.path.join(kit.work, name) for name in ("held.jsonl", "held-out.jsonl"))
    with open(requests, "w", encoding="utf-8") as file:
        for i in range(48):
            body = {"prompt": f"Record number {i}:", "max_tokens": 400, "temperature": i % 3 / 2, "seed": i, "guided_json": RECORD} | ({"logprobs": 2} if i % 4 == 0 else {})
            file.write(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}) + "\n")
    report.must([exe, "batch", requests, "-o", answers, "--context", 1024], timeout=60)
    with open(answers, encoding="utf-8") as file:
        choices = [json.loads(line)["response"]["body"]["choices"][0] for line in file]
    ended = [choice["text"] for choice in choices if choice["finish_reason"] == "stop"]
    report.check("answers held by a schema are its records", len(choices) == 48 and len(ended) >= 24 and all(valid(text) for text in ended),
                 ended=len(ended), example=ended[0] if ended else "")


def group(report, kit):
    exe = kit.path("llama-8b", "bf16-8192")
    report.step("answers held by a schema", held_answers, report, kit, exe)
    trace = os.path.join(kit.work, "trace-serve.jsonl")
    report.must([sys.executable, os.path.join(HERE, "make_trace.py"), trace, "--requests", REQUESTS, "--prompt", "64,512", "--output", "128,384"], timeout=60)
    with open(trace, encoding="utf-8") as file:
        tokens = sum(json.loads(line)["output"] for line in file)
    command = [sys.executable, os.path.join(ABOVE, "serve_load.py"), exe, "--trace", trace, "--clients", CLIENTS, "--processes", 8, "--rounds", 2, "--held", "0.25,1"]
    found = json_lines(report.must([*command, "--", *FLAGS], timeout=400))[-1]
    report.figure("serve.8b", found)
    report.check("every token of all streams has come, free and held", all(run["tokens"] == tokens for run in (found["serve"], *found["held"].values())), tokens=tokens)
    words = {"http_tok_s": found["serve"]["tokens_per_second"], "engine_tok_s": found["replay"]["tokens_per_second"], "ratio": found["ratio"],
             "held over free": found["held_over_free"]}
    report.log(json.dumps(words), True)
