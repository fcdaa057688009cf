#!/usr/bin/env python3
"""Goldens of the tiny models: transformers in f32 on the weights that scripts/make-tiny-models.py stores.

Needs the environment of scripts/reference-env.sh. Usage: make-tiny-goldens.py [OUT.json [NAME...]]
With names only those are renewed in OUT. OUT: name -> the prompt's ids, the logits after its last token, the greedy ids (until end of sequence) and the smallest margin.
"""
import importlib.util
import json
import os
import sys
import tempfile

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama import modeling_llama

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("tiny", os.path.join(here, "make-tiny-models.py"))
tiny = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tiny)

PROMPT = "In the beginning there was another one; then the thing ran: x = 3*(é + 漢)\n"
COUNT = 24


def rotate_part(network, spec):
    """transformers' Llama rotates whole heads whatever the config says; its families that rotate a part (GLM, StableLM) do it so."""
    whole, dim = modeling_llama.apply_rotary_pos_emb, int(tiny.head_dim(spec) * spec["partial"])

    def apply(q, k, cos, sin, **options):
        if cos.shape[-1] == q.shape[-1]:
            return whole(q, k, cos, sin, **options)
        n = cos.shape[-1]
        q_part, k_part = whole(q[..., :n], k[..., :n], cos, sin, **options)
        return torch.cat((q_part, q[..., n:]), -1), torch.cat((k_part, k[..., n:]), -1)

    modeling_llama.apply_rotary_pos_emb = apply
    network.model.rotary_emb.inv_freq = spec.get("theta", 10000.0) ** -(torch.arange(0, dim, 2).float() / dim)


def build(name, folder):
    """The tokenizer of the model's Hugging Face form and its network with the weights as stored."""
    model = (tiny.MODELS | tiny.SHAPES)[name]
    family, form, matrices, embedding = model
    tiny.write_hf(folder, (family, "hf", "F32", "F32"))
    config = AutoConfig.from_pretrained(folder)
    network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    state = {tiny.hf_name(key, tiny.FAMILIES[family]): torch.tensor(values).reshape(shape)
             for key, (shape, _, _, values) in tiny.stored_weights(model).items()}
    if tiny.FAMILIES[family]["tied"]:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    network.load_state_dict(state, strict=True)
    if "partial" in tiny.FAMILIES[family]:
        rotate_part(network, tiny.FAMILIES[family])
    return AutoTokenizer.from_pretrained(folder), network


def golden(name):
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        tokenizer, network = build(name, folder)
        ids = tokenizer(PROMPT, add_special_tokens=False)["input_ids"]
        logits = network(torch.tensor([ids])).logits[0, -1]
        made, margin, sequence = [], float("inf"), list(ids)
        for _ in range(COUNT):
            top = torch.topk(network(torch.tensor([sequence])).logits[0, -1], 2)
            made.append(int(top.indices[0]))
            margin = min(margin, float(top.values[0] - top.values[1]))
            sequence.append(made[-1])
            if made[-1] == tiny.vocab() - 1:
                break
    print(name, len(ids), made, "smallest margin", round(margin, 4), "largest logit", float(logits.abs().max()), flush=True)
    return dict(prompt_ids=ids, greedy_ids=made, margin=round(margin, 5), logits=[round(float(v), 5) for v in logits])


out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "test", "data", "tiny-goldens.json")
result, names = dict(prompt=PROMPT, models={}, shapes={}), sys.argv[2:]
if names:
    with open(out, encoding="utf-8") as file:
        result = json.load(file)
for kind, models in (("models", tiny.MODELS), ("shapes", tiny.SHAPES)):
    known = result[kind]
    result[kind] = {name: known[name] if names and name not in names else golden(name) for name in models}
with open(out, "w", encoding="utf-8") as file:
    json.dump(result, file, ensure_ascii=False, separators=(",", ":"))
