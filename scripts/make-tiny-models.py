#!/usr/bin/env python3
"""Tiny models with random weights, one for every family, storage type and oddity that llmc has to get right.

Only the standard library; the same bytes everywhere (a fixed linear congruential generator). Usage:
  make-tiny-models.py OUT_DIR [NAME...]      default: all of MODELS; "all": those and all of SHAPES
Writes OUT_DIR/NAME (a Hugging Face folder) or OUT_DIR/NAME.gguf. scripts/make-tiny-goldens.py imports this file
and gives the same weights, dequantised, to transformers.

Sizes: hidden no power of two, at least two KV heads (but for one model), an odd vocabulary.
"""
import array
import bisect
import json
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ggml_blocks

FAMILIES = {
    # head_dim is not hidden / heads
    "llama-tied": dict(family="llama", hidden=96, heads=4, kv=2, head_dim=32, ffn=160, tied=True, seed=1),
    "llama3-untied": dict(family="llama", hidden=80, heads=4, kv=2, head_dim=32, ffn=112, tied=False, seed=2, theta=500000.0,
                          rope={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 64}),
    # hidden no multiple of the heads (transformers allows that for this family only), a single KV head, no window
    "mistral-mqa": dict(family="mistral", hidden=80, heads=3, kv=1, head_dim=32, ffn=112, tied=True, seed=3, window=None),
    # head_dim null: hidden / heads
    "llama-linear": dict(family="llama", hidden=96, heads=6, kv=2, head_dim=None, ffn=160, tied=False, seed=4,
                         rope={"rope_type": "linear", "factor": 4.0}),
    "llama-bias": dict(family="llama", hidden=96, heads=4, kv=2, head_dim=48, ffn=128, tied=True, seed=5, bias=True, out_bias=True),
    "qwen2": dict(family="qwen2", hidden=192, heads=6, kv=2, head_dim=32, ffn=224, tied=False, seed=6, bias=True, theta=1e6),
    "mistral-window": dict(family="mistral", hidden=96, heads=4, kv=2, head_dim=32, ffn=160, tied=False, seed=7, window=24),
    # a token sees itself alone; a window in every layer of the family whose layers may differ; half of each head is rotated
    "mistral-self": dict(family="mistral", hidden=96, heads=4, kv=2, head_dim=32, ffn=160, tied=True, seed=15, window=1),
    "qwen2-window": dict(family="qwen2", hidden=96, heads=6, kv=2, head_dim=32, ffn=112, tied=True, seed=16, bias=True, window=24),
    "llama-partial": dict(family="llama", hidden=96, heads=4, kv=2, head_dim=32, ffn=160, tied=True, seed=17, partial=0.5),
    # windows in the first of two layers, caps low enough to matter, scores scaled by another number than the head's size (which a GGUF cannot say)
    "gemma2": dict(family="gemma2", hidden=96, heads=4, kv=2, head_dim=64, ffn=160, tied=True, seed=18, window=24, caps=(3.0, 8.0), scalar=24),
    "gemma2-plain": dict(family="gemma2", hidden=96, heads=6, kv=2, head_dim=32, ffn=160, tied=True, seed=19, window=24, caps=(3.0, 8.0),
                         scalar=32),
    # sinks; the first layer has no window and no rotation
    "granite-swa": dict(family="granite_swa", hidden=96, heads=6, kv=2, head_dim=32, ffn=160, tied=True, seed=20, window=24, sinks=True,
                        multipliers=(2.0, 0.5, 0.25, 4.0), thetas=[0, 10000.0]),
    # whole blocks of 256 in every matrix
    "llama-256": dict(family="llama", hidden=256, heads=4, kv=2, head_dim=64, ffn=256, tied=False, seed=14),
    # every shape of attention: sizes of a head, heads that share a KV head
    "d64": dict(family="llama", hidden=96, heads=6, kv=2, head_dim=64, ffn=160, tied=True, seed=8),
    "d80": dict(family="llama", hidden=80, heads=4, kv=4, head_dim=80, ffn=112, tied=True, seed=9),
    "d96": dict(family="llama", hidden=96, heads=4, kv=1, head_dim=96, ffn=160, tied=True, seed=10),
    "d128": dict(family="llama", hidden=96, heads=8, kv=2, head_dim=128, ffn=160, tied=True, seed=11),
    "d128-window": dict(family="mistral", hidden=80, heads=7, kv=1, head_dim=128, ffn=112, tied=True, seed=12, window=17),
    "d256": dict(family="llama", hidden=96, heads=4, kv=2, head_dim=256, ffn=160, tied=True, seed=13),
    "d256-cap": dict(family="gemma2", hidden=96, heads=4, kv=2, head_dim=256, ffn=160, tied=True, seed=21, window=24, caps=(3.0, 8.0),
                     scalar=128),
    "d128-sinks": dict(family="granite_swa", hidden=80, heads=5, kv=1, head_dim=128, ffn=160, tied=False, seed=22, window=17, sinks=True,
                       multipliers=(1.0, 1.0, 0.1, 1.0), thetas=[500.0, 10000.0]),
}
# Storages of several types, as files of llama.cpp's quantizer mix them: the longest part of a tensor's name decides.
MIXES = {
    "Q_K": {"token_embd": "Q4_K", "output": "Q6_K", "blk": "Q4_K", "blk.0.attn_v": "Q6_K", "blk.0.attn_output": "Q2_K",
            "blk.0.ffn": "Q3_K", "blk.0.ffn_down": "Q5_K", "blk.1.attn": "IQ4_XS", "blk.1.attn_output": "Q5_K",
            "blk.1.ffn": "Q2_K", "blk.1.ffn_down": "IQ4_XS"},
    "Q_32": {"token_embd": "Q5_0", "blk.0": "Q5_1", "blk.0.attn_v": "Q5_0", "blk.0.ffn_down": "IQ4_NL", "blk.1": "IQ4_NL",
             "blk.1.ffn": "Q5_0", "blk.1.ffn_down": "Q5_1"},
}
# name -> (family, format, storage of matrices or their mix, of the embedding)
MODELS = {
    "llama-tied.hf-f32": ("llama-tied", "hf", "F32", "F32"),
    "llama-tied.f32": ("llama-tied", "gguf", "F32", "F32"),
    "llama-tied.f16": ("llama-tied", "gguf", "F16", "F16"),
    "llama-tied.bf16": ("llama-tied", "gguf", "BF16", "BF16"),
    "llama-tied.q4_0": ("llama-tied", "gguf", "Q4_0", "Q4_0"),
    "llama-tied.q4_1": ("llama-tied", "gguf", "Q4_1", "Q8_0"),
    "llama-tied.q8_0": ("llama-tied", "gguf", "Q8_0", "Q8_0"),
    "llama-tied.q5": ("llama-tied", "gguf", "Q_32", None),
    "llama-256.k": ("llama-256", "gguf", "Q_K", None),
    "llama3-untied.hf-bf16": ("llama3-untied", "hf-sharded", "BF16", "BF16"),
    "llama3-untied.f16": ("llama3-untied", "gguf", "F16", "F16"),
    "mistral-mqa.hf-bf16": ("mistral-mqa", "hf", "BF16", "BF16"),
    "llama-linear.hf-f16": ("llama-linear", "hf", "F16", "F16"),
    "llama-linear.f32": ("llama-linear", "gguf", "F32", "F32"),
    "llama-bias.hf-f32": ("llama-bias", "hf", "F32", "F32"),
    "qwen2.hf-bf16": ("qwen2", "hf", "BF16", "BF16"),
    "qwen2.q8_0": ("qwen2", "gguf", "Q8_0", "Q8_0"),
    "qwen2.q4_1": ("qwen2", "gguf", "Q4_1", "Q8_0"),
    "mistral-window.hf-f32": ("mistral-window", "hf", "F32", "F32"),
    "mistral-self.hf-f32": ("mistral-self", "hf", "F32", "F32"),
    "qwen2-window.hf-f32": ("qwen2-window", "hf", "F32", "F32"),
    "llama-partial.hf-f32": ("llama-partial", "hf", "F32", "F32"),
    "gemma2.hf-f32": ("gemma2", "hf", "F32", "F32"),
    "gemma2-plain.q8_0": ("gemma2-plain", "gguf", "Q8_0", "Q8_0"),
    "granite-swa.hf-f32": ("granite-swa", "hf", "F32", "F32"),
    "llama-256.hf-fp8": ("llama-256", "hf", "E4M3_ROWS", "F32"),
    "qwen2.hf-fp8": ("qwen2", "hf", "E4M3", "BF16"),
}
# Matrices in e4m3: whether each row has a scale, the storage of scales and of everything else, and what config.json says.
FP8 = {
    "E4M3_ROWS": dict(rows=True, scales="F32", others="F32", config=dict(
        quant_method="compressed-tensors", format="float-quantized", ignore=["lm_head"], kv_cache_scheme=None,
        config_groups=dict(group_0=dict(
            targets=["Linear"], output_activations=None,
            weights=dict(num_bits=8, type="float", strategy="channel", symmetric=True, dynamic=False, group_size=None),
            input_activations=dict(num_bits=8, type="float", strategy="token", symmetric=True, dynamic=True))))),
    "E4M3": dict(rows=False, scales="BF16", others="BF16", config=dict(
        quant_method="fp8", activation_scheme="static", ignored_layers=["lm_head"])),
}
# The same, for devices with kernels of their own for each size of a head (benchmarks/device.sh).
SHAPES = {
    "d64.hf-f32": ("d64", "hf", "F32", "F32"),
    "d80.hf-f32": ("d80", "hf", "F32", "F32"),
    "d96.hf-bf16": ("d96", "hf", "BF16", "BF16"),
    "d128.hf-f32": ("d128", "hf", "F32", "F32"),
    "d128.q4_0": ("d128", "gguf", "Q4_0", "Q4_0"),
    "d128-window.hf-f32": ("d128-window", "hf", "F32", "F32"),
    "d256.hf-f32": ("d256", "hf", "F32", "F32"),
    "d256-cap.hf-f32": ("d256-cap", "hf", "F32", "F32"),
    "d128-sinks.hf-f32": ("d128-sinks", "hf", "F32", "F32"),
}
LAYERS, CONTEXT, EPS = 2, 256, 1e-5
MERGES = ["h e", "t he", "i n", "e r", "Ġ t", "Ġ the", "o n", "Ġ a", "a n", "e s"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


# ---- random weights -------------------------------------------------------------------------------------------------


class Random:
    """Knuth's MMIX generator; values uniform in [-1, 1) with 24 bits, exact in f32."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 1) & (2**64 - 1)

    def values(self, count, scale, offset=0.0):
        state, out = self.state, array.array("f", bytes(4 * count))
        for i in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
            out[i] = ((state >> 40) * 2.0**-23 - 1.0) * scale + offset
        self.state = state
        return out


def head_dim(spec):
    return spec["head_dim"] or spec["hidden"] // spec["heads"]


def vocab():
    return 256 + len(MERGES) + len(SPECIALS)


def weights(spec):
    """Canonical name -> (shape, f32 values); matrices are [out, in], q and k rows in the halves order of transformers."""
    random, out = Random(spec["seed"]), {}
    hidden, q, kv = spec["hidden"], spec["heads"] * head_dim(spec), spec["kv"] * head_dim(spec)

    def matrix(name, rows, cols, gain=1.0):
        out[name + ".weight"] = ([rows, cols], random.values(rows * cols, gain * math.sqrt(3.0 / cols)))

    def vector(name, size, scale, offset=0.0):
        out[name] = ([size], random.values(size, scale, offset))

    gemma = spec["family"] == "gemma2"

    def norm(name, size=1.0):  # Gemma multiplies by 1 + w
        vector(name + ".weight", hidden, 0.3, size - 1.0 if gemma else size)

    matrix("token_embd", vocab(), hidden, 3.0 if gemma else math.sqrt(hidden) / 3)
    for n in range(LAYERS):
        blk = f"blk.{n}."
        norm(blk + "attn_norm")
        matrix(blk + "attn_q", q, hidden, 1.5)
        matrix(blk + "attn_k", kv, hidden, 1.5)
        matrix(blk + "attn_v", kv, hidden)
        matrix(blk + "attn_output", hidden, q, 2.0)
        if spec.get("bias"):
            vector(blk + "attn_q.bias", q, 0.5)
            vector(blk + "attn_k.bias", kv, 0.5)
            vector(blk + "attn_v.bias", kv, 0.5)
        if spec.get("out_bias"):
            vector(blk + "attn_output.bias", hidden, 0.5)
        if spec.get("sinks"):
            vector(blk + "attn_sinks.weight", spec["heads"], 2.0, 1.0)
        if gemma:
            norm(blk + "post_attention_norm", 12.0)
            norm(blk + "post_ffw_norm", 12.0)
        norm(blk + "ffn_norm")
        matrix(blk + "ffn_gate", spec["ffn"], hidden, 1.5)
        matrix(blk + "ffn_up", spec["ffn"], hidden, 1.5)
        matrix(blk + "ffn_down", hidden, spec["ffn"], 2.0)
    norm("output_norm")
    if not spec["tied"]:
        matrix("output", vocab(), hidden, 3.0)
    return out


# ---- storage types --------------------------------------------------------------------------------------------------


def encode_plain(values, kind):
    """-> (bytes, values as stored)."""
    if kind == "F32":
        return values.tobytes(), values
    if kind == "F16":
        data = struct.pack(f"<{len(values)}e", *values)
        return data, array.array("f", struct.unpack(f"<{len(values)}e", data))
    bits = struct.unpack(f"<{len(values)}I", values.tobytes())
    rounded = [(b + 0x7FFF + ((b >> 16) & 1)) >> 16 for b in bits]  # to nearest even; no NaNs here
    return struct.pack(f"<{len(rounded)}H", *rounded), array.array("f", struct.pack(f"<{len(rounded)}I", *[r << 16 for r in rounded]))


E4M3_VALUES = [(8 + m) * 2.0 ** (e - 10) if e else m * 2.0**-9 for e in range(16) for m in range(8)][:127]  # of codes 0 .. 0x7e


def to_e4m3(value):
    """The code of the nearest value, of two as near the even one; beyond 448 that of 448."""
    size = min(abs(value), 448.0)
    above = bisect.bisect_left(E4M3_VALUES, size)
    below = max(above - 1, 0)
    far, near = E4M3_VALUES[above] - size, size - E4M3_VALUES[below]
    code = above if far < near or (far == near and above % 2 == 0) else below
    return code | (0x80 if math.copysign(1.0, value) < 0 else 0)


def encode_e4m3(values, rows, kind):
    """-> (bytes, values as stored, bytes of the scales)."""
    groups = rows if FP8[kind]["rows"] else 1
    size = len(values) // groups
    largest = [max(abs(v) for v in values[g * size:(g + 1) * size]) for g in range(groups)]
    data, scales = encode_plain(array.array("f", [a / 448 for a in largest]), FP8[kind]["scales"])
    quotients = array.array("f", [v / scales[i // size] for i, v in enumerate(values)])
    codes = bytes(to_e4m3(q) for q in quotients)
    stored = [math.copysign(E4M3_VALUES[c & 0x7F], 0x7F - c) * scales[i // size] for i, c in enumerate(codes)]
    return codes, array.array("f", stored), data


def encode(values, kind):
    return ggml_blocks.encode(values, kind) if kind in ggml_blocks.BLOCKS else encode_plain(values, kind)


def storage_of(name, shape, model):
    _, form, matrices, embedding = model
    others = FP8[matrices]["others"] if matrices in FP8 else matrices
    if len(shape) == 1:
        return "F32" if form == "gguf" else others
    if matrices in MIXES:
        return MIXES[matrices][max((part for part in MIXES[matrices] if name.startswith(part)), key=len)]
    return embedding if name in ("token_embd.weight", "output.weight") else matrices


def stored_weights(model, scales=None):
    """Canonical name -> (shape, storage, bytes, values as stored) of a model of MODELS; `scales` gets the bytes of those by name."""
    out = {}
    for name, (shape, values) in weights(FAMILIES[model[0]]).items():
        kind = storage_of(name, shape, model)
        if kind in FP8:
            data, stored, own = encode_e4m3(values, shape[0], kind)
            out[name] = (shape, "F8_E4M3", data, stored)
            if scales is not None:
                scales[name] = own
        else:
            out[name] = (shape, kind) + encode(values, kind)
    return out


# ---- the tokenizer: 256 bytes, ten merges, three special tokens -----------------------------------------------------


def byte_alphabet():
    """GPT-2's bytes_to_unicode: printable bytes stand for themselves, the others for U+0100 and up."""
    plain = list(range(ord("!"), ord("~") + 1)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    extra = 0
    table = []
    for b in range(256):
        if b in plain:
            table.append(chr(b))
        else:
            table.append(chr(256 + extra))
            extra += 1
    return table


def tokens():
    return byte_alphabet() + [m.replace(" ", "") for m in MERGES] + SPECIALS


def tokenizer_json():
    names = tokens()
    special = len(names) - len(SPECIALS)
    added = [dict(id=special + i, content=s, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
             for i, s in enumerate(SPECIALS)]
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    return dict(version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=None, pre_tokenizer=level,
                post_processor=level, decoder=level,
                model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None,
                           fuse_unk=False, byte_fallback=False, vocab={t: i for i, t in enumerate(names)}, merges=MERGES))


# ---- Hugging Face folders -------------------------------------------------------------------------------------------

HF_NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
            "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
GEMMA_NAMES = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
               "post_ffw_norm": "post_feedforward_layernorm"}
HF_TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}


