#!/usr/bin/env python3
"""Perplexities by transformers in f32, to hold `EXE perplexity` against.

Needs the environment of scripts/reference-env.sh.

  make-perplexity-goldens.py MODEL TEXT.txt [--tokens=20000]

MODEL is a GGUF (its weights dequantised in f32) or a Hugging Face folder (its weights widened to f32). Prints one JSON
object with the perplexity of the first TOKENS tokens of the text by both definitions of `EXE perplexity`:
  strided   windows of 1024 tokens every 512; each scores what no window before has scored (transformers' documentation,
            "Perplexity of fixed-length models", with every token weighted alike)
  llamacpp  windows of 512 side by side, the second half of each scored

test/data/smollm2-perplexity.json (key "gguf", and "part" with --tokens=2500) was made with
  make-perplexity-goldens.py SmolLM2-135M-Instruct.Q4_1.gguf test/data/pride-and-prejudice.txt
"""
import argparse
import json
import math
import os

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def load(path):
    path = os.path.abspath(path)
    where, extra = (path, {}) if os.path.isdir(path) else (os.path.dirname(path), {"gguf_file": os.path.basename(path)})
    return (AutoTokenizer.from_pretrained(where, **extra),
            AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **extra).eval())


def nll(model, ids, scored):
    """Sum of negative log-probabilities of ids[scored:], each given all before it."""
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    total = 0.0
    for at in range(scored, len(ids)):  # row by row: the whole in f64 would not fit
        total -= float(torch.log_softmax(logits[at - 1].double(), -1)[ids[at]])
    return total


def strided(model, ids, window, stride):
    total, count, end = 0.0, 0, 0
    for begin in range(0, len(ids), stride):
        scored, end = max(begin + 1, end), min(begin + window, len(ids))
        if scored < end:
            total += nll(model, ids[begin:end], scored - begin)
            count += end - scored
        if end == len(ids):
            break
    return total, count


def halved(model, ids, window):
    total, count = 0.0, 0
    for begin in range(0, len(ids) - window + 1, window):
        total += nll(model, ids[begin:begin + window], window // 2 + 1)
        count += window - window // 2 - 1
    return total, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--tokens", type=int, default=20000)
    args = parser.parse_args()
    tokenizer, model = load(args.model)
    ids = tokenizer(open(args.text, encoding="utf-8").read(), add_special_tokens=False)["input_ids"][:args.tokens]
    result = {"tokens": len(ids)}
    for name, window, (total, count) in (("strided", 1024, strided(model, ids, 1024, 512)), ("llamacpp", 512, halved(model, ids, 512))):
        result[name] = {"context": window, "tokens_scored": count, "mean_nll": round(total / count, 6), "perplexity": round(math.exp(total / count), 5)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
