#!/usr/bin/env python3
"""Writes family_goldens.json: the chats of conversations.py through the templates in families/.

    python make_family_goldens.py [FOLDER]        (needs transformers, jinja2)

FOLDER is models/templates of llama.cpp's sources. families/README.md says which of its templates are
stored; of the others every construct (a filter with its arguments, a test, a method, a kind of loop ...) must be in
a stored one or in families/constructs.jinja, which is our own. The script ends with 1 and names what is missing.

A rendering is kept as the first 8 hex digits of FNV-1a, "--------" where the reference refuses it: a string of
digests for each template and each of COMBINATIONS, in the order of "chats".
"""
import json
import pathlib
import sys

from jinja2 import nodes

import reference
from conversations import CHATS, OPTIONS, TOOLS

HERE = pathlib.Path(__file__).parent
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
COMBINATIONS = [("none", ""), ("three", "prompt"), ("none", "no thinking"), ("three", "thinking"), ("one", "documents"), ("none", "continued")]


def digest(text):
    if text is None:
        return "--------"
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"[:8]


# Constructs ------------------------------------------------------------------------------------------


def of_filter(node):
    return [(node.name, len(node.args), tuple(sorted(a.key for a in node.kwargs)), "block" if node.node is None else "")]


def of_call(node):
    how = (bool(node.kwargs), bool(node.dyn_args), bool(node.dyn_kwargs))
    if isinstance(node.node, nodes.Getattr):
        return [("method", node.node.attr, len(node.args), *how)]
    known = isinstance(node.node, nodes.Name) and node.node.name in ("range", "namespace", "dict", "raise_exception", "strftime_now", "caller")
    return [("function", node.node.name if known else type(node.node).__name__, *how)]


DETAILS = {
    "Filter": of_filter,
    "Call": of_call,
    "Test": lambda node: [node.name],
    "Getattr": lambda node: [node.attr] if isinstance(node.node, nodes.Name) and node.node.name == "loop" else [],
    "Getitem": lambda node: [type(node.arg).__name__],
    "Slice": lambda node: [type(part).__name__ for part in (node.start, node.stop, node.step)],
    "Operand": lambda node: [node.op],
    "For": lambda node: [type(node.target).__name__, node.test is not None, bool(node.else_), node.recursive],
    "Macro": lambda node: [bool(node.defaults)],
    "If": lambda node: [bool(node.elif_), bool(node.else_)],
    "Assign": lambda node: [type(node.target).__name__],
}


def constructs(source):
    tree = reference.compile_template("x").environment.parse(source)
    return {(type(node).__name__, *map(str, DETAILS.get(type(node).__name__, lambda _: [])(node))) for node in tree.find_all(nodes.Node)}


def missing(folder, stored):
    here = set().union(*map(constructs, stored.values()))
    wanted = {}
    for path in sorted(folder.glob("*.jinja")):
        for construct in constructs(path.read_text(encoding="utf-8")) - here:
            wanted.setdefault(construct, path.stem)
    for construct, name in sorted(wanted.items()):
        print(f"{name}: {construct} is in no template of families/")
    return len(wanted)


def main():
    stored = {path.stem: path.read_text(encoding="utf-8") for path in sorted((HERE / "families").glob("*.jinja"))}
    out, refused, total = {}, 0, 0
    for name, source in stored.items():
        out[name] = []
        for tools, option in COMBINATIONS:
            digests = []
            for messages in CHATS.values():
                context = {"messages": messages, "tools": TOOLS[tools], "documents": None, "add_generation_prompt": False, **TOKENS, **OPTIONS[option]}
                digests.append(digest(reference.render(source, json.loads(json.dumps(context)))[0]))
            out[name].append("".join(digests))
            refused += digests.count("--------")
            total += len(digests)
    goldens = {
        "chats": CHATS,
        "combinations": [{"tools": TOOLS[tools], **OPTIONS[option]} for tools, option in COMBINATIONS],
        "tokens": TOKENS,
        "digests": out,
    }
    lines = ",\n".join(json.dumps(key) + ": " + (json.dumps(value, ensure_ascii=False) if key == "tokens" else compact(value)) for key, value in goldens.items())
    (HERE / "family_goldens.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    print(f"{len(stored)} templates, {total} renderings, {refused} of them refused")
    if len(sys.argv) > 1:
        sys.exit(missing(pathlib.Path(sys.argv[1]), stored) != 0)


def compact(value):
    """One entry a line."""
    dump = lambda item: json.dumps(item, ensure_ascii=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(dump, value)) + "\n]"
    return "{\n" + ",\n".join(dump(key) + ": " + dump(item) for key, item in value.items()) + "\n}"


if __name__ == "__main__":
    main()
