#!/usr/bin/env python3
"""Writes BlockGoldens.inc: random blocks of every quantised type of GGUF files and their values in f32.

The values are those of the gguf package (pip install gguf numpy; made with gguf 0.19), the reference in Python of
ggml's formats. Usage: make-block-goldens.py > BlockGoldens.inc
"""
import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

# Where a block's f16 lie.
HALVES = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q8_0: [0], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q2_K: [80, 82], T.Q3_K: [108],
    T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0],
}


def lines(text, width=116):
    return "\n".join(f'     "{text[i : i + width]}"' for i in range(0, len(text), width))


random = np.random.default_rng(5)
for kind, places in HALVES.items():
    values, size = gguf.GGML_QUANT_SIZES[kind]
    count = 64 // values or 1
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for i, block in enumerate(blocks):
        for at in places:
            # The second block of a short type has subnormal scales.
            half = np.float16(random.normal() * (1e-6 if i else 0.1))
            block[at : at + 2] = np.frombuffer(half.tobytes(), np.uint8)
    result = gguf.dequantize(blocks.reshape(-1), kind).astype(np.float32)
    words = "".join(f"{w:08x}" for w in result.view(np.uint32))
    print(f"{{DType::{kind.name},\n{lines(blocks.tobytes().hex())},\n{lines(words)}}},")
