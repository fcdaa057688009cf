#!/usr/bin/env python3
"""Writes a tokenizer.json as large as a big model's: for a shape with random weights, which has no text of its own.

  make-tokenizer.py OUT/tokenizer.json [--tokens 128256] [--special 256] [--seed 1]

A byte-level BPE: the bytes, then merges of random pieces of words, digits, signs and spaces, then special tokens (<|begin|>, <|end|>, <|2|>, ...). The tokens
look like those of a trained one to whoever walks all of them (a grammar's masks): words with and without a space in front, most of 3 to 10
letters. Python's generator gives the same file everywhere.
"""
import argparse
import json
import random

LETTERS = "etaoinshrdlcumwfgypbvkjxqz"
SIGNS = ".,:;!?\"'()[]{}<>/\\-_=+*&^%$#@~|`"


def byte_characters():
    """A character for each byte, as GPT-2 has it: itself where it can be seen, one behind U+0100 otherwise."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return [chr(byte) for byte in seen] + [chr(256 + i) for i in range(len(hidden))], {byte: chr(256 + i) for i, byte in enumerate(hidden)}


def merges(tokens, count, space, rng):
    """Pairs of known tokens that make new ones: letters to letters, a space before a word, digits to digits, signs to signs."""
    known = set(tokens)
    words, starts, digits, signs = list(LETTERS) + list(LETTERS.upper()), [space], list("0123456789"), list(SIGNS)
    weights = [(len(LETTERS) - i % len(LETTERS)) for i in range(len(words))]
    first_words, made = list(words), []
    while len(made) < count:
        kind = rng.random()
        if kind < 0.90:
            pool = starts if rng.random() < 0.5 else words
            left = pool[int(len(pool) * rng.random() ** 4)]  # the early ones are short, and many begin with the same letters
            right = rng.choices(first_words, weights)[0].lower() if rng.random() < 0.6 else rng.choice(words).lower()
            limit = 13
        elif kind < 0.95:
            pool, left, right, limit = digits, rng.choice(digits), rng.choice(digits[:10]), 3
        else:
            pool, left, right, limit = signs, rng.choice(signs), rng.choice(signs[:len(SIGNS)]), 4
        whole = left + right
        if whole in known or right not in known or len(whole) > limit:
            continue
        known.add(whole)
        pool.append(whole)
        made.append((left, right))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for name, value in (("tokens", 128256), ("special", 256), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    characters, hidden = byte_characters()
    pairs = merges(characters, args.tokens - args.special - len(characters), hidden[32], random.Random(args.seed))
    tokens = characters + [left + right for left, right in pairs]
    names = ["<|begin|>", "<|end|>"] + [f"<|{i}|>" for i in range(2, args.special)]
    added = [{"id": len(tokens) + i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, name in enumerate(names[:args.special])]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
                 "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [list(pair) for pair in pairs]}}
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, ensure_ascii=False)


if __name__ == "__main__":
    main()
