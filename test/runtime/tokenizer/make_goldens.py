#!/usr/bin/env python3
"""Writes goldens.json: what HF tokenizers gives for SmolLM2's vocabulary.

    python make_goldens.py MODEL.gguf        (needs the packages tokenizers and gguf)

Each case is [text, number of ids, FNV-1a of the ids as little-endian int32]. The
vocabulary, merges and special tokens come from the GGUF file; the pre-tokeniser
is the one of SmolLM2's own tokenizer.json (Digits, then ByteLevel).
"""
import json
import random
import struct
import sys
from pathlib import Path

import gguf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def read(path):
    reader = gguf.GGUFReader(path)
    field = lambda name: reader.fields[name].contents()
    return field("tokenizer.ggml.tokens"), field("tokenizer.ggml.merges"), field("tokenizer.ggml.token_type")


def build(path):
    tokens, merges, types = read(path)
    bpe = models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in merges])
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    control = [t for t, kind in zip(tokens, types) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in control])
    return tokenizer, control


FRAGMENTS = [
    " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\u180e", "\u200b", "\u200d", "\ufeff", "\x85",
    "'s", "'S", "'ll", "'LL", "\u2019t", "don't", "he'll've", "I'm", "the", " the", "The", " quick", "ing", "er", "é", "e\u0301",
    "ñ", "Straße", " naïve", "Ω", "привет", " мир", "שלום", "مرحبا", "नमस्ते", "ไทย", "中文", "日本語", "한국어", "\u1100\u1161",
    "0", "7", "42", " 123", "2048kg", "3.14", "½", "²", "Ⅷ", "٣", "१२", "1,000,000", "!", "?!", "...", "--", "(", ")", "{", "}",
    "[0]", "=>", "!=", "//", "/*", "*/", "#", "@", "$x", "%", "&", "_", "__init__", "def f(x):", "return", "x=\t\t7", ";", "<", ">",
    "<|im_start|>", "<|im_end|>", "<|im_end|", "|im_end|>", "<|endoftext|>", "<repo_name>", "<|", "🦊", "👩‍🚀", "🏳️‍🌈", "❄",
    "\u0301\u0323", "\x00", "\x01", "\x7f", "\U0001F600", "\U00020000", "\U0010FFFF", "\ufffd", "ſ", "ﬁ", "ǅ", "ʰ", "_", "‿",
    "http://a.b/c?d=e&f=1", "AAAAAAAAAAAAAAAAAAAAAAAA", "aaaaaaaaaaaaaaaaa", "=====", "          ", "\n\n\n\n", "zzzzzzzZZZZ",
]


def strings(seed, count):
    rng = random.Random(seed)
    out = []
    while len(out) < count:
        kind = rng.randrange(4)
        if kind < 2:
            text = "".join(rng.choice(FRAGMENTS) for _ in range(rng.randrange(1, 9)))
        elif kind == 2:
            text = "".join(chr(rng.randrange(0x20, 0x7F)) if rng.random() < 0.8 else rng.choice(" \n\t")
                           for _ in range(rng.randrange(1, 40)))
        else:
            text = "".join(chr(c) for c in (rng.choice([rng.randrange(0x300), rng.randrange(0x3000), rng.randrange(0x1F300, 0x1FA00),
                                                        rng.randrange(0x110000)]) for _ in range(rng.randrange(1, 16)))
                           if not 0xD800 <= c <= 0xDFFF)
        out.append(text)
    return out


def fnv(ids):
    h = 0x811C9DC5
    for byte in b"".join(struct.pack("<i", i) for i in ids):
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return h


def main():
    tokenizer, control = build(sys.argv[1])
    cases, plain, decoded = [], [], []
    for text in strings(1, 2000):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append([text, len(ids), fnv(ids)])
    tokenizer.encode_special_tokens = True  # special tokens stay text
    for text in [t for t in strings(2, 2000) if "<" in t][:150]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        plain.append([text, len(ids), fnv(ids)])
    rng = random.Random(3)
    for _ in range(100):
        ids = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randrange(1, 12))]
        decoded.append([ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids, skip_special_tokens=True)])
    long = {}
    tokenizer.encode_special_tokens = False
    for name, unit in [("Z", "Z"), ("han", "中"), ("dot", "."), ("space", " "), ("newline", "\n"), ("mark", "\u0301"), ("zero", "0")]:
        ids = tokenizer.encode(unit * 40000, add_special_tokens=False).ids
        long[name] = [unit, 40000, len(ids), fnv(ids)]
    ids = tokenizer.encode("Zz" * (1 << 19), add_special_tokens=False).ids
    long["Zz"] = ["Zz", 1 << 19, len(ids), fnv(ids)]
    out = {"special": cases, "plain": plain, "decode": decoded, "long": long}
    with open(Path(__file__).parent / "goldens.json", "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(
            json.dumps(k) + ": [\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in v) + "\n]"
            for k, v in ((k, list(v.values()) if isinstance(v, dict) else v) for k, v in out.items())) + "\n}\n")


if __name__ == "__main__":
    main()