def hf_name(name, spec):
    if name in HF_TOP:
        return HF_TOP[name]
    _, n, op, kind = name.split(".")
    if op == "attn_sinks":
        return f"model.layers.{n}.self_attn.sinks"
    names = HF_NAMES | GEMMA_NAMES if spec["family"] == "gemma2" else HF_NAMES
    return f"model.layers.{n}.{names[op]}.{kind}"


def hf_config(spec, torch_dtype, quantization=None):
    family = spec["family"]
    config = dict(architectures=[{"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "mistral": "MistralForCausalLM",
                                  "gemma2": "Gemma2ForCausalLM", "granite_swa": "GraniteSWAForCausalLM"}[family]],
                  model_type=family, hidden_size=spec["hidden"], num_hidden_layers=LAYERS, num_attention_heads=spec["heads"],
                  num_key_value_heads=spec["kv"], intermediate_size=spec["ffn"], vocab_size=vocab(),
                  max_position_embeddings=CONTEXT, rms_norm_eps=EPS, rope_theta=spec.get("theta", 10000.0), hidden_act="silu",
                  tie_word_embeddings=spec["tied"], torch_dtype=torch_dtype, bos_token_id=None, eos_token_id=vocab() - 1,
                  pad_token_id=vocab() - 3, rope_scaling=spec.get("rope"))
    if family == "llama":
        config.update(attention_bias=bool(spec.get("bias")), mlp_bias=False, head_dim=spec["head_dim"])
    elif family == "mistral":
        config.update(head_dim=spec["head_dim"], sliding_window=spec["window"])
    elif family == "qwen2":
        window = spec.get("window")
        config.update(use_sliding_window=window is not None, sliding_window=window, head_dim=spec["head_dim"])
        if window:
            config.update(max_window_layers=0)  # the first layer that has it
    elif family == "gemma2":
        config.pop("hidden_act")
        config.update(head_dim=spec["head_dim"], sliding_window=spec["window"], hidden_activation="gelu_pytorch_tanh",
                      query_pre_attn_scalar=spec["scalar"], attn_logit_softcapping=spec["caps"][0], final_logit_softcapping=spec["caps"][1])
    elif family == "granite_swa":
        names = ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling")
        config.update(zip(names, spec["multipliers"]), head_dim=spec["head_dim"], sliding_window=spec["window"],
                      layer_rope_theta=spec["thetas"])
    if quantization:
        config.update(quantization_config=quantization)
    if "partial" in spec:
        config.update(partial_rotary_factor=spec["partial"])
    return config


