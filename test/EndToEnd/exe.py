"""The command line of a compiled model, in one place."""
import json
import os
import tempfile

import numpy

import common


def generate(exe, item, count, *flags):
    """Greedy continuation of a line of prompts.jsonl -> (prompt ids, made ids, text)."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        options = {}
        if "messages" in item:
            json.dump(item["messages"], file, ensure_ascii=False)
            file.flush()
            source = ["--messages", file.name]
        else:
            source, options = ["--raw", "-"], {"stdin": item["text"].encode()}
        result = common.must([exe, "run", *source, "--max-tokens", count, "--temperature", "0", "--ids", *flags], **options)
    answer = json.loads(result.out)
    return answer["prompt_ids"], answer["ids"], answer["text"]


def logits_bytes(exe, ids, *flags, cache=False):
    """f32 [len(ids), vocab], the logits after every token; with `cache` also the bytes of the KV blocks."""
    with tempfile.TemporaryDirectory() as folder:
        source, out, kv = (os.path.join(folder, name) for name in ("ids.json", "logits", "kv"))
        with open(source, "w") as file:
            json.dump(ids, file)
        common.must([exe, "logits", "--token-ids", source, "--output", out, *(["--kv", kv] if cache else []), *flags])
        with open(out, "rb") as file:
            data = file.read()
        if not cache:
            return data
        with open(kv, "rb") as file:
            return data, file.read()


def rows(data, count):
    """The same as an array [count, vocab]."""
    return numpy.frombuffer(data, "<f4").reshape(count, -1)
