#!/usr/bin/env python3
"""What constrained decoding costs a token; the last line is JSON.

  constrained.py EXE [--tokens 256] [--rounds 5] [--together 16] [-- FLAGS of run and batch]

Answers of the same number of tokens, free and held, alternate: one at a time (`run --stats`, decode alone, milliseconds a token, the median of the
rounds) and as many together as --together says (`batch`, tokens a second over the whole run, compiling and the first masks included). The
constraints cannot end before the tokens do. Tokens are chosen greedily: a draw from the whole vocabulary takes longer than one from
a mask, and would hide what that costs. Needs nothing but Python.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

RECORD = {"type": "object", "properties": {"name": {"type": "string", "minLength": 3, "maxLength": 40}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                                           "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5}, "kind": {"enum": ["a", "b", "other"]}},
          "required": ["name", "age", "tags", "kind"], "additionalProperties": False}
CASES = {
    "free": {},
    "records": {"guided_json": {"type": "array", "items": RECORD, "minItems": 2000}},
    "string": {"guided_json": {"type": "string", "minLength": 20000}},
    "words": {"guided_regex": "([a-z]{1,12} ){20000}"},
    "grammar": {"guided_grammar": 'root ::= (line "\\n"){9000,90000}\nline ::= [^\\n]{10,80}'},
}


def flags_of(case, folder):
    if "guided_json" in case:
        path = os.path.join(folder, "schema.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(case["guided_json"], file)
        return ["--json-schema", path]
    if "guided_grammar" in case:
        path = os.path.join(folder, "grammar.gbnf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(case["guided_grammar"])
        return ["--grammar", path]
    return ["--regex", case["guided_regex"]] if case else []


def alone(args, case, folder):
    """Milliseconds a token."""
    run = subprocess.run([args.exe, "run", "-n", str(args.tokens), "--ignore-eos", "--stats", *flags_of(case, folder), *args.flags, "Tell me about the sea."],
                         check=True, capture_output=True, text=True)
    return float(re.search(r"then \d+ tokens of ([\d.]+) ms", run.stderr)[1])


def together(args, case, folder):
    """Tokens a second."""
    requests, answers = os.path.join(folder, "in.jsonl"), os.path.join(folder, "out.jsonl")
    with open(requests, "w", encoding="utf-8") as file:
        for i in range(args.together):
            body = {"messages": [{"role": "user", "content": f"Tell me about the sea, number {i}."}], "max_tokens": args.tokens, "ignore_eos": True, "temperature": 0, **case}
            file.write(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/chat/completions", "body": body}) + "\n")
    if os.path.exists(answers):
        os.remove(answers)
    start = time.monotonic()
    subprocess.run([args.exe, "batch", requests, "-o", answers, *args.flags], check=True, capture_output=True)
    seconds = time.monotonic() - start
    tokens = sum(json.loads(line)["response"]["body"]["usage"]["completion_tokens"] for line in open(answers, encoding="utf-8"))
    if tokens != args.together * args.tokens:
        raise RuntimeError(f"expected {args.together * args.tokens} tokens, got {tokens}")
    return tokens / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exe")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--together", type=int, default=16)
    parser.add_argument("--cases", default=",".join(CASES))
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    args.flags = flags
    args.exe = os.path.abspath(args.exe)
    names = args.cases.split(",")
    times, rates = {name: [] for name in names}, {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for name in names:
                times[name].append(alone(args, CASES[name], folder))
                if args.together:
                    rates[name].append(together(args, CASES[name], folder))
    result = {"tokens": args.tokens, "rounds": args.rounds, "together": args.together, "cases": {}}
    for name in names:
        row = {"ms_per_token": round(statistics.median(times[name]), 3)}
        if args.together:
            row["tokens_per_second"] = round(statistics.median(rates[name]), 1)
        if "free" in names:
            row["cost_alone_percent"] = round(100 * (statistics.median(times[name]) / statistics.median(times["free"]) - 1), 2)
            if args.together:
                row["cost_together_percent"] = round(100 * (statistics.median(rates["free"]) / statistics.median(rates[name]) - 1), 2)
        result["cases"][name] = row
        print(name, row)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
