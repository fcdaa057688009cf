#!/usr/bin/env python3
"""Writes ReferenceMarks.inc: what the normalizers of HF tokenizers take for a mark or a control character.

    python make_reference_marks.py > ReferenceMarks.inc        (needs the package tokenizers, 0.23)

Its tables are those of an older Unicode than ours; equal ids want the same ones.
"""
import tokenizers
from tokenizers import normalizers

ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
bert = lambda **on: normalizers.BertNormalizer(**{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False, **on})


def ranges(name, comment, normalizer):
    """The characters that `normalizer` drops; none of them decomposes."""
    found = []
    for c in ALL:
        if normalizer.normalize_str("a" + chr(c) + "b") == "ab":
            if found and found[-1][1] == c - 1:
                found[-1][1] = c
            else:
                found.append([c, c])
    print(f"// {comment}\nstatic constexpr uint32_t {name}[][2] = {{")
    for i in range(0, len(found), 6):
        print("    " + " ".join(f"{{0x{a:X}, 0x{b:X}}}," for a, b in found[i:i + 6]))
    print("};\n")


print(f"// Made by make_reference_marks.py with tokenizers {tokenizers.__version__}.\n")
ranges("kReferenceMarks", "Dropped by StripAccents.", normalizers.StripAccents())
ranges("kReferenceNonspacing", "Dropped by BertNormalizer(strip_accents=True).", bert(strip_accents=True))
ranges("kReferenceControls", "Dropped by BertNormalizer(clean_text=True).", bert(clean_text=True))
