#!/usr/bin/env python3
"""Model folders whose products and attention have shapes worth measuring one by one (benchmarks/device/peer_ops.py).

  make-op-shapes.py OUT [--seed 1]
OUT/NAME has a config.json and no weights (llmc compile --weights=random:1): Llama-3.2-1B, Llama-3.1-8B, one of the eight shards
of Llama-3.1-70B (its heads, KV head and columns of the feed-forward), the second also with e4m3 weights, and three shapes drawn at
random, which no schedule was chosen for. Few layers and a small vocabulary: the time of an op does not depend on them, as long as the weights of all layers
exceed the L2 cache.
"""
import argparse
import json
import os
import random

L2_BYTES = 60e6


def config(hidden, ffn, heads, kv_heads, head_dim, fp8=False):
    smallest = (1 if fp8 else 2) * hidden * min(heads * head_dim, ffn)  # bytes of a layer's least matrix
    quantization = {"quantization_config": {"quant_method": "fbgemm_fp8"}} if fp8 else {}
    return {**quantization, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": hidden,
            "intermediate_size": ffn, "num_hidden_layers": max(4, int(-(-1.1 * L2_BYTES // smallest))), "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "head_dim": head_dim, "vocab_size": 1024, "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1}


def drawn(rng):
    head_dim = rng.choice([64, 96, 128])
    kv_heads = rng.randint(1, 8)
    heads = kv_heads * rng.randint(2, 32 // kv_heads)
    return config(32 * rng.randint(48, 224), 32 * rng.randint(96, 448), heads, kv_heads, head_dim)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    shapes = {"1b": config(2048, 8192, 32, 8, 64), "8b": config(4096, 14336, 32, 8, 128), "8b-fp8": config(4096, 14336, 32, 8, 128, fp8=True),
              "70b-tp8": config(8192, 3584, 8, 1, 128)}
    for i in range(3):
        shapes[f"random-{i}"] = drawn(rng)
    for name, shape in shapes.items():
        folder = os.path.join(args.out, name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(shape, file, indent=1)


if __name__ == "__main__":
    main()
