#!/usr/bin/env python3
"""The operations of a prompt, one by one: llmc's launches beside torch's kernels (cuBLAS, cuDNN, flash) on the same shapes.

  peer_ops.py EXE [--tokens 128,256,512,1024,2048,8192] [--rounds 3]
EXE is a package of the shape of Llama-3.1-8B in bf16. llmc's time of an operation is the median over the layers of a whole step
(EXE bench --profile: CUDA events between the launches of a real step, weights of 32 layers in turn); what it fuses (gate with up
and the activation, sums with the residual) counts as part of the product. torch's is the product alone, in a CUDA graph over as
many weights as exceed the card's L2 cache; of attention the faster of cuDNN and flash. The two take turns; of each the median of
the rounds counts. One line of JSON for each number of tokens, the last line has the ratios (more than 1: llmc is faster).
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

HIDDEN, FFN, HEADS, KV_HEADS, DIM = 4096, 14336, 32, 8, 128
PRODUCTS = {"attn_qkv": (HIDDEN + 2 * KV_HEADS * DIM, HIDDEN), "attn_residual": (HIDDEN, HIDDEN), "ffn_act": (2 * FFN, HIDDEN),
            "ffn_residual": (HIDDEN, FFN)}
L2_BYTES = 60 << 20


def ours(exe, tokens, file):
    """Seconds of each operation."""
    subprocess.run([exe, "bench", f"--profile={file}", "--prompt", str(tokens), "--repeat", "5"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=120)
    with open(file, encoding="utf-8") as text:
        step = next(s for s in json.load(text)["steps"] if s["tokens"] == tokens and s["context"] == tokens)
    times = {}
    for launch in step["launches"]:
        if launch["layer"] >= 0:
            times.setdefault(launch["op"].split(".", 2)[2], []).append(launch["seconds"])
    return {op: statistics.median(seconds) for op, seconds in times.items() if op in PRODUCTS or op == "attn"}


def graph_seconds(calls):
    """Of one of `calls` on average."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / len(calls))
    return statistics.median(times)


def product_seconds(tokens, rows, columns):
    count = max(4, math.ceil(2 * L2_BYTES / (2 * rows * columns)))
    weights = [torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * 0.02 for _ in range(count)]
    x = torch.randn(tokens, columns, device="cuda", dtype=torch.bfloat16)
    return graph_seconds([lambda w=w: F.linear(x, w) for w in weights])


def attention_seconds(tokens):
    made = lambda heads: torch.randn(1, heads, tokens, DIM, device="cuda", dtype=torch.bfloat16)
    q, k, v = made(HEADS), made(KV_HEADS), made(KV_HEADS)
    best = {}
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
        try:
            with sdpa_kernel(backend):
                call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                best[name] = graph_seconds([call] * 4)
        except RuntimeError:
            continue
    return min(best.values())


def flops(op, tokens):
    if op == "attn":
        return 2 * HEADS * DIM * tokens * (tokens + 1)
    return 2 * tokens * math.prod(PRODUCTS[op])


def measure(exe, tokens, rounds, file):
    samples = {}
    for _ in range(rounds):
        for op, seconds in ours(exe, tokens, file).items():
            samples.setdefault(op, ([], []))[0].append(seconds)
        for op in samples:
            samples[op][1].append(attention_seconds(tokens) if op == "attn" else product_seconds(tokens, *PRODUCTS[op]))
        torch.cuda.empty_cache()
    result = {}
    for op, (mine, theirs) in samples.items():
        a, b = statistics.median(mine), statistics.median(theirs)
        result[op] = {"us": round(1e6 * a, 1), "peer_us": round(1e6 * b, 1), "tflop_s": round(flops(op, tokens) / a * 1e-12, 1),
                      "peer_tflop_s": round(flops(op, tokens) / b * 1e-12, 1), "ratio": round(b / a, 3)}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("--tokens", default="128,256,512,1024,2048,8192")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for tokens in map(int, args.tokens.split(",")):
            found[tokens] = measure(args.exe, tokens, args.rounds, os.path.join(folder, "profile.json"))
            print(json.dumps({"tokens": tokens, **found[tokens]}), flush=True)
    products = [r["ratio"] for ops in found.values() for op, r in ops.items() if op != "attn"]
    print(json.dumps({"card": torch.cuda.get_device_name(), "torch": torch.__version__,
                      "products": {"geometric_mean": round(statistics.geometric_mean(products), 3), "least": min(products)},
                      "attention": {tokens: ops["attn"]["ratio"] for tokens, ops in found.items()}}))


if __name__ == "__main__":
    main()
