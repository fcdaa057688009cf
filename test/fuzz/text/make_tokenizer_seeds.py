#!/usr/bin/env python3
"""Writes the seeds of the tokenizer fuzzers to FOLDER: the small vocabularies of
test/runtime/tokenizer/small_goldens.json, cut short, and a dictionary of their words."""
import base64
import json
import sys
from pathlib import Path

GOLDENS = Path(__file__).parent / "../../runtime/tokenizer/small_goldens.json"


def shortened(tokenizer):
    model = tokenizer["model"]
    if isinstance(model["vocab"], list):
        model["vocab"] = model["vocab"][:60]
    else:
        kept = dict(list(model["vocab"].items())[:40] + [(t["content"], t["id"]) for t in tokenizer["added_tokens"] if t["content"] in model["vocab"]])
        model["merges"] = [m for m in model.get("merges", []) if "".join(m) in kept and all(p in kept for p in m)]
        model["vocab"] = kept
        if not model["merges"] and model["type"] != "BPE":
            del model["merges"]
    return tokenizer


def main():
    folder = Path(sys.argv[1])
    goldens = json.loads(GOLDENS.read_text(encoding="utf-8"))
    for name in ("json", "model"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    words = set()
    for name, golden in goldens["tokenizers"].items():
        text = json.dumps(shortened(golden["json"]), ensure_ascii=False)
        (folder / "json" / name).write_text(text, encoding="utf-8")
        words.update(w for w in text.split('"') if w.replace("_", "").isalpha() and w.isascii() and len(w) > 3)
    (folder / "json" / "merges").write_text("#version: 0.2\na b\r\n\u0120 a\n")
    for name, golden in goldens["models"].items():
        (folder / "model" / name).write_bytes(base64.b64decode(golden["base64"]))
    (folder / "json.dict").write_text("".join(f'"{w}"\n' for w in sorted(words)))


if __name__ == "__main__":
    main()
