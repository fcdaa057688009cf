#!/usr/bin/env python3
"""End-to-end tests: llmc compiles real and tiny models, the executables are held against stored goldens.

  run.py --llmc PATH --model SmolLM2.gguf [--work DIR] [--only=GROUP,...] [--counts FILE]
Prints one line a check; exit 1 if one failed. Groups: compile, levels, greedy, kl, contract, phase, answers, weights, verify, hf, text, tiny, split, explain, serve, soak, cts, bad, faults, cuda, aarch64.
Needs numpy.
"""
import argparse
import os
import shutil
import sys

sys.dont_write_bytecode = True

import aarch64
import bad_input
import common
import context
import cuda
import cts
import explain
import hf
import levels
import serve
import smollm2
import soak
import split
import text
import tiny
import verify
import weights


def run_bad_input(checks, ctx):
    good = bad_input.models(checks, ctx)
    bad_input.full_disk(checks, ctx, good)
    bad_input.killed_worker(checks, ctx, good)


GROUPS = {
    "compile": [("compiling SmolLM2", smollm2.compiling)],
    "levels": [("the package", levels.package), ("words", levels.words), ("IR of the levels", levels.emitted)],
    "answers": [("answers", smollm2.answers), ("memory", smollm2.memory)],
    "greedy": [("greedy text, f32", lambda c, x: smollm2.greedy(c, x, x.exact(), "f32", "smollm2-greedy.json", 10)),
               ("greedy text, default", lambda c, x: smollm2.greedy(c, x, x.default(), "default", "smollm2-greedy.json", 8))],
    "kl": [("KL, f32", lambda c, x: smollm2.kl(c, x, x.exact(), "f32", 1e-6)),
           ("KL, default", lambda c, x: smollm2.kl(c, x, x.default(), "default", 2e-3))],
    "contract": [("contract, default", lambda c, x: smollm2.contract(c, x, x.default(), "default", (1, 2, 7, 16, 33, 100, 512))),
                 ("contract, f32", lambda c, x: smollm2.contract(c, x, x.exact(), "f32", (16, 100, 512))),
                 ("fusions", smollm2.fusions),
                 ("instruction sets", lambda c, x: smollm2.variants(c, x, x.default(), "default"))],
    "phase": [("--numerics=phase", smollm2.phase)],
    "weights": [("separate weights", weights.separate), ("random weights", weights.random)],
    "verify": [("verify", verify.passes)],
    "faults": [("planted fault in a weight", verify.weight_fault), ("planted fault in a kernel", verify.kernel_fault)],
    "hf": [("Hugging Face folder of SmolLM2", hf.folder)],
    "text": [("tokenize", text.tokenizing), ("sampling flags", text.sampling), ("perplexity", text.perplexity),
             ("conversation", text.conversation), ("Ctrl-C", text.interrupt)],
    "tiny": [("inspect and plan", tiny.inspecting), ("tiny models", tiny.all_models), ("quantising", tiny.quantised)],
    "split": [("models in several GGUF files", split.all_parts)],
    "explain": [("work of tiny models", explain.work), ("explain with a profile", explain.profiles), ("explain SmolLM2", explain.smollm2),
                ("wrong use of explain", explain.refused)],
    "serve": [("OpenAI's client", serve.client), ("serve answers", serve.answers), ("batches of a killed server", serve.batches),
              ("draining", serve.drain), ("faults of clients", serve.faults), ("many connections", serve.connections), ("wrong use of serve", serve.usage)],
    "soak": [("a soak of some seconds", soak.some_seconds)],
    "cts": [("conformance suite", cts.cpu)],
    "cuda": [("tiny models for a GPU", cuda.tiny_models), ("SmolLM2 for a GPU", cuda.smollm2), ("weights beside a GPU executable", cuda.separate),
             ("random weights for a GPU", cuda.random_weights), ("groups of heads for a GPU", cuda.head_groups),
             ("flags for a GPU", cuda.flags), ("device.sh", cuda.device_script)],
    "aarch64": [("tiny models for AArch64", aarch64.tiny_models), ("SmolLM2 for AArch64", aarch64.smollm2), ("wrong use of AArch64", aarch64.refusals)],
    "bad": [("bad models", run_bad_input), ("usage", bad_input.usage), ("bad packages", bad_input.packages)],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmc", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--work", default=os.path.join(common.ROOT, "build", "e2e"))
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--counts", help="file that gets PASSED FAILED")
    args = parser.parse_args()
    checks = common.Checks()
    ctx = context.Context(os.path.abspath(args.llmc), os.path.abspath(args.model), os.path.abspath(args.work))
    for name in args.only.split(","):
        for title, function in GROUPS[name]:
            checks.group(title, function, ctx)
    if args.only == ",".join(GROUPS):
        shutil.rmtree(ctx.work, ignore_errors=True)
    print(f"end to end: {checks.passed} passed, {len(checks.failed)} failed", flush=True)
    for name in checks.failed:
        print("  failed: " + name)
    if args.counts:
        with open(args.counts, "w") as file:
            file.write(f"{checks.passed} {len(checks.failed)}\n")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
