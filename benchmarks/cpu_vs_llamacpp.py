#!/usr/bin/env python3
"""llmc and llama.cpp on this machine's CPU, case by case; cpu_vs_llamacpp.sh makes what it needs. The last line is one JSON object.

Usage: cpu_vs_llamacpp.py --peer BIN_DIR --case NAME:EXE:MODEL.gguf:THREADS:PROMPT:GEN[:FLAGS] [--case ...] [--rounds N] [--peer-avx512 BIN_DIR]

Every round runs the two of a case one after the other, so that both meet the same state of the machine; figures are medians over the
rounds. The peer decodes behind as many tokens as llmc does (-d), loads its weights into huge pages (GLIBC_TUNABLES, -lm none), which is its
fastest way here, and runs once with and once without flash attention: of each figure the better counts. FLAGS "batch": llmc alone, 16
sequences beside one. With --peer-avx512 (a CPU with AMX) prefill_ratio is against that build.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

median = statistics.median


def cpu_name():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")


def output(command, **environment):
    result = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: exit {result.returncode}\n{result.stderr[-2000:]}")
    return result.stdout


def ours(case, *flags):
    return json.loads(output([case["exe"], "bench", f"--threads={case['threads']}", "--repeat=1", *flags]))


def peer(folder, case, what):
    """Tokens/s of the faster of two attention kernels: {"prefill", "decode"}, those in `what`."""
    best = {}
    for attention in ("off", "on"):
        runs = []
        if "prefill" in what:
            runs.append(("prefill", ["-p", str(case["prompt"]), "-n", "0"]))
        if "decode" in what:
            runs.append(("decode", ["-p", "0", "-n", str(case["gen"]), "-d", str(case["prompt"])]))
        for name, flags in runs:
            rows = json.loads(output([f"{folder}/llama-bench", "-m", case["model"], "-t", str(case["threads"]), "-r", "1", "-fa", attention,
                                      "-lm", "none", "-o", "json", *flags], GLIBC_TUNABLES="glibc.malloc.hugetlb=1"))
            best[name] = max(best.get(name, 0), rows[0]["avg_ts"])
    return best


def spread(values):
    return {"median": round(median(values), 1), "least": round(min(values), 1), "most": round(max(values), 1)}


def measure(case, args):
    bound = ours(case, "--roofline")
    if "batch" in case["flags"]:
        one, many = [], []
        for _ in range(args.rounds):
            runs = ours(case, "--batch=1,16", f"--prompt={case['prompt']}", f"--gen={case['gen']}")["batches"]
            one.append(runs[0]["decode_tokens_per_second"])
            many.append(runs[1]["decode_tokens_per_second"])
        return {"decode_1": spread(one), "decode_16": spread(many), "ratio_16": round(median(many) / median(one), 2)}
    sums = {"prefill": [], "decode": [], "peer_prefill": [], "peer_decode": [], "peer_avx512_prefill": []}
    for i in range(args.rounds):
        print(f"{case['name']}: round {i + 1} of {args.rounds}", file=sys.stderr, flush=True)
        run = ours(case, f"--prompt={case['prompt']}", f"--gen={case['gen']}")
        sums["prefill"].append(run["prefill_tokens_per_second"])
        sums["decode"].append(run["decode_tokens_per_second"])
        for name, value in peer(args.peer, case, ("prefill", "decode") if case["gen"] else ("prefill",)).items():
            sums["peer_" + name].append(value)
        if args.peer_avx512:
            sums["peer_avx512_prefill"].append(peer(args.peer_avx512, case, ("prefill",))["prefill"])
    against = sums["peer_avx512_prefill"] or sums["peer_prefill"]
    result = {"isa": bound["isa"], "threads": case["threads"], "prompt": case["prompt"], "gen": case["gen"],
              "prefill_ratio": round(median(sums["prefill"]) / median(against), 3)}
    if case["gen"]:
        result["decode_ratio"] = round(median(sums["decode"]) / median(sums["peer_decode"]), 3)
        result["weights_bytes"] = bound["weights_bytes"]
        result["read_gb_per_second"] = round(bound["read_bytes_per_second"] / 1e9, 1)
        result["decode_of_bandwidth"] = round(median(sums["decode"]) / bound["tokens_per_second_bound"], 3)
    return result | {key: spread(values) for key, values in sums.items() if values and (case["gen"] or "decode" not in key)}


def parse_case(text):
    name, exe, model, threads, prompt, gen, *flags = text.split(":")
    return {"name": name, "exe": os.path.abspath(exe), "model": model, "threads": int(threads), "prompt": int(prompt), "gen": int(gen), "flags": flags}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--peer-avx512")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", action="append", type=parse_case, required=True)
    args = parser.parse_args()
    result = {"cpu": cpu_name(), "cores": os.cpu_count(), "rounds": args.rounds,
              "peer": "llama.cpp of llama-cpp-python 0.3.36, clang-22, native, no OpenMP; huge pages, the better of -fa on and off", "cases": {}}
    for case in args.case:
        figures = result["cases"][case["name"]] = measure(case, args)
        print(f"{case['name']}: " + ", ".join(f"{key} {value['median'] if isinstance(value, dict) else value}" for key, value in figures.items()), flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
