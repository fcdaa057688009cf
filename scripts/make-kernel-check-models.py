#!/usr/bin/env python3
"""Random model shapes for llmc-kernel-check: folders with only config.json, for --weights=random:SEED.

  make-kernel-check-models.py OUT_DIR COUNT SEED

Writes OUT_DIR/000-FAMILY-STORAGE, ... and OUT_DIR/list.txt with a line "FOLDER STORAGE" each; STORAGE is for --random-storage
(of fp8 bf16: there config.json asks for e4m3).
Hidden, ffn and vocabulary are no multiples of a tile (64 or 128 rows or columns): 16 times an odd number, or 32 times one where the
storage has blocks of 32, 256 times one where it has blocks of 256; odd. What attention takes and gives is heads * head_dim wide, which with heads of 64 and more is a multiple
of 64; rows that are no whole blocks of 256 get llmc's fallback of 32. Only the standard library; the same shapes everywhere.
"""
import json
import os
import random
import sys

HEAD_DIMS = [16, 48, 64, 64, 80, 96, 128, 128, 256]
GROUPS = [1, 2, 3, 5, 7, 8]
STORAGES = ["bf16", "f16", "f32", "q4_0", "q4_1", "q8_0", "q5_0", "q5_1", "iq4_nl", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "fp8"]
FAMILIES = ["llama", "llama", "qwen2", "mistral", "gemma2", "granite_swa"]
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "mistral": "MistralForCausalLM",
           "gemma2": "Gemma2ForCausalLM", "granite_swa": "GraniteSWAForCausalLM"}


def odd(rng, most):
    return 2 * rng.randrange(0, (most + 1) // 2) + 1


def shape(rng, storage):
    family = rng.choice(FAMILIES)
    head_dim, group = rng.choice(HEAD_DIMS), rng.choice(GROUPS)
    # The output projection's columns are heads * head_dim: whole blocks of a quantised storage.
    kv = rng.choice([n for n in (1, 2, 3, 4) if n == 1 or n * group * head_dim <= 2048])
    heads = kv * group
    unit = 16
    if "q" in storage:
        unit = 256 if storage.endswith(("_k", "_xs")) else 32
        if heads * head_dim % 32:
            kv, heads = kv * 2, heads * 2
    config = {
        "architectures": [CLASSES[family]],
        "model_type": family,
        "hidden_size": unit * odd(rng, 800 // unit),
        "intermediate_size": unit * odd(rng, 1600 // unit),
        "num_hidden_layers": rng.choice([1, 2]),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": head_dim,
        "vocab_size": 2 * rng.randrange(150, 2500) + 1,
        "max_position_embeddings": 2 * rng.randrange(150, 600) + 1,
        "rms_norm_eps": rng.choice([1e-5, 1e-6]),
        "rope_theta": rng.choice([1e4, 5e5]),
        "tie_word_embeddings": rng.random() < 0.5,
        "hidden_act": "silu",
    }
    if storage == "fp8":  # a GPU takes more than 128 columns
        config["quantization_config"] = {"quant_method": "fbgemm_fp8"}
        for key in ("hidden_size", "intermediate_size"):
            config[key] += 128
        config["num_key_value_heads"] = kv = kv + -(-144 // (group * head_dim))
        config["num_attention_heads"] = kv * group
    if family == "gemma2":
        config.update(hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=rng.choice([head_dim, 24]),
                      attn_logit_softcapping=rng.choice([1.5, 50.0]), sliding_window=odd(rng, 250))
    if family == "granite_swa":
        config.update(attention_multiplier=rng.choice([1.0, 0.25]) / head_dim ** 0.5, residual_multiplier=rng.choice([1.0, 0.22]),
                      embedding_multiplier=rng.choice([1.0, 12.0]), layer_rope_theta=rng.choice([None, [0, 1e4][:config["num_hidden_layers"]]]),
                      layer_types=["sliding_attention", "full_attention"][:config["num_hidden_layers"]], sliding_window=odd(rng, 250))
    if family == "llama":
        config["attention_bias"] = rng.random() < 0.25
    if family == "mistral":
        config["sliding_window"] = rng.choice([None, odd(rng, 40), odd(rng, 250)])
    return family, config


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    out, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    lines = []
    for i in range(count):
        rng = random.Random(seed * 1000003 + i)
        storage = STORAGES[i % len(STORAGES)]
        family, config = shape(rng, storage)
        folder = os.path.join(out, f"{i:03}-{family}-{storage}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file, indent=1)
            file.write("\n")
        lines.append(f"{os.path.basename(folder)} {'bf16' if storage == 'fp8' else storage}\n")
    with open(os.path.join(out, "list.txt"), "w") as file:
        file.writelines(lines)


if __name__ == "__main__":
    main()
