#!/usr/bin/env python3
"""Every chat template that llama.cpp ships, against jinja2 within transformers.

    python render_all_templates.py BUILD/test/runtime/template/llmc-template-driver [FOLDER]

needs the packages transformers and jinja2. Without FOLDER the templates come from
the source archive of llama-cpp-python on PyPI (90 MB, by `pip download`). Every
template is rendered with every chat, tool list and set of options of
conversations.py, the final message continued among them; text must be equal, and what the reference refuses must be refused.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import reference
from conversations import CHATS, OPTIONS, TOOLS

ARCHIVE = "llama-cpp-python==0.3.36"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def download():
    folder = tempfile.mkdtemp()
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder, ARCHIVE], check=True)
    archive, = pathlib.Path(folder).glob("*.tar.gz")
    found = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            path = pathlib.PurePath(member.name)
            if path.suffix == ".jinja" and path.parts[-3:-1] == ("models", "templates"):
                found[path.stem] = tar.extractfile(member).read().decode()
    return found


def contexts(tokens):
    for chat, messages in CHATS.items():
        for tools, schema in TOOLS.items():
            for option, variables in OPTIONS.items():
                # All tools with all chats, but options only with two lists of them.
                if option not in ("", "prompt") and tools not in ("none", "three"):
                    continue
                context = {"messages": messages, "tools": schema, "documents": None, "add_generation_prompt": False, **tokens, **variables}
                yield f"{chat} / tools: {tools} / {option}", context


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--only", default="", help="part of a template's name")
    parser.add_argument("--every", type=int, default=1, help="only each so many-th rendering")
    parser.add_argument("--show", type=int, default=10)
    options = parser.parse_args()
    if options.folder:
        templates = {p.stem: p.read_text(encoding="utf-8") for p in sorted(pathlib.Path(options.folder).glob("*.jinja"))}
    else:
        templates = download()
    if not templates:
        raise SystemExit("no templates found")
    total = refused = differing = 0
    for name, source in sorted(templates.items()):
        if options.only not in name:
            continue
        cases = list(contexts(TOKENS))[sum(name.encode()) % options.every :: options.every]
        answers = reference.drive(options.driver, [{"template": source, "context": context} for _, context in cases])
        wrong = []
        for (title, context), answer in zip(cases, answers):
            text, error = reference.render(source, json.loads(json.dumps(context)))
            total += 1
            refused += text is None
            if answer.get("text") != text:
                wrong.append((title, text, error, answer))
        differing += len(wrong)
        if wrong:
            print(f"{name}: {len(wrong)} of {len(cases)} differ")
            for title, text, error, answer in wrong[: options.show]:
                print(f"  {title}\n    reference: {error or json.dumps(text, ensure_ascii=False)}\n    got:       {json.dumps(answer, ensure_ascii=False)}")
    print(f"{len(templates)} templates, {total} renderings, {refused} of them refused by the reference, {differing} differ")
    sys.exit(differing != 0)


if __name__ == "__main__":
    main()
