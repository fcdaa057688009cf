#!/usr/bin/env python3
"""torch on the shape of Llama-3.1-8B (or Llama-3.2-1B), bf16, random weights: the peer of llmc on a GPU.

  peer_torch.py [--shape 8b|1b|small] [--seconds N] [--batches 1,16,64] [--context 1024] [--prompt 8192] [--modes MODE,...]
A plain model with a static KV cache, written as one would for torch.compile (fused qkv and gate/up matrices, in-place cache).
Prints one JSON object a line, each as soon as it is measured:
  {"what": "decode", "mode": MODE, "batch": B, "context": C, "ms": of a step, "tok_s": ..., "compile_s": ...}
  {"what": "prefill", "mode": MODE, "tokens": N, "ms": ..., "tok_s": ...}
Modes: eager; layer-graph: the layer compiled, the whole step in one CUDA graph; reduce-overhead: torch.compile of the whole step,
with its CUDA graphs; max-autotune-graph: the layer compiled with max-autotune-no-cudagraphs, the whole step in one CUDA graph.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

DEVICE, TYPE = "cuda", torch.bfloat16
SHAPES = {"8b": dict(layers=32, hidden=4096, heads=32, kv=8, dim=128, ffn=14336, vocab=128256),
          "1b": dict(layers=16, hidden=2048, heads=32, kv=8, dim=64, ffn=8192, vocab=128256),
          "small": dict(layers=2, hidden=256, heads=4, kv=2, dim=64, ffn=512, vocab=1000)}  # to try the script
MODES = ("eager", "layer-graph", "reduce-overhead", "max-autotune-graph")


class Model:
    def __init__(self, shape):
        self.shape = shape
        made = lambda *size: torch.randn(*size, device=DEVICE, dtype=TYPE) * 0.02
        q, kv = shape["heads"] * shape["dim"], shape["kv"] * shape["dim"]
        ones = lambda: torch.ones(shape["hidden"], device=DEVICE, dtype=TYPE)
        self.embedding, self.head, self.norm = made(shape["vocab"], shape["hidden"]), made(shape["vocab"], shape["hidden"]), ones()
        self.layers = [dict(n1=ones(), n2=ones(), qkv=made(q + 2 * kv, shape["hidden"]), out=made(shape["hidden"], q),
                            gate_up=made(2 * shape["ffn"], shape["hidden"]), down=made(shape["hidden"], shape["ffn"]))
                       for _ in range(shape["layers"])]
        # Else reduce-overhead copies weights into its graph's buffers, and makes no graph of a step that writes to the cache.
        for tensor in (self.embedding, self.head, self.norm, *(t for layer in self.layers for t in layer.values())):
            torch._dynamo.mark_static_address(tensor, guard=False)
        self.frequencies = 1.0 / (500000 ** (torch.arange(0, shape["dim"], 2, device=DEVICE).float() / shape["dim"]))

    def cache(self, batch, length):
        size = (batch, self.shape["kv"], length, self.shape["dim"])
        cache = [(torch.zeros(size, device=DEVICE, dtype=TYPE), torch.zeros(size, device=DEVICE, dtype=TYPE)) for _ in self.layers]
        for pair in cache:
            for tensor in pair:
                torch._dynamo.mark_static_address(tensor, guard=False)
        return cache

    def angles(self, positions):
        angles = positions[:, None].float() * self.frequencies
        return angles.cos(), angles.sin()


def rms(x, weight):
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-5)


def rotate(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(TYPE)


def split(shape, x, layer, batch, tokens, cos, sin):
    """q [batch, heads, tokens, dim] and so on, rotated."""
    heads, kv, dim = shape["heads"], shape["kv"], shape["dim"]
    q, k, v = F.linear(rms(x, layer["n1"]), layer["qkv"]).split([heads * dim, kv * dim, kv * dim], -1)
    q, k, v = (t.view(batch, tokens, -1, dim).transpose(1, 2) for t in (q, k, v))
    return rotate(q, cos, sin), rotate(k, cos, sin), v


def feed_forward(x, layer):
    gate, up = F.linear(rms(x, layer["n2"]), layer["gate_up"]).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, layer["down"])


def decode_layer(shape, x, layer, keys, values, position, mask, cos, sin):
    batch = x.shape[0]
    q, k, v = split(shape, x, layer, batch, 1, cos, sin)
    keys.index_copy_(2, position, k)
    values.index_copy_(2, position, v)
    # The heads of a group stand where a sequence of queries would: they see the same keys, and every kernel takes this form.
    a = F.scaled_dot_product_attention(q.reshape(batch, shape["kv"], -1, shape["dim"]), keys, values, attn_mask=mask)
    x = x + F.linear(a.reshape(batch, -1), layer["out"])
    return feed_forward(x, layer)


def decode_step(model, layer_function, cache, ids, position):
    x = model.embedding[ids]
    cos, sin = model.angles(position)
    mask = (torch.arange(cache[0][0].shape[2], device=DEVICE) <= position)[None, None, None]
    for layer, (keys, values) in zip(model.layers, cache):
        x = layer_function(model.shape, x, layer, keys, values, position, mask, cos, sin)
    return F.linear(rms(x, model.norm), model.head).argmax(-1)


def prefill_layer(shape, x, layer, keys, values, cos, sin):
    tokens = x.shape[0]
    q, k, v = split(shape, x, layer, 1, tokens, cos, sin)
    keys[:, :, :tokens] = k
    values[:, :, :tokens] = v
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    x = x + F.linear(a.transpose(1, 2).reshape(tokens, -1), layer["out"])
    return feed_forward(x, layer)


def prefill(model, layer_function, cache, ids):
    x = model.embedding[ids]
    cos, sin = model.angles(torch.arange(ids.shape[0], device=DEVICE))
    for layer, (keys, values) in zip(model.layers, cache):
        x = layer_function(model.shape, x, layer, keys, values, cos, sin)
    return F.linear(rms(x[-1:], model.norm), model.head).argmax(-1)


def captured(step):
    """The step as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def milliseconds(step, rounds=5, least=0.2):
    """Median over rounds of the mean time of a call, by CUDA events."""
    step()
    torch.cuda.synchronize()
    start = time.monotonic()
    step()
    torch.cuda.synchronize()
    calls = max(1, min(100, int(least / max(time.monotonic() - start, 1e-6))))
    times = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls)
    return statistics.median(times)


