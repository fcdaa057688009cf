#!/usr/bin/env python3
"""Writes the seed corpus of the frontend fuzzers: make_corpus.py OUT_DIR

OUT_DIR/{gguf,safetensors,sidefiles}/*: a tiny valid file of each kind and a few
near misses, all under 16 KiB. Standard library only.
"""
import json
import os
import struct
import sys

VOCAB = ["<s>", "</s>", "a", "b", "ab"]


def gguf_string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(kind, item):
    scalar = {"u32": (4, "<I"), "f32": (6, "<f"), "bool": (7, "<B")}
    if kind == "str":
        return struct.pack("<I", 8) + gguf_string(item)
    if kind == "strs":
        return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(gguf_string, item))
    if kind == "i32s":
        return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack("<%di" % len(item), *item)
    number, form = scalar[kind]
    return struct.pack("<I", number) + struct.pack(form, item)


def gguf(architecture="llama", tensor_type=0, bias=False, freqs=False):
    hidden, ffn = 8, 8
    if tensor_type:
        hidden = ffn = 32
    heads, kv_heads = 2, 1
    head_dim = hidden // heads
    key = lambda name: architecture + "." + name
    pairs = [
        ("general.architecture", "str", architecture), (key("block_count"), "u32", 1),
        (key("context_length"), "u32", 16), (key("embedding_length"), "u32", hidden),
        (key("feed_forward_length"), "u32", ffn), (key("attention.head_count"), "u32", heads),
        (key("attention.head_count_kv"), "u32", kv_heads), (key("attention.layer_norm_rms_epsilon"), "f32", 1e-5),
        (key("rope.freq_base"), "f32", 1e4), ("tokenizer.ggml.model", "str", "gpt2"),
        ("tokenizer.ggml.pre", "str", "gpt-2"), ("tokenizer.ggml.tokens", "strs", VOCAB),
        ("tokenizer.ggml.token_type", "i32s", [3, 3, 1, 1, 1]), ("tokenizer.ggml.merges", "strs", ["a b"]),
        ("tokenizer.ggml.eos_token_id", "u32", 1), ("tokenizer.ggml.add_bos_token", "bool", 0),
        ("general.alignment", "u32", 32),
    ]
    tensors = [("token_embd.weight", [hidden, len(VOCAB)], tensor_type)]
    shapes = {"attn_norm": [hidden], "attn_q": [hidden, hidden], "attn_k": [hidden, kv_heads * head_dim],
              "attn_v": [hidden, kv_heads * head_dim], "attn_output": [hidden, hidden], "ffn_norm": [hidden],
              "ffn_gate": [hidden, ffn], "ffn_up": [hidden, ffn], "ffn_down": [ffn, hidden]}
    for name, shape in shapes.items():
        tensors.append(("blk.0.%s.weight" % name, shape, tensor_type if len(shape) == 2 else 0))
        if bias and name in ("attn_q", "attn_k", "attn_v"):
            tensors.append(("blk.0.%s.bias" % name, shape[1:], 0))
    tensors.append(("output_norm.weight", [hidden], 0))
    if freqs:
        tensors.append(("rope_freqs.weight", [head_dim // 2], 0))
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for name, kind, item in pairs:
        out += gguf_string(name) + value(kind, item)
    data = b""
    for name, shape, kind in tensors:
        out += gguf_string(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape)
        out += struct.pack("<IQ", kind, len(data))
        count = 1
        for extent in shape:
            count *= extent
        size = {0: count * 4, 3: count // 32 * 20, 8: count // 32 * 34}[kind]
        data += struct.pack("<f", 1.0) * (size // 4) + bytes(size % 4)
        data += bytes(-len(data) % 32)
    return out + bytes(-len(out) % 32) + data


def safetensors(header, size):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
          "num_key_value_heads": 1, "intermediate_size": 8, "vocab_size": 5, "rope_theta": 1e4, "eos_token_id": [1],
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 8192}}
NEW_CONFIG = dict(CONFIG, architectures=["Qwen2ForCausalLM"], rope_scaling=None, use_sliding_window=False,
                  rope_parameters={"full_attention": {"rope_theta": 1e6, "rope_type": "linear", "factor": 2.0}})
TOKENIZER = {
    "added_tokens": [{"id": 0, "content": "<s>", "special": True}, {"id": 1, "content": "</s>", "special": True}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\d"}, "behavior": "Isolated", "invert": False},
        {"type": "Split", "pattern": {"String": "."}, "behavior": "Isolated", "invert": False},
        {"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "use_regex": True}]},
    "post_processor": {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 2, "b": 3, "ab": 4}, "merges": ["a b", ["a", "b"]]}}
TOKENIZER_CONFIG = {"bos_token": "a", "pad_token": {"content": "b"}, "add_bos_token": True,
                    "chat_template": [{"name": "default", "template": "x"}],
                    "added_tokens_decoder": {"2": {"content": "<x>", "special": True}}}
INDEX = {"metadata": {"total_size": 1}, "weight_map": {"a": "x.safetensors", "b": "sub/y.safetensors", "c": "../z"}}


def corpus():
    tensor = lambda dtype, shape, begin, end: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    yield "gguf/llama", gguf()
    yield "gguf/qwen2", gguf("qwen2", bias=True)
    yield "gguf/freqs", gguf(freqs=True)
    yield "gguf/q8", gguf(tensor_type=8)
    yield "gguf/header", gguf()[:200]
    yield "safetensors/good", safetensors({"__metadata__": {"a": "b"}, "t": tensor("F32", [2, 2], 0, 16),
                                           "u": tensor("BF16", [4], 16, 24)}, 24)
    yield "safetensors/empty", safetensors({}, 0)
    yield "safetensors/overlap", safetensors({"t": tensor("F16", [4], 0, 8), "u": tensor("U8", [8], 4, 12)}, 12)
    yield "safetensors/long", struct.pack("<Q", 1 << 63) + b"{}"
    for kind, name, item in (("c", "config", CONFIG), ("c", "new_config", NEW_CONFIG), ("t", "tokenizer", TOKENIZER),
                             ("k", "tokenizer_config", TOKENIZER_CONFIG), ("i", "index", INDEX)):
        yield "sidefiles/" + name, kind.encode() + json.dumps(item).encode()
    yield "sidefiles/bom", b"c\xef\xbb\xbf" + json.dumps(CONFIG, indent=1).replace("\n", "\r\n").encode()


def main():
    out = sys.argv[1]
    for name, data in corpus():
        path = os.path.join(out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
