#!/usr/bin/env python3
"""The operations of a prompt, one by one: llmc's launches beside torch's kernels (cuBLAS; cuDNN, flash) on the same shapes.

  peer_ops.py EXE... [--products 128,256,512,1024,2048,8192] [--attention 512,2048,8192,16384] [--rounds 2]
EXE is a package of bf16 or e4m3 weights of which EXE.json is the config.json (scripts/make-op-shapes.py). Both sides are measured alike: a
CUDA graph of the op of all layers, each with a weight of its own (together they exceed the card's L2 cache), its second replay after
a rest of 8 ms, the median of bursts (EXE bench --profile --bursts): as many launches on both sides, since the card's clock falls
within milliseconds. What llmc fuses (gate with up and the activation, sums with the residual) counts as part of the product;
torch's is the product alone. Of e4m3 weights it is torch._scaled_mm with scales of rows, the faster of its two ways to add; the
rounding of activations counts on neither side. Of attention (causal) the fastest of torch's cuDNN and flash and, where python3 has vllm, its
FlashAttention 3.
The two take turns; of each the median of the rounds counts. One line of JSON for each package and number of tokens, the last line
has the ratios (more than 1: llmc is faster).
"""
import argparse
import json
import math
import os
import statistics
import tempfile
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import bursts

REST_S = 0.008
BURSTS = 5


class Shape:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            c = json.load(file)
        self.fp8 = "quantization_config" in c
        self.layers = c["num_hidden_layers"]
        self.heads, self.kv_heads, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        hidden, ffn, wide = c["hidden_size"], c["intermediate_size"], self.heads * self.dim
        # Rows (outputs) and columns of each.
        self.products = {"attn_qkv": (wide + 2 * self.kv_heads * self.dim, hidden), "attn_residual": (hidden, wide),
                         "ffn_act": (2 * ffn, hidden), "ffn_residual": (hidden, ffn)}

    def flops(self, op, tokens):
        if op == "attn":
            return 2 * self.heads * self.dim * tokens * (tokens + 1)
        return 2 * tokens * math.prod(self.products[op])


def ours(exe, shape, tokens, file):
    """Seconds of each operation."""
    times = {}
    for op, _, seconds in bursts.launches(exe, tokens, file):
        times.setdefault(op, []).append(seconds)
    return {op: statistics.median(seconds) for op, seconds in times.items() if op in shape.products or op == "attn"}


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
    for _ in range(BURSTS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        time.sleep(REST_S)
        graph.replay()
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / len(calls))
    return statistics.median(times)


def product_seconds(tokens, count, rows, columns):
    weights = [torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * 0.02 for _ in range(count)]
    x = torch.randn(tokens, columns, device="cuda", dtype=torch.bfloat16)
    return graph_seconds([lambda w=w: F.linear(x, w) for w in weights])


def fp8_product_seconds(tokens, count, rows, columns):
    """The same of e4m3 operands with a scale for each row of both."""
    made = lambda n: (torch.randn(n, columns, device="cuda") * 100).clamp(-448, 448).to(torch.float8_e4m3fn)
    weights, x = [made(rows) for _ in range(count)], made(tokens)
    ours, theirs = torch.rand(tokens, 1, device="cuda") + 0.5, torch.rand(1, rows, device="cuda") + 0.5
    return min(graph_seconds([lambda w=w: torch._scaled_mm(x, w.t(), ours, theirs, out_dtype=torch.bfloat16, use_fast_accum=fast)
                              for w in weights]) for fast in (False, True))


def flash_attention_3():
    """Its function, or None."""
    try:
        from vllm.vllm_flash_attn import flash_attn_varlen_func
    except ImportError:
        return None
    return flash_attn_varlen_func


FA3 = flash_attention_3()


def attention_seconds(shape, tokens):
    """(seconds, name) of the fastest."""
    made = lambda heads: torch.randn(1, heads, tokens, shape.dim, device="cuda", dtype=torch.bfloat16)
    inputs = [(made(shape.heads), made(shape.kv_heads), made(shape.kv_heads)) for _ in range(shape.layers)]
    best = {}
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
        try:
            with sdpa_kernel(backend):
                best[name] = graph_seconds([lambda x=x: F.scaled_dot_product_attention(*x, is_causal=True, enable_gqa=True) for x in inputs])
        except RuntimeError:
            continue
    if FA3:
        ends = torch.tensor([0, tokens], device="cuda", dtype=torch.int32)
        packed = [[x[0].transpose(0, 1).contiguous() for x in three] for three in inputs]
        best["fa3"] = graph_seconds([lambda x=x: FA3(*x, tokens, ends, tokens, cu_seqlens_k=ends, causal=True, fa_version=3) for x in packed])
    return min((seconds, name) for name, seconds in best.items())


def measure(exe, shape, tokens, rounds, ops, file):
    samples, peer = {op: ([], []) for op in ops}, {}
    for _ in range(rounds):
        for op, seconds in ours(exe, shape, tokens, file).items():
            if op in samples:
                samples[op][0].append(seconds)
        for op, (_, theirs) in samples.items():
            if op == "attn":
                seconds, peer[op] = attention_seconds(shape, tokens)
                theirs.append(seconds)
            else:
                seconds = fp8_product_seconds if shape.fp8 else product_seconds
                theirs.append(seconds(tokens, shape.layers, *shape.products[op]))
                peer[op] = "_scaled_mm" if shape.fp8 else "cublas"
        torch.cuda.empty_cache()
    result = {}
    for op, (mine, theirs) in samples.items():
        a, b = statistics.median(mine), statistics.median(theirs)
        tflop = shape.flops(op, tokens) * 1e-12
        result[op] = {"us": round(1e6 * a, 1), "peer_us": round(1e6 * b, 1), "tflop_s": round(tflop / a, 1),
                      "peer_tflop_s": round(tflop / b, 1), "peer": peer[op], "ratio": round(b / a, 3)}
    return result


def counts(text):
    return [int(number) for number in text.split(",") if number]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe", nargs="+")
    parser.add_argument("--products", type=counts, default=[128, 256, 512, 1024, 2048, 8192], metavar="TOKENS")
    parser.add_argument("--attention", type=counts, default=[512, 2048, 8192, 16384], metavar="TOKENS")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    ratios = {"products": [], "fp8 products": [], "random products": [], "attention": []}
    with tempfile.TemporaryDirectory() as folder:
        for exe in map(os.path.abspath, args.exe):
            name, shape = os.path.basename(exe), Shape(exe + ".json")
            drawn = name.startswith("random")
            for tokens in sorted({*args.products, *args.attention}):
                ops = [op for op in shape.products if tokens in args.products] + (["attn"] if tokens in args.attention else [])
                found = measure(exe, shape, tokens, args.rounds, ops, os.path.join(folder, "profile.json"))
                print(json.dumps({"shape": name, "tokens": tokens, **found}), flush=True)
                for op, figures in found.items():
                    products = "random products" if drawn else "fp8 products" if shape.fp8 else "products"
                    ratios["attention" if op == "attn" else products].append(figures["ratio"])
    print(json.dumps({"card": torch.cuda.get_device_name(), "torch": torch.__version__,
                      **{kind: {"geometric_mean": round(statistics.geometric_mean(r), 3), "least": min(r), "count": len(r)}
                         for kind, r in ratios.items() if r}}))


if __name__ == "__main__":
    main()
