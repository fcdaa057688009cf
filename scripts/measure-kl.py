#!/usr/bin/env python3
"""The whole KL divergence of a compiled model from transformers in f32, for docs/accuracy.md.

Needs the environment of scripts/reference-env.sh. Usage: measure-kl.py GGUF_OR_FOLDER TEXT POSITIONS EXE...
Each EXE is a compiled form of the model; prints per EXE mean, median, 99 % and largest KL(reference || EXE) in nats over
all POSITIONS, the share of equal first tokens, the largest difference of a logit and the perplexities of both.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

path, text, positions, exes = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
where, extra = (path, {}) if os.path.isdir(path) else (os.path.dirname(path), {"gguf_file": os.path.basename(path)})
tokenizer = AutoTokenizer.from_pretrained(where, **extra)
model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **extra).eval()
with open(text, encoding="utf-8") as file:
    ids = tokenizer(file.read(), add_special_tokens=False)["input_ids"][:positions]
assert len(ids) == positions, f"the text has only {len(ids)} tokens"
with torch.no_grad():
    logits = model(torch.tensor([ids])).logits[0]
reference = torch.log_softmax(logits.double(), -1)
following = torch.tensor(ids[1:])[:, None]


def perplexity(logprobs):
    return math.exp(-float(logprobs[:-1].gather(1, following).mean()))


print(f"reference: perplexity {perplexity(reference):.4f}")
for exe in exes:
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "ids.json"), os.path.join(folder, "logits")
        with open(source, "w") as file:
            json.dump(ids, file)
        subprocess.run([exe, "logits", "--token-ids", source, "--output", out], check=True)
        ours = torch.from_numpy(numpy.fromfile(out, dtype="<f4").reshape(positions, -1))
    mine = torch.log_softmax(ours.double(), -1)
    kl = (reference.exp() * (reference - mine)).sum(-1)
    top1 = (ours.argmax(-1) == logits.argmax(-1)).double().mean()
    print(f"{exe}: KL mean {kl.mean():.3e} median {kl.median():.3e} 99% {kl.quantile(0.99):.3e} largest {kl.max():.3e}; "
          f"first token equal {top1:.2%}; largest logit difference {(ours - logits).abs().max():.3e}; perplexity {perplexity(mine):.4f}")
