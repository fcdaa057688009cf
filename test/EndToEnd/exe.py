"""The command line of a compiled model, in one place."""
import array
import json
import os
import tempfile

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


def logits_bytes(exe, ids, *flags):
    """f32 [len(ids), vocab], the logits after every token."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits")
        common.must([exe, "logits", "--ids", ",".join(map(str, ids)), "--out", out, *flags])
        with open(out, "rb") as file:
            return file.read()


def rows(data, count):
    values = array.array("f", data)
    width = len(values) // count
    return [values[i * width:(i + 1) * width] for i in range(count)]


def info(exe):
    return json.loads(common.must([exe, "info", "--json"]).out)