def write_safetensors(path, entries):
    """entries: (name, shape, storage, bytes)."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, kind, data in entries:
        header[name] = dict(dtype=kind, shape=shape, data_offsets=[offset, offset + len(data)])
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for entry in entries:
            file.write(entry[3])


def write_hf(folder, model):
    spec = FAMILIES[model[0]]
    os.makedirs(folder, exist_ok=True)

    def side(name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, indent=1)

    fp8 = FP8.get(model[2])
    others = fp8["others"] if fp8 else model[2]
    side("config.json", hf_config(spec, {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[others], fp8 and fp8["config"]))
    side("generation_config.json", dict(eos_token_id=vocab() - 1, pad_token_id=vocab() - 3))
    side("tokenizer.json", tokenizer_json())
    side("tokenizer_config.json", dict(tokenizer_class="PreTrainedTokenizerFast", eos_token=SPECIALS[2], pad_token=SPECIALS[0],
                                       add_bos_token=False, clean_up_tokenization_spaces=False, chat_template=TEMPLATE))
    scales = {}
    entries = [(hf_name(name, spec), shape, kind, data) for name, (shape, kind, data, _) in stored_weights(model, scales).items()]
    for name, data in scales.items():
        shape = [entry[1][0] for entry in entries if entry[0] == hf_name(name, spec)] + [1]
        entries.append((hf_name(name, spec) + "_scale", shape if fp8["rows"] else [], fp8["scales"], data))
    if model[1] == "hf":
        write_safetensors(os.path.join(folder, "model.safetensors"), entries)
        return
    half, where = len(entries) // 2, {}
    for i, part in enumerate((entries[:half], entries[half:])):
        name = f"model-0000{i + 1}-of-00002.safetensors"
        write_safetensors(os.path.join(folder, name), part)
        where.update({entry[0]: name for entry in part})
    side("model.safetensors.index.json", dict(metadata=dict(total_size=sum(len(e[3]) for e in entries)), weight_map=where))


# ---- GGUF -----------------------------------------------------------------------------------------------------------

GGUF_TYPES = {"F32": 0, "F16": 1, "BF16": 30} | {kind: number for kind, (_, number) in ggml_blocks.BLOCKS.items()}
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(kind, value):
    if kind == STRING:
        return gguf_string(value)
    if isinstance(kind, tuple):
        return struct.pack("<IQ", kind[1], len(value)) + b"".join(gguf_value(kind[1], v) for v in value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def interleave(values, rows, cols, dim):
    """q and k rows of a llama GGUF: halves [0, d/2) and [d/2, d) of each head interleaved (llama.cpp's permute)."""
    out = array.array("f")
    for start in range(0, rows, dim):
        for pair in range(dim // 2):
            for half in (0, 1):
                row = start + half * (dim // 2) + pair
                out.extend(values[row * cols:(row + 1) * cols])
    return out


def rope_factors(rope, theta, dim):
    """What llama.cpp's converter stores as rope_freqs.weight for llama3 scaling."""
    factors = []
    low, high = (rope["original_max_position_embeddings"] / rope[k] for k in ("low_freq_factor", "high_freq_factor"))
    for i in range(0, dim, 2):
        length = 2 * math.pi * theta ** (i / dim)
        if length < high:
            factors.append(1.0)
        elif length > low:
            factors.append(rope["factor"])
        else:
            smooth = (rope["original_max_position_embeddings"] / length - rope["low_freq_factor"]) / (
                rope["high_freq_factor"] - rope["low_freq_factor"])
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return array.array("f", factors)


def gguf_metadata(spec, name):
    arch, dim = (spec["family"] if spec["family"] in ("qwen2", "gemma2") else "llama"), head_dim(spec)
    pairs = [("general.architecture", STRING, arch), ("general.name", STRING, name)]
    pairs += [(f"{arch}.{k}", U32, v) for k, v in (
        ("block_count", LAYERS), ("context_length", CONTEXT), ("embedding_length", spec["hidden"]),
        ("feed_forward_length", spec["ffn"]), ("attention.head_count", spec["heads"]), ("attention.head_count_kv", spec["kv"]),
        ("attention.key_length", dim), ("attention.value_length", dim), ("rope.dimension_count", dim), ("vocab_size", vocab()))]
    pairs += [(f"{arch}.rope.freq_base", F32, spec.get("theta", 10000.0)), (f"{arch}.attention.layer_norm_rms_epsilon", F32, EPS)]
    if spec.get("rope", {}).get("rope_type") == "linear":
        pairs += [(f"{arch}.rope.scaling.type", STRING, "linear"), (f"{arch}.rope.scaling.factor", F32, spec["rope"]["factor"])]
    if arch == "gemma2":
        pairs += [("gemma2.attention.sliding_window", U32, spec["window"]), ("gemma2.attn_logit_softcapping", F32, spec["caps"][0]),
                  ("gemma2.final_logit_softcapping", F32, spec["caps"][1])]
    names = tokens()
    pairs += [("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, "gpt-2"),
              ("tokenizer.ggml.tokens", (ARRAY, STRING), names),
              ("tokenizer.ggml.token_type", (ARRAY, I32), [1] * (len(names) - len(SPECIALS)) + [3] * len(SPECIALS)),
              ("tokenizer.ggml.merges", (ARRAY, STRING), MERGES),
              ("tokenizer.ggml.eos_token_id", U32, vocab() - 1), ("tokenizer.ggml.padding_token_id", U32, vocab() - 3),
              ("tokenizer.ggml.add_bos_token", BOOL, False), ("tokenizer.chat_template", STRING, TEMPLATE)]
    return pairs


def write_gguf(path, name, model):
    spec = FAMILIES[model[0]]
    tensors = []
    for key, (shape, values) in weights(spec).items():
        kind = storage_of(key, shape, model)
        if spec["family"] not in ("qwen2", "gemma2") and key.split(".")[-2] in ("attn_q", "attn_k"):
            values = interleave(values, shape[0], shape[1] if len(shape) > 1 else 1, head_dim(spec))
        if spec["family"] == "gemma2" and key.endswith("_norm.weight"):
            values = array.array("f", (1.0 + v for v in values))  # as llama.cpp's converter stores it
        tensors.append((key, shape, kind, encode(values, kind)[0]))
    if spec.get("rope", {}).get("rope_type") == "llama3":
        factors = rope_factors(spec["rope"], spec.get("theta", 10000.0), head_dim(spec))
        tensors.append(("rope_freqs.weight", [len(factors)], "F32", factors.tobytes()))
    pairs = gguf_metadata(spec, name)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for key, kind, value in pairs:
        head += gguf_string(key) + struct.pack("<I", ARRAY if isinstance(kind, tuple) else kind) + gguf_value(kind, value)
    offset = 0
    for key, shape, kind, data in tensors:
        head += gguf_string(key) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", GGUF_TYPES[kind], offset)
        offset += len(data) + -len(data) % 32
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for *_, data in tensors:
            file.write(data + bytes(-len(data) % 32))


def write(folder, name):
    model = (MODELS | SHAPES)[name]
    path = os.path.join(folder, name)
    if model[1] == "gguf":
        path += ".gguf"
        write_gguf(path, name, model)
    else:
        write_hf(path, model)
    return path


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: make-tiny-models.py OUT_DIR [NAME...]; names: " + " ".join(MODELS | SHAPES))
    os.makedirs(sys.argv[1], exist_ok=True)
    names = sys.argv[2:] or list(MODELS)
    for name in [*MODELS, *SHAPES] if names == ["all"] else names:
        print(write(sys.argv[1], name), flush=True)


if __name__ == "__main__":
    main()
