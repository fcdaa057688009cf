#!/usr/bin/env python3
"""Times of products in every tile that a schedule may choose: kit, run, table (benchmarks/tune.sh says how)."""
import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile

import bursts

HERE = os.path.dirname(os.path.realpath(__file__))
ROWS = (128, 256, 512, 2048, 8192)  # kMeasuredRows of lib/Conversion/LMToTile/MeasuredTiles.h
ROUNDS = 2
SHAPES = ("1b", "8b", "70b-tp8")
RUNTIME = '#!/bin/sh\nexec "$(dirname "$0")/llmc-runtime" "$@" --package "$0"\n'
PRODUCTS = {"attn_qkv": "None", "attn_residual": "Residual", "ffn_act": "Gated", "ffn_residual": "Residual"}


def root():
    return os.path.dirname(os.path.dirname(HERE))


def find(script):
    return subprocess.run([os.path.join(root(), "scripts", script)], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def tiles(llmc):
    text = subprocess.run([llmc, "compile", "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
    found = re.search(r"--linear-tile[ =](\S+)", text)
    if not found:
        sys.exit(f"tune.sh: expected {llmc} to have --linear-tile, got none in its --help")
    return found[1].split("|")


def kit(args):
    llmc = find("find-llmc.sh")
    if os.path.exists(args.kit):
        sys.exit(f"tune.sh: {args.kit} exists; not touched")
    with tempfile.TemporaryDirectory() as folder:
        shapes, packages = os.path.join(folder, "shapes"), os.path.join(folder, "packages")
        os.mkdir(packages)
        subprocess.run([os.path.join(root(), "scripts/make-op-shapes.py"), shapes], check=True)
        stub = os.path.join(os.path.dirname(llmc), "llmc-runtime-stub")
        subprocess.run(["strip", "-o", os.path.join(packages, "llmc-runtime"), os.path.realpath(stub)], check=True)
        script = os.path.join(folder, "runtime")
        with open(script, "w", encoding="utf-8") as file:
            file.write(RUNTIME)
        os.chmod(script, 0o755)
        names = tiles(llmc)
        for number, (shape, tile) in enumerate((s, t) for s in SHAPES for t in names):
            print(f"{number + 1}/{len(SHAPES) * len(names)}: {shape} {tile}", flush=True)
            subprocess.run([llmc, "compile", os.path.join(shapes, shape), "--target=cuda:sm_90a", "--weights=random:1", "--random-storage=bf16",
                            f"--max-tokens-per-step={ROWS[-1]}", f"--linear-tile={tile}", f"--stub={script}", "-o",
                            os.path.join(packages, f"{shape}.{tile}")], check=True, stderr=subprocess.DEVNULL)
        os.makedirs(os.path.join(args.kit, "device"))
        with tarfile.open(os.path.join(args.kit, "packages.tar.xz"), "w:xz", preset=3) as tar:
            tar.add(packages, "packages")
    shutil.copy(os.path.join(root(), "benchmarks/tune.sh"), args.kit)
    for name in ("tune.py", "bursts.py"):
        shutil.copy(os.path.join(HERE, name), os.path.join(args.kit, "device"))


def measure(exe, tokens, file):
    """(operation, kernel) -> seconds."""
    times = {}
    for op, kernel, seconds in bursts.launches(exe, tokens, file):
        if op in PRODUCTS:
            times.setdefault((op, kernel), []).append(seconds)
    return {key: statistics.median(seconds) for key, seconds in times.items()}


def run(args):
    card = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip().splitlines()[0]
    samples = {}
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(os.path.join(args.kit, "packages.tar.xz")) as tar:
            tar.extractall(folder)
        packages = os.path.join(folder, "packages")
        names = sorted(x for x in os.listdir(packages) if x != "llmc-runtime")
        for number in range(args.rounds):
            for name in names:
                print(f"round {number + 1}/{args.rounds}: {name}", file=sys.stderr, flush=True)
                for tokens in ROWS:
                    for key, seconds in measure(os.path.join(packages, name), tokens, os.path.join(folder, "profile.json")).items():
                        samples.setdefault((*key, tokens), []).append(seconds)
    times = [{"op": op, "kernel": kernel, "tokens": tokens, "seconds": statistics.median(seconds)}
             for (op, kernel, tokens), seconds in sorted(samples.items())]
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump({"card": card, "date": datetime.date.today().isoformat(), "times": times}, file, indent=0)
    print(json.dumps({"card": card, "kernels": len(times)}))


def table(args):
    with open(args.times, encoding="utf-8") as file:
        found = json.load(file)
    rows = {}
    for time in found["times"]:
        # linear_bf16_bf16_nk_4096x6144_w256: k, columns of the result, tile.
        name = re.fullmatch(r"(?:linear|gated)_bf16_bf16_nk_(\d+)x(\d+)(?:_bf16)?(?:_residual)?(?:_normed)?_(w\d\w*)", time["kernel"])
        if not name:
            sys.exit(f"tune.sh: {args.times}: expected a kernel such as linear_bf16_bf16_nk_4096x6144_w256, got {time['kernel']!r}")
        key = (PRODUCTS[time["op"]], int(name[2]) // 16, int(name[1]), name[3])
        rows.setdefault(key, {})[time["tokens"]] = round(time["seconds"] * 1e9)
    with open(args.output, "w", encoding="utf-8") as file:
        file.write(f"// Written by benchmarks/tune.sh: {found['card']}, {found['date']}; nanoseconds of 128, 256, 512, 2,048 and 8,192 tokens.\n")
        for (epilogue, panels, k, tile), times in sorted(rows.items()):
            file.write(f'{{Epilogue::{epilogue}, {panels}, {k}, "{tile}", {{{", ".join(str(times.get(n, 0)) for n in ROWS)}}}}},\n')
    print(json.dumps({"card": found["card"], "products": len({key[:3] for key in rows}), "rows": len(rows), "file": args.output}))


def main():
    parser = argparse.ArgumentParser(prog="tune.sh", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("kit", help="compile every shape with every tile")
    command.add_argument("kit")
    command.set_defaults(run=kit)
    command = commands.add_parser("run", help="measure, on the GPU machine")
    command.add_argument("kit")
    command.add_argument("--out", default="times.json")
    command.add_argument("--rounds", type=int, default=ROUNDS)
    command.set_defaults(run=run)
    command = commands.add_parser("table", help="write the table that llmc is built with")
    command.add_argument("times")
    command.add_argument("--output", default=os.path.join(root(), "lib/Conversion/LMToTile/MeasuredH200.inc"))
    command.set_defaults(run=table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
