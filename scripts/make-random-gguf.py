#!/usr/bin/env python3
"""Writes a GGUF of Llama-3.2-1B's shape (or of the shape given) with random weights, which llmc and llama.cpp both load:
for timing models that are larger than a cache. Only the standard library.

Usage: make-random-gguf.py OUT.gguf [--type Q4_0|Q4_1|Q8_0|BF16|F16] [--hidden N --ffn N --layers N --heads N --kv-heads N --vocab N]
Matrices, the tied embedding too, are of the type; norms are ones in F32. The vocabulary is bytes and fillers.
Scales are such that a product of unit rows stays near 1.
"""
import argparse
import os
import random
import struct

BLOCKS = {"Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q8_0": (8, 32, 34), "F16": (1, 1, 2), "BF16": (30, 1, 2)}  # ggml's number, values, bytes
U32, F32, STRING, STRINGS, INTS = 4, 6, 8, 9, (9, 5)


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--type", choices=BLOCKS, default="Q4_0")
    for name, value in (("hidden", 2048), ("ffn", 8192), ("layers", 16), ("heads", 32), ("kv-heads", 8), ("vocab", 128256), ("context", 131072)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def entry(key, kind, value):
    """A key of the metadata: a number, a string or an array of strings or i32."""
    head = text(key) + struct.pack("<I", 9 if kind in (STRINGS, INTS) else kind)
    if kind == STRINGS:
        return head + struct.pack("<IQ", STRING, len(value)) + b"".join(map(text, value))
    if kind == INTS:
        return head + struct.pack(f"<IQ{len(value)}i", 5, len(value), *value)
    return head + (text(value) if kind == STRING else struct.pack("<I" if kind == U32 else "<f", value))


def vocabulary(size):
    """GPT-2's 256 byte symbols, then fillers."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    symbols = {b: chr(b) for b in printable}
    for b in range(256):
        symbols.setdefault(b, chr(256 + sum(1 for x in symbols if ord(symbols[x]) > 255)))
    tokens = [symbols[b] for b in range(256)] + [f"<filler {i}>" for i in range(size - 256)]
    return [("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, "gpt-2"), ("tokenizer.ggml.tokens", STRINGS, tokens),
            ("tokenizer.ggml.token_type", INTS, [1] * 256 + [3] * (size - 256)), ("tokenizer.ggml.merges", STRINGS, []),
            ("tokenizer.ggml.eos_token_id", U32, size - 1)]


def matrix(rng, kind, rows, cols):
    """rows * cols random values of about 1 / sqrt(cols)."""
    _, values, size = BLOCKS[kind]
    blocks = rows * cols // values
    data = bytearray()
    while len(data) < blocks * size:  # randbytes has a limit
        data += rng.randbytes(min(blocks * size - len(data), 1 << 26))
    if values == 1:  # high bytes: a random sign, one exponent (BF16: one of two, its last bit is in the low byte)
        power = max(1, (cols.bit_length() - 1) // 2)
        high = 127 - power >> 1 if kind == "BF16" else 15 - power << 2
        data[1::2] = data[1::2].translate(bytes(b & 0x80 | high | (b & 3 if kind == "F16" else 0) for b in range(256)))
        return bytes(data)
    spread = {"Q4_0": 4.6, "Q4_1": 4.6, "Q8_0": 74.0}[kind]  # standard deviation of a uniform code
    scale = struct.pack("<e", 1 / (spread * cols**0.5))
    for i in range(2):
        data[i::size] = bytes([scale[i]]) * blocks
    if kind == "Q4_1":
        low = struct.pack("<e", -7.5 / (spread * cols**0.5))
        for i in range(2):
            data[2 + i::size] = bytes([low[i]]) * blocks
    return bytes(data)


def main():
    a = parse()
    dim = a.hidden // a.heads
    rng = random.Random(a.seed)
    tensors = [("token_embd.weight", a.vocab, a.hidden), ("output_norm.weight", 0, a.hidden)]
    for i in range(a.layers):
        tensors += [(f"blk.{i}.{name}.weight", rows, cols) for name, rows, cols in (
            ("attn_norm", 0, a.hidden), ("attn_q", a.hidden, a.hidden), ("attn_k", a.kv_heads * dim, a.hidden), ("attn_v", a.kv_heads * dim, a.hidden),
            ("attn_output", a.hidden, a.hidden), ("ffn_norm", 0, a.hidden), ("ffn_gate", a.ffn, a.hidden), ("ffn_up", a.ffn, a.hidden), ("ffn_down", a.hidden, a.ffn))]
    pairs = [("general.architecture", STRING, "llama"), ("general.name", STRING, "random-" + a.type)]
    pairs += [("llama." + key, U32, value) for key, value in (
        ("block_count", a.layers), ("context_length", a.context), ("embedding_length", a.hidden), ("feed_forward_length", a.ffn),
        ("attention.head_count", a.heads), ("attention.head_count_kv", a.kv_heads), ("rope.dimension_count", dim), ("vocab_size", a.vocab))]
    pairs += [("llama.rope.freq_base", F32, 500000.0), ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5)]
    pairs += vocabulary(a.vocab)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    head += b"".join(entry(*pair) for pair in pairs)
    number, values, size = BLOCKS[a.type]
    offset = 0
    sizes = []
    for name, rows, cols in tensors:
        shape = [cols, rows] if rows else [cols]
        bytes_ = rows * cols // values * size if rows else 4 * cols
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number if rows else 0, offset)
        sizes.append(bytes_)
        offset += bytes_ + -bytes_ % 32
    part = a.out + ".part"
    with open(part, "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        for (name, rows, cols), bytes_ in zip(tensors, sizes):
            f.write((matrix(rng, a.type, rows, cols) if rows else struct.pack("<f", 1.0) * cols) + bytes(-bytes_ % 32))
    os.replace(part, a.out)
    print(f"{a.out}: {a.type}, {sum(r * c for _, r, c in tensors) / 1e9:.2f} G weights, {os.path.getsize(a.out) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
