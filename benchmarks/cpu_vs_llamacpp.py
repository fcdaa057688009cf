#!/usr/bin/env python3
"""Medians and ratios of the samples that cpu_vs_llamacpp.sh took; prints one JSON line.

Usage: cpu_vs_llamacpp.py SAMPLES_DIR MODEL THREADS PROMPT GEN
SAMPLES_DIR has llmc.N.json (EXE bench), peer.N.json and, with AMX, peer_avx512.N.json (llama-bench -o json).
"""
import glob
import json
import os
import statistics
import sys

folder, model, threads, prompt, gen = sys.argv[1:]


def load(name):
    out = []
    for path in sorted(glob.glob(os.path.join(folder, f"{name}.[0-9]*.json"))):
        with open(path, encoding="utf-8") as file:
            out.append(json.load(file))
    return out


def peer_figures(name):
    """(prefill, decode) tokens/s of each round."""
    prefill, decode = [], []
    for rows in load(name):
        prefill += [row["avg_ts"] for row in rows if row["n_prompt"] and not row["n_gen"]]
        decode += [row["avg_ts"] for row in rows if row["n_gen"] and not row["n_prompt"]]
    return prefill, decode


def rounded(values):
    return [round(value, 1) for value in values]


def cpu_name():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")


ours = load("llmc")
prefill = [run["prefill_tokens_per_second"] for run in ours]
decode = [run["decode_tokens_per_second"] for run in ours]
peer_prefill, peer_decode = peer_figures("peer")
result = {"decode_ratio": 0.0, "prefill_ratio": 0.0, "model": os.path.basename(model), "cpu": cpu_name(), "isa": ours[0]["isa"],
          "threads": int(threads), "prompt": int(prompt), "gen": int(gen), "rounds": len(ours),
          "llmc": {"prefill": rounded(prefill), "decode": rounded(decode)},
          "peer": {"prefill": rounded(peer_prefill), "decode": rounded(peer_decode),
                   "build": "llama.cpp of llama-cpp-python 0.3.36 (" + load("peer")[0][0]["build_commit"] + "), clang-22, native, no OpenMP"}}
median = statistics.median
result["decode_ratio"] = round(median(decode) / median(peer_decode), 3)
result["prefill_ratio"] = round(median(prefill) / median(peer_prefill), 3)
avx512_prefill, avx512_decode = peer_figures("peer_avx512")
if avx512_prefill:
    result["prefill_ratio_native"] = result["prefill_ratio"]
    result["prefill_ratio"] = round(median(prefill) / median(avx512_prefill), 3)
    result["peer_avx512"] = {"prefill": rounded(avx512_prefill), "decode": rounded(avx512_decode)}
print(f"prefill: llmc {median(prefill):.0f} tokens/s, peer {median(avx512_prefill or peer_prefill):.0f}; "
      f"decode: llmc {median(decode):.1f} tokens/s, peer {median(peer_decode):.1f}")
print(json.dumps(result))
