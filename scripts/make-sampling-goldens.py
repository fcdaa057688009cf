#!/usr/bin/env python3
"""Goldens of sampling filters by transformers' logits processors, for test/runtime/engine/SamplerTest.cpp.

  make-sampling-goldens.py test/runtime/engine/sampling-goldens.json

Needs torch and transformers (scripts/reference-env.sh). Every case has random logits, random settings and the distribution
that is left: {"id": probability}. The processors run in the order of docs/sampling.md. Presence and frequency penalties,
which transformers lacks, are vLLM's: logits -= presence * (count > 0) + frequency * count, over the generated tokens.
"""
import json
import random
import sys

import torch
from transformers.generation import logits_process as lp


def settings(rng):
    pick = lambda values, off: rng.choice(values) if rng.random() < 0.45 else off
    return {"temperature": rng.choice([0.3, 0.7, 1.0, 1.0, 1.7]), "top_k": pick([1, 2, 5, 20, 63, 64, 100], 0),
            "typical_p": pick([0.05, 0.2, 0.5, 0.9, 0.99], 1), "top_p": pick([0.05, 0.3, 0.5, 0.9, 0.99], 1),
            "min_p": pick([0.01, 0.05, 0.2, 0.8], 0), "repetition_penalty": pick([0.7, 1.1, 1.3, 2.0], 1),
            "presence_penalty": pick([-0.5, 0.5, 1.5], 0), "frequency_penalty": pick([-0.3, 0.2, 1.0], 0)}


def distribution(logits, s, prompt, generated, bias):
    ids = torch.tensor([prompt + generated])
    scores = torch.tensor([logits], dtype=torch.float64)
    for token, value in bias:
        scores[0, token] += value
    if s["repetition_penalty"] != 1:
        scores = lp.RepetitionPenaltyLogitsProcessor(s["repetition_penalty"])(ids, scores)
    for token in set(generated):
        scores[0, token] -= s["presence_penalty"] + s["frequency_penalty"] * generated.count(token)
    chain = [lp.TemperatureLogitsWarper(s["temperature"])]
    if s["top_k"]:
        chain.append(lp.TopKLogitsWarper(s["top_k"]))
    if s["typical_p"] != 1:
        chain.append(lp.TypicalLogitsWarper(s["typical_p"]))
    if s["top_p"] != 1:
        chain.append(lp.TopPLogitsWarper(s["top_p"]))
    if s["min_p"]:
        chain.append(lp.MinPLogitsWarper(s["min_p"]))
    for processor in chain:
        scores = processor(ids, scores)
    return {str(i): round(p, 6) for i, p in enumerate(torch.softmax(scores[0], -1).tolist()) if p > 0}


def main():
    rng = random.Random(52)
    cases = []
    for _ in range(120):
        width = rng.choice([0.5, 2, 5])
        logits = [round(rng.gauss(0, width), 3) for _ in range(64)]
        prompt = [rng.randrange(64) for _ in range(rng.randrange(1, 12))]
        generated = [rng.randrange(64) for _ in range(rng.randrange(0, 12))]
        bias = [[token, rng.choice([-100, -2, 0.5, 3])] for token in rng.sample(range(64), rng.choice([0, 0, 1, 4]))]
        s = settings(rng)
        cases.append({"logits": logits, "prompt": prompt, "generated": generated, "bias": bias, **s,
                      "distribution": distribution(logits, s, prompt, generated, bias)})
    with open(sys.argv[1], "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
