#!/usr/bin/env python3
"""What each rounding of the compiled arithmetic costs, for docs/accuracy.md: transformers in f32 with that rounding alone.

Needs the environment of scripts/reference-env.sh. Usage: measure-rounding.py GGUF_OR_FOLDER TEXT [POSITIONS=512]
Prints mean, median and largest KL(f32 || rounded) in nats, and the share of equal first tokens.
"""
import os
import sys

import torch
import transformers.models.llama.modeling_llama as llama
from transformers import AutoModelForCausalLM, AutoTokenizer

QKV, GATE_UP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
PRODUCTS = QKV + ("o_proj",) + GATE_UP + ("down_proj", "lm_head")


def codes(bits, group=32):
    """Symmetric integer codes per group of columns (lm.quantize)."""
    top = 2 ** (bits - 1) - 1

    def rounded(x):
        groups = x.reshape(*x.shape[:-1], -1, group)
        largest = groups.abs().amax(-1, keepdim=True).double()
        scale = torch.where(largest > 0, top / largest, torch.zeros_like(largest))
        return (torch.round(groups * scale) * (largest / top)).float().reshape(x.shape)
    return rounded


def bf16(x):
    return x.to(torch.bfloat16).to(torch.float32)


rounding = {}  # projection name, or "kv", to function


def apply(kind, x):
    return rounding[kind](x) if kind in rounding else x


def install(model):
    for name, module in model.named_modules():
        kind = name.split(".")[-1]
        if kind in PRODUCTS:
            module.register_forward_pre_hook(lambda _, args, kind=kind: (apply(kind, args[0]),))
        if kind == "v_proj":
            module.register_forward_hook(lambda _, args, out: apply("kv", out))
    rotate = llama.apply_rotary_pos_emb

    def rounded_rotate(q, k, *args, **kwargs):
        q, k = rotate(q, k, *args, **kwargs)
        return q, apply("kv", k)
    llama.apply_rotary_pos_emb = rounded_rotate


def main():
    path = os.path.abspath(sys.argv[1])
    positions = int(sys.argv[3]) if len(sys.argv) > 3 else 512
    where, extra = (path, {}) if os.path.isdir(path) else (os.path.dirname(path), {"gguf_file": os.path.basename(path)})
    tokenizer = AutoTokenizer.from_pretrained(where, **extra)
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **extra).eval()
    with open(sys.argv[2], encoding="utf-8") as file:
        ids = torch.tensor([tokenizer(file.read(), add_special_tokens=False)["input_ids"][:positions]])
    install(model)

    def distribution():
        with torch.no_grad():
            return torch.log_softmax(model(ids).logits[0].double(), -1)
    reference = distribution()

    def measure(label, choice):
        rounding.clear()
        rounding.update(choice)
        mine = distribution()
        kl = (reference.exp() * (reference - mine)).sum(-1)
        equal = (mine.argmax(-1) == reference.argmax(-1)).double().mean()
        print(f"{label:36} mean {kl.mean():.2e}  median {kl.median():.2e}  largest {kl.max():.2e}  first token {equal:.1%}", flush=True)

    measure("cache in bf16", {"kv": bf16})
    for bits in (8, 16):
        measure(f"int{bits}, cache in bf16", {**dict.fromkeys(PRODUCTS, codes(bits)), "kv": bf16})
    measure("int8 in groups of 16, cache in bf16", {**dict.fromkeys(PRODUCTS, codes(8, 16)), "kv": bf16})
    measure("bf16, cache in bf16", {**dict.fromkeys(PRODUCTS, bf16), "kv": bf16})
    for label, kinds in (("q, k, v", QKV), ("attention output", ("o_proj",)), ("gate, up", GATE_UP), ("down", ("down_proj",)),
                         ("head", ("lm_head",))):
        measure(f"int8 input of {label} only", dict.fromkeys(kinds, codes(8)))


main()
