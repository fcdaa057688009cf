#!/usr/bin/env python3
"""Writes CharacterTables.inc: what Python's str methods know of characters beyond
their general category and simple case mappings.

    python3 make_character_tables.py > CharacterTables.inc
"""
import sys
import unicodedata

ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(name, comment, wanted):
    found = []
    for c in ALL:
        if wanted(chr(c), unicodedata.category(chr(c))):
            if found and found[-1][1] == c - 1:
                found[-1][1] = c
            else:
                found.append([c, c])
    print(f"// {comment}\nstatic constexpr uint32_t {name}[][2] = {{")
    for i in range(0, len(found), 8):
        print("    " + " ".join(f"{{0x{a:X}, 0x{b:X}}}," for a, b in found[i:i + 8]))
    print("};\n")


def mappings(name, comment, mapping):
    found = [(c, mapping(chr(c))) for c in ALL if len(mapping(chr(c))) > 1]
    print(f"// {comment}\nstatic constexpr std::pair<uint32_t, const char *> {name}[] = {{")
    for i in range(0, len(found), 4):
        print("    " + " ".join("{0x%X, \"%s\"}," % (c, "".join(f"\\x{b:02x}" for b in text.encode())) for c, text in found[i:i + 4]))
    print("};\n")


print(f"// Made by make_character_tables.py with Unicode {unicodedata.unidata_version}.\n")
ranges("kOtherLowercase", "str.islower beyond category Ll", lambda s, k: s.islower() and k != "Ll")
ranges("kOtherUppercase", "str.isupper beyond category Lu", lambda s, k: s.isupper() and k != "Lu")
ranges("kOtherDigits", "str.isdigit beyond category Nd", lambda s, k: s.isdigit() and k != "Nd")
ranges("kOtherNumerics", "str.isnumeric beyond categories Nd, Nl, No", lambda s, k: s.isnumeric() and not k.startswith("N"))
mappings("kUpper", "str.upper of more than one character", str.upper)
mappings("kTitle", "title case of more than one character", str.capitalize)