def say(**values):
    print(json.dumps(values), flush=True)


class Peer:
    def __init__(self, args):
        self.args, self.deadline = args, time.monotonic() + args.seconds
        self.model = Model(SHAPES[args.shape])

    def enough(self, seconds, **what):
        if self.deadline - time.monotonic() >= seconds:
            return True
        say(**what, skipped="time budget")
        return False

    def measure(self, make, seconds, per_call, **what):
        """`make` gives the function to time; compiling is its part of the time."""
        if not self.enough(seconds, **what):
            return
        try:
            start = time.monotonic()
            step = make()
            step()
            torch.cuda.synchronize()
            compile_seconds = time.monotonic() - start
            ms = milliseconds(step)
            say(**what, ms=round(ms, 4), tok_s=round(per_call / ms * 1e3, 2), compile_s=round(compile_seconds, 1))
        except Exception as error:  # one mode that fails must not hide the others
            say(**what, error=f"{type(error).__name__}: {str(error)[:300]}")
        torch._dynamo.reset()
        torch.cuda.empty_cache()

    def decode(self, batch, mode):
        context = self.args.context
        cache = self.model.cache(batch, context + 64)
        ids = torch.randint(self.model.embedding.shape[0], (batch,), device=DEVICE)
        position = torch.tensor([context], device=DEVICE)
        step = lambda layer: lambda: decode_step(self.model, layer, cache, ids, position)

        def make():
            if mode == "eager":
                return step(decode_layer)
            if mode == "layer-graph":
                return captured(step(torch.compile(decode_layer, fullgraph=True, dynamic=False)))
            if mode == "max-autotune-graph":
                return captured(step(torch.compile(decode_layer, fullgraph=True, dynamic=False, mode="max-autotune-no-cudagraphs")))
            whole = torch.compile(step(decode_layer), fullgraph=True, dynamic=False, mode="reduce-overhead")
            return whole

        least = {"eager": 5, "layer-graph": 20, "max-autotune-graph": 60, "reduce-overhead": 60}[mode]
        self.measure(make, least, batch, what="decode", mode=mode, batch=batch, context=context)

    def prefill(self, mode):
        tokens = self.args.prompt
        cache = self.model.cache(1, tokens)
        ids = torch.randint(self.model.embedding.shape[0], (tokens,), device=DEVICE)  # equal rows would take less power
        layer = prefill_layer if mode == "eager" else torch.compile(prefill_layer, fullgraph=True, dynamic=False)
        self.measure(lambda: lambda: prefill(self.model, layer, cache, ids), 5 if mode == "eager" else 25, tokens, what="prefill", mode=mode,
                     tokens=tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=420)
    parser.add_argument("--batches", default="1,16,64")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--prompt", type=int, default=8192)
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    parser.add_argument("--modes", default=",".join(MODES))
    args = parser.parse_args()
    batches, modes = [int(batch) for batch in args.batches.split(",")], args.modes.split(",")
    if unknown := set(modes) - set(MODES):
        parser.error(f"--modes: expected some of {', '.join(MODES)}, got {', '.join(sorted(unknown))}")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    with torch.no_grad():
        peer = Peer(args)
        say(what="about", torch=torch.__version__, card=torch.cuda.get_device_name(), cuda=torch.version.cuda)
        # Cheap modes of everything first, so that a short budget still gives a peer for each figure.
        for mode in MODES:
            if mode not in modes:
                continue
            for batch in batches:
                peer.decode(batch, mode)
            if mode in ("eager", "layer-graph"):
                peer.prefill("eager" if mode == "eager" else "compiled")


if __name__ == "__main__":
    main()
