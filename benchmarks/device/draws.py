#!/usr/bin/env python3
"""Are drawn tokens distributed as they should be? First tokens over many seeds against the probabilities from the model's own logits.

Usage: draws.py EXE [SEEDS]      EXE: a compiled model (any device); SEEDS: draws of each setting (600)
Prints a line for each setting; exit 1 where a token comes up that the filters exclude, or where chi-square is beyond its 0.1 % quantile.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy

TEXT = b"In the beginning"
# flags, temperature, top-k, top-p, min-p
SETTINGS = [
    (["-t", "1.0"], 1.0, 0, 1.0, 0.0),
    (["-t", "0.7", "--top-k", "5"], 0.7, 5, 1.0, 0.0),
    (["-t", "1.3", "--top-p", "0.5"], 1.3, 0, 0.5, 0.0),
    (["-t", "1.0", "--min-p", "0.2"], 1.0, 0, 1.0, 0.2),
    (["-t", "1.0", "--top-k", "20", "--top-p", "0.6"], 1.0, 20, 0.6, 0.0),
]


def draw(exe, seed, flags):
    command = [exe, "run", "--raw", "-", "-n", "1", "--ids", "--seed", str(seed), *flags]
    return json.loads(subprocess.run(command, input=TEXT, capture_output=True, check=True).stdout)


def last_logits(exe, ids):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits")
        subprocess.run([exe, "logits", "--token-ids", json.dumps(ids), "--output", out], check=True)
        return numpy.fromfile(out, "<f4").reshape(len(ids), -1)[-1].astype("f8")


def probabilities(logits, temperature, top_k, top_p, min_p):
    """As llmc_sampler_v1: top-k, then top-p of what is left, then min-p."""
    weights = numpy.exp((logits - logits.max()) / temperature)
    order = numpy.argsort(-weights, kind="stable")
    order = order[:top_k] if top_k else order
    if top_p < 1:
        covered = numpy.cumsum(weights[order]) / weights[order].sum()
        order = order[:numpy.searchsorted(covered, top_p) + 1]
    kept = numpy.zeros_like(weights)
    kept[order] = weights[order]
    kept[kept < min_p] = 0
    return kept / kept.sum()


def quantile(cells):
    """0.1 % quantile of chi-square with cells - 1 degrees of freedom (Wilson and Hilferty 1931)."""
    freedom = max(cells - 1, 1)
    return freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3


def main():
    exe, seeds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 600
    logits = last_logits(exe, draw(exe, 0, ["-t", "1"])["prompt_ids"])
    failed = False
    for flags, *settings in SETTINGS:
        expected = probabilities(logits, *settings) * seeds
        with ThreadPoolExecutor(4) as pool:
            counts = collections.Counter(pool.map(lambda seed: draw(exe, seed, flags)["ids"][0], range(seeds)))
        outside = sum(count for token, count in counts.items() if expected[token] == 0)
        cells = [token for token in numpy.argsort(-expected) if expected[token] >= 5]
        chi = sum((counts[token] - expected[token]) ** 2 / expected[token] for token in cells)
        rest = seeds - expected[cells].sum()
        if rest >= 5:
            chi += (seeds - sum(counts[token] for token in cells) - rest) ** 2 / rest
        number = len(cells) + (rest >= 5)
        failed |= outside > 0 or chi > quantile(number)
        print(f"{' '.join(flags):28s} chi-square {chi:5.1f} over {number} cells (at most {quantile(number):.1f}), {outside} outside", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
