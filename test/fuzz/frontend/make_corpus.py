#!/usr/bin/env python3
"""Writes the seeds and dictionaries of the frontend fuzzers: make_corpus.py OUT_DIR

OUT_DIR/TARGET/*: a tiny valid file of each kind and a few near misses, all under 16 KiB. OUT_DIR/TARGET.dict: the words
that its readers look for. Standard library only.
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
    scalar = {"u16": (2, "<H"), "u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<B")}
    if kind == "nested":
        return struct.pack("<IIQ", 9, 9, len(item)) + b"".join(value("i32s", inner)[4:] for inner in item)
    if kind == "str":
        return struct.pack("<I", 8) + gguf_string(item)
    if kind == "strs":
        return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(gguf_string, item))
    if kind == "i32s":
        return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack("<%di" % len(item), *item)
    number, form = scalar[kind]
    return struct.pack("<I", number) + struct.pack(form, item)


def gguf(architecture="llama", tensor_type=0, bias=False, freqs=False, more=(), take=lambda name: True, keys=True):
    """A model, or a part of one: the tensors that `take` takes, the model's keys or only `more` keys."""
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
    pairs = (pairs if keys else []) + list(more)
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
    tensors = [tensor for tensor in tensors if take(tensor[0])]
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


def split(freqs=False):
    """Two parts, each behind its length."""
    count, out = 12 + freqs, b""
    for number in range(2):
        more = [("split.no", "u16", number), ("split.count", "u16", 2), ("split.tensors.count", "i32", count - 1)]
        part = gguf(freqs=freqs, more=more, keys=number == 0, take=lambda name: name.startswith("blk") == (number == 0))
        out += struct.pack("<I", len(part)) + part
    return out


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


ROPES = {
    "linear": {"type": "linear", "factor": 4},
    "per_layer": {"full_attention": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5}},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "attention_factor": 1.1,
             "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.5, "truncate": False},
}
FAMILIES = {
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": 4, "head_dim": 8, "num_key_value_heads": None},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0,
              "layer_types": ["sliding_attention"], "tie_word_embeddings": True},
    "bias": {"architectures": None, "model_type": "llama", "attention_bias": True, "rms_norm_eps": 1e-5, "hidden_act": "silu",
             "max_position_embeddings": 64, "head_dim": None, "mlp_bias": False, "quantization_config": None},
}
JSONS = [b'{"a": [1, -2.5e3, "\\u00e9\\ud83e\\udd8a", null, true, {"b": {}}], "c": 64.0}', b"[" * 40 + b"]" * 40, b"[1e999]",
         b"[18446744073709551615, -9223372036854775808, 9223372036854775808]", "\ufeff{}".encode(), "{}".encode("utf-16"),
         b'{"a": 1,}', b'{"a": 1, "a": 2}', b'"\xff"', b"\r\n[\r\n]\r\n", b"NaN"]


def words(name):
    """Keys and values that the readers know, taken from the seeds."""
    known = set()

    def collect(item):
        if isinstance(item, dict):
            known.update(item)
            for inner in item.values():
                collect(inner)
        elif isinstance(item, list):
            for inner in item:
                collect(inner)
        elif isinstance(item, str) and len(item) < 40:
            known.add(item)

    collect({"config": [CONFIG, NEW_CONFIG, ROPES, FAMILIES], "sidefiles": [TOKENIZER, TOKENIZER_CONFIG, INDEX]}.get(name, []))
    if name == "safetensors":
        known |= {"dtype", "shape", "data_offsets", "__metadata__", "F32", "F16", "BF16", "I64", "U8", "F8_E4M3", "BOOL"}
    quoted = ['"%s"' % word for word in sorted(known)] + ["[", "]", "{", "}", ":", ",", "null", "true", "false", "1e999", "-1", "64.0",
                                                          "18446744073709551615", "9223372036854775807", "2147483648"]
    if name.startswith("gguf"):
        quoted = ["GGUF", "split.no", "split.count", "split.tensors.count", "general.architecture", "general.alignment", "llama", "qwen2"]
        quoted += ["tokenizer.ggml." + key for key in ("tokens", "scores", "merges", "token_type", "pre", "model", "bos_token_id")]
        for key in ("rope.scaling.type", "rope.scaling.factor", "rope.dimension_count", "attention.key_length", "attention.sliding_window",
                    "attention.value_length", "vocab_size", "expert_count", "rope.freq_base"):
            quoted.append("llama." + key)
        quoted += ["blk.0.attn_q.bias", "rope_freqs.weight", "output.weight", "linear", "yarn", "gpt2"]
    return "".join('"%s"\n' % word.replace("\\", "\\\\").replace('"', '\\"') for word in quoted if word.isascii())


def corpus():
    tensor = lambda dtype, shape, begin, end: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    yield "gguf/llama", gguf()
    yield "gguf/qwen2", gguf("qwen2", bias=True)
    yield "gguf/freqs", gguf(freqs=True)
    yield "gguf/q8", gguf(tensor_type=8)
    yield "gguf/header", gguf()[:200]
    yield "gguf/nested", gguf(more=[("a.nested", "nested", [[1, 2], []])])
    yield "gguf/window", gguf(more=[("llama.attention.sliding_window", "u32", 4), ("llama.rope.scaling.type", "str", "linear"),
                                    ("llama.rope.scaling.factor", "f32", 4.0), ("llama.attention.key_length", "u32", 4),
                                    ("llama.attention.value_length", "u32", 4), ("llama.rope.dimension_count", "u32", 2)])
    yield "gguf-split/two", split()
    yield "gguf-split/freqs", split(freqs=True)
    yield "gguf-split/one", split()[:4 + struct.unpack("<I", split()[:4])[0]]
    yield "safetensors/good", safetensors({"__metadata__": {"a": "b"}, "t": tensor("F32", [2, 2], 0, 16),
                                           "u": tensor("BF16", [4], 16, 24)}, 24)
    yield "safetensors/empty", safetensors({}, 0)
    yield "safetensors/overlap", safetensors({"t": tensor("F16", [4], 0, 8), "u": tensor("U8", [8], 4, 12)}, 12)
    yield "safetensors/long", struct.pack("<Q", 1 << 63) + b"{}"
    for kind, name, item in (("c", "config", CONFIG), ("c", "new_config", NEW_CONFIG), ("t", "tokenizer", TOKENIZER),
                             ("k", "tokenizer_config", TOKENIZER_CONFIG), ("i", "index", INDEX)):
        yield "sidefiles/" + name, kind.encode() + json.dumps(item).encode()
    for name, item in (("old", CONFIG), ("new", NEW_CONFIG), *((f, dict(CONFIG, rope_scaling=None, **FAMILIES[f])) for f in FAMILIES),
                       *((r, dict(CONFIG, rope_scaling=ROPES[r])) for r in ROPES)):
        yield "config/" + name, json.dumps({k: v for k, v in item.items() if k != "architectures" or v}).encode()
    for i, data in enumerate(JSONS):
        yield "json/%d" % i, data
    yield "sidefiles/bom", b"c\xef\xbb\xbf" + json.dumps(CONFIG, indent=1).replace("\n", "\r\n").encode()


def main():
    out = sys.argv[1]
    for name, data in corpus():
        path = os.path.join(out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    for name in sorted({name.split("/")[0] for name, _ in corpus()}):
        with open(os.path.join(out, name + ".dict"), "w", encoding="ascii") as file:
            file.write(words(name))


if __name__ == "__main__":
    main()
