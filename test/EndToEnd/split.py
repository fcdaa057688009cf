"""GGUF files taken apart and put together; models in several files give the same package as from one, whichever part is named."""
import os
import shutil
import struct

import common
import context
import exe as cli
import hf


def string(text):
    return struct.pack("<Q", len(text)) + text


def take_apart(path):
    """([(key, its bytes in the file)], [[name, entry of the table without the offset, data padded to 32]]) of a GGUF file."""
    with open(path, "rb") as file:
        data = file.read()
    metadata, tensors = hf.read_gguf(path)
    at = 24

    def skip(kind):
        nonlocal at
        if kind == 8:
            at += 8 + struct.unpack_from("<Q", data, at)[0]
        elif kind == 9:
            inner, count = struct.unpack_from("<IQ", data, at)
            at += 12
            for _ in range(count):
                skip(inner)
        else:
            at += struct.calcsize(hf.SCALARS[kind])

    pairs, table = [], []
    for key in metadata:
        start = at
        skip(8)
        at += 4
        skip(struct.unpack_from("<I", data, at - 4)[0])
        pairs.append((key, data[start:at]))
    ends = sorted(offset for *_, offset in tensors.values()) + [len(data)]
    for name, (shape, _, offset) in tensors.items():
        size = 8 + len(name.encode()) + 4 + 8 * len(shape) + 4
        end = ends[ends.index(offset) + 1]
        table.append([name, data[at:at + size], data[offset:end].ljust(-(-(end - offset) // 32) * 32, b"\0")])
        at += size + 8
    return pairs, table


def put_together(pairs, table, offsets=None):
    """The file; `offsets`: name -> offset, for files that lie."""
    head, offset = b"GGUF" + struct.pack("<IQQ", 3, len(table), len(pairs)) + b"".join(raw for _, raw in pairs), 0
    for name, entry, data in table:
        head += entry + struct.pack("<Q", (offsets or {}).get(name, offset))
        offset += len(data)
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + b"".join(data for *_, data in table)


def split(path, folder, parts, keys_alone=False):
    """Writes `path` as gguf-split does and returns the paths; with `keys_alone` the first part has no tensors."""
    pairs, table = take_apart(path)
    groups = [[] for _ in range(parts)]
    first = 1 if keys_alone else 0
    for i, tensor in enumerate(table):
        groups[first + i * (parts - first) // len(table)].append(tensor)
    paths = []
    for number, group in enumerate(groups):
        own = [(key, string(key.encode()) + raw) for key, raw in (
            ("split.no", struct.pack("<IH", 2, number)), ("split.count", struct.pack("<IH", 2, parts)),
            ("split.tensors.count", struct.pack("<Ii", 5, len(table))))]
        paths.append(os.path.join(folder, f"m-{number + 1:05}-of-{parts:05}.gguf"))
        with open(paths[-1], "wb") as file:
            file.write(put_together((pairs if number == 0 else []) + own, group))
    return paths


def all_parts(checks, ctx):
    tiny, goldens = context.tiny_models(), context.golden("tiny-goldens.json")
    for name in ("llama-tied.q4_0", "llama3-untied.f16", "qwen2.q4_1"):
        folder = ctx.path(f"split-{name}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        whole = tiny.write(folder, name)
        ids = goldens["models"][name]["prompt_ids"]
        result = ctx.compile(whole, f"{name}-whole")
        if not checks.check(f"{name}: compiles", result.code == 0, result.errors.strip()[-300:]):
            continue
        wanted = cli.logits_bytes(ctx.path(f"{name}-whole"), ids)
        for parts, keys_alone in ((2, False), (3, True), (7, False)):
            paths = split(whole, folder, parts, keys_alone)
            given = paths[parts // 2]
            for sub in ("inspect", "plan"):
                result = common.run([ctx.llmc, sub, given], timeout=60)
                checks.check(f"{name} in {parts} files: {sub}", result.code == 0 and (sub == "plan" or f"{parts} files" in result.text),
                             (result.text + result.errors).strip()[-200:] if result.code else "")
            result = ctx.compile(given, f"{name}-split")
            if checks.check(f"{name} in {parts} files: compiles", result.code == 0, result.errors.strip()[-300:]):
                checks.check(f"{name} in {parts} files: equal logits", cli.logits_bytes(ctx.path(f"{name}-split"), ids) == wanted)
