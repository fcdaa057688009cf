#!/usr/bin/env python3
"""Writes a trace of requests for `EXE replay`, `EXE simulate` and peer_vllm.py: prompts of random ids, all there at the start.

  make_trace.py OUT.jsonl [--requests 512] [--prompt 64,1024] [--output 32,512] [--ids 1000,120000] [--seed 0]
Lengths are uniform. Python's generator gives the same file everywhere.
"""
import argparse
import json
import random


def span(text):
    least, most = map(int, text.split(","))
    return least, most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--requests", type=int, default=512)
    parser.add_argument("--prompt", type=span, default=(64, 1024), help="least and most tokens")
    parser.add_argument("--output", type=span, default=(32, 512))
    parser.add_argument("--ids", type=span, default=(1000, 120000), help="from the first to below the second")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    lengths, ids = random.Random(args.seed), random.Random(args.seed)
    with open(args.out, "w", encoding="utf-8") as file:
        for prompt, output in [(lengths.randint(*args.prompt), lengths.randint(*args.output)) for _ in range(args.requests)]:
            line = {"arrival": 0, "prompt": [ids.randrange(*args.ids) for _ in range(prompt)], "output": output}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
