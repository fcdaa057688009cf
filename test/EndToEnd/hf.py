"""SmolLM2 as a Hugging Face folder: the GGUF's weights, dequantised and rounded to bf16, under transformers' names.

test/data/smollm2-hf has the small files as transformers 5.17 wrote them (scripts/make-models.py), its tokenizer.json
without vocabulary and merges; the rest is made here from the GGUF, equal in every byte of every tensor. Needs numpy.
"""
import json
import os
import shutil
import struct

import common
import context
import smollm2

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def read_gguf(path):
    """(metadata, name -> (shape, type, offset)) of a GGUF file."""
    with open(path, "rb") as file:
        def unpack(form):
            return struct.unpack(form, file.read(struct.calcsize(form)))[0]

        def value(kind):
            if kind == 8:
                return file.read(unpack("<Q")).decode()
            if kind == 9:
                kind, count = struct.unpack("<IQ", file.read(12))
                return [value(kind) for _ in range(count)]
            return unpack(SCALARS[kind])

        assert file.read(4) == b"GGUF" and unpack("<I") == 3
        count, pairs = unpack("<Q"), unpack("<Q")
        metadata = {value(8): value(unpack("<I")) for _ in range(pairs)}
        tensors = {}
        for _ in range(count):
            name = value(8)
            shape = [unpack("<Q") for _ in range(unpack("<I"))][::-1]
            tensors[name] = (shape, unpack("<I"), unpack("<Q"))
        alignment = metadata.get("general.alignment", 32)
        start = -(-file.tell() // alignment) * alignment
    return metadata, {name: (shape, kind, start + offset) for name, (shape, kind, offset) in tensors.items()}


def dequantise(numpy, data, shape, kind, offset):
    count = 1
    for extent in shape:
        count *= extent
    if kind == 0:
        return numpy.frombuffer(data, "<f4", count, offset).reshape(shape)
    if kind == 8:  # Q8_0
        blocks = numpy.frombuffer(data, [("d", "<f2"), ("q", "i1", 32)], count // 32, offset)
        return (blocks["d"].astype("f4")[:, None] * blocks["q"].astype("f4")).reshape(shape)
    assert kind == 3, f"tensor type {kind}"  # Q4_1
    blocks = numpy.frombuffer(data, [("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)], count // 32, offset)
    codes = numpy.concatenate([blocks["q"] & 15, blocks["q"] >> 4], axis=1).astype("f4")
    return (blocks["d"].astype("f4")[:, None] * codes + blocks["m"].astype("f4")[:, None]).reshape(shape)


def to_bf16(numpy, values):
    bits = numpy.ascontiguousarray(values, dtype="<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def halves(values, dim):
    """Rows of q and k: GGUF's neighbours to transformers' halves."""
    rows, cols = values.shape
    return values.reshape(rows // dim, dim // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def write_folder(model, folder):
    import numpy
    tiny = context.tiny_models()
    shutil.copytree(os.path.join(common.DATA, "smollm2-hf"), folder)
    metadata, tensors = read_gguf(model)
    with open(model, "rb") as file:
        data = file.read()
    entries = []
    for name, (shape, kind, offset) in tensors.items():
        values = dequantise(numpy, data, shape, kind, offset)
        if name.split(".")[-2] in ("attn_q", "attn_k"):
            values = halves(values, metadata["llama.rope.dimension_count"])
        entries.append((tiny.hf_name(name, {"family": "llama"}), shape, "BF16", to_bf16(numpy, values)))
    tiny.write_safetensors(os.path.join(folder, "model.safetensors"), entries)
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as file:
        tokenizer = json.load(file)
    tokenizer["model"]["vocab"] = {token: i for i, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    tokenizer["model"]["merges"] = [merge.split(" ") for merge in metadata["tokenizer.ggml.merges"]]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, ensure_ascii=False)


def folder(checks, ctx):
    path = ctx.path("smollm2-hf")
    shutil.rmtree(path, ignore_errors=True)
    write_folder(ctx.model, path)
    for compute, needed in (("f32", 10), ("default", 8)):
        result = ctx.compile(path, f"smollm2-hf-{compute}", f"--compute={compute}")
        if checks.check(f"llmc compile the folder ({compute})", result.code == 0,
                        f"{result.seconds:.1f} s" if result.code == 0 else result.errors.strip()[-400:]):
            exe = ctx.path(f"smollm2-hf-{compute}")
            smollm2.greedy(checks, ctx, exe, f"folder, {compute}", "smollm2-hf-greedy.json", needed)
            os.remove(exe)
    shutil.rmtree(path)
