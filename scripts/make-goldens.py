#!/usr/bin/env python3
"""Goldens by transformers in f32: greedy continuations and the log-probabilities of a text.

Needs the environment of scripts/reference-env.sh. MODEL is a GGUF (its weights dequantised in f32) or a
Hugging Face folder (its weights widened to f32).

  make-goldens.py MODEL PROMPTS.jsonl OUT.json [--tokens=64]
      A line of PROMPTS is {"name": ..., "messages": [...]} or {"name": ..., "text": ...} (no template).
      OUT: per prompt its token ids, the greedy ids until end of sequence, the top two logits of each step, the text.
  make-goldens.py MODEL TEXT.txt OUT.json.gz --logits [--positions=512] [--top=64]
      OUT: the first POSITIONS token ids of the text and, after each of them, the TOP likeliest next ids, their
      log-probabilities and the log of the mass of all the others.

The committed files were made with
  make-goldens.py SmolLM2-135M-Instruct.Q4_1.gguf test/data/prompts.jsonl test/data/smollm2-greedy.json
  make-goldens.py hf                              test/data/prompts.jsonl test/data/smollm2-hf-greedy.json
  make-goldens.py SmolLM2-135M-Instruct.Q4_1.gguf test/data/evaluation.txt test/data/smollm2-logits.json.gz --logits
where hf is the folder that scripts/make-models.py writes.
"""
import argparse
import gzip
import json
import os

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def load(path):
    path = os.path.abspath(path)
    if os.path.isdir(path):
        where, extra = path, {}
    else:
        where, name = os.path.split(path)
        extra = {"gguf_file": name}
    tokenizer = AutoTokenizer.from_pretrained(where, **extra)
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **extra).eval()
    return tokenizer, model


def greedy(model, ids, count):
    """ids -> (made ids, top two logits a step); one cached step a token, in f32."""
    step, cache, made, margins = torch.tensor([ids]), None, [], []
    with torch.no_grad():
        for _ in range(count):
            result = model(step, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            top = torch.topk(result.logits[0, -1], 2)
            made.append(int(top.indices[0]))
            margins.append([round(float(v), 4) for v in top.values])
            if made[-1] == model.config.eos_token_id:
                break
            step = torch.tensor([[made[-1]]])
    return made, margins


def continuations(tokenizer, model, prompts, count):
    results = []
    for line in open(prompts, encoding="utf-8"):
        item = json.loads(line)
        if "messages" in item:
            text = tokenizer.apply_chat_template(item["messages"], add_generation_prompt=True, tokenize=False)
        else:
            text = item["text"]
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        made, margins = greedy(model, ids, count)
        results.append({"name": item["name"], "prompt_ids": ids, "greedy_ids": made, "top2_logits": margins,
                        "text": tokenizer.decode(made)})
        print(item["name"], len(ids), "->", repr(results[-1]["text"][:80]), "smallest margin",
              min(a - b for a, b in margins), flush=True)
    return results


def distributions(tokenizer, model, text, positions, top):
    ids = tokenizer(open(text, encoding="utf-8").read(), add_special_tokens=False)["input_ids"][:positions]
    assert len(ids) == positions, f"the text has only {len(ids)} tokens"
    with torch.no_grad():
        logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
    best = torch.topk(logprobs, top, dim=-1)
    rest = torch.log((1 - best.values.exp().sum(-1)).clamp_min(1e-12))
    return {"ids": ids, "top_ids": best.indices.tolist(),
            "top_logprobs": [[round(v, 4) for v in row] for row in best.values.tolist()],
            "rest_logprob": [round(v, 4) for v in rest.tolist()]}


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("input")
parser.add_argument("out")
parser.add_argument("--tokens", type=int, default=64)
parser.add_argument("--logits", action="store_true")
parser.add_argument("--positions", type=int, default=512)
parser.add_argument("--top", type=int, default=64)
args = parser.parse_args()
tokenizer, model = load(args.model)
if args.logits:
    data = distributions(tokenizer, model, args.input, args.positions, args.top)
    with gzip.GzipFile(args.out, "wb", mtime=0) as file:
        file.write(json.dumps(data, separators=(",", ":")).encode())
else:
    data = continuations(tokenizer, model, args.input, args.tokens)
    json.dump(data, open(args.out, "w", encoding="utf-8"), ensure_ascii=False)
