#!/usr/bin/env python3
"""SmolLM2-135M-Instruct as a Hugging Face folder: the GGUF's weights, dequantised and rounded to bf16.

Needs the environment of scripts/reference-env.sh. Usage: make-models.py GGUF OUT_DIR     (writes OUT_DIR/hf)
"""
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

gguf, out = os.path.abspath(sys.argv[1]), os.path.join(sys.argv[2], "hf")
folder, name = os.path.split(gguf)
os.makedirs(out, exist_ok=True)
tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
quantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
# A plain configuration: that of the GGUF would mark the folder as quantised.
values = {k: v for k, v in quantised.config.to_dict().items() if k not in ("quantization_config", "_name_or_path")}
model = LlamaForCausalLM(LlamaConfig(**values))
model.load_state_dict(quantised.state_dict())
model.to(torch.bfloat16).save_pretrained(out)
tokenizer.save_pretrained(out)
print(out)
