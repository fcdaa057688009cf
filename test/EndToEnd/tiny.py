"""Tiny random models of every family, storage type and oddity, against transformers in f32."""
import json

import common
import context
import exe as cli


# Largest difference of a logit, relative to the largest logit. What was seen: 2e-6, 1.4e-2 (bf16 weights), 3e-2.
BOUNDS = {"f32": 1e-5, "default": 0.02, "q8": 0.1}


def one(checks, ctx, path, name, storage, prompt, golden):
    largest = max(abs(value) for value in golden["logits"])
    for compute in ("f32", "default", "q8") if storage.startswith("Q") else ("f32", "default"):
        label = f"{name} ({compute})"
        result = ctx.compile(path, f"{name}-{compute}", f"--compute={compute}")
        if not checks.check(f"{label}: compiles", result.code == 0, result.errors.strip()[-300:] if result.code else f"{result.seconds:.1f} s"):
            continue
        exe = ctx.path(f"{name}-{compute}")
        fallback = ctx.package(exe).manifest["reference_ops"]
        checks.check(f"{label}: no op fell back to the reference", fallback == [], fallback)
        ids = golden["prompt_ids"]
        row = cli.rows(cli.logits_bytes(exe, ids), len(ids))[-1]
        error = max(abs(a - b) for a, b in zip(row, golden["logits"])) / largest
        checks.check(f"{label}: logits within {BOUNDS[compute]:g} of the reference", error <= BOUNDS[compute] and len(row) == len(golden["logits"]), f"{error:.1e}")
        if compute == "f32":
            prompt_ids, made, _ = cli.generate(exe, {"text": prompt}, len(golden["greedy_ids"]))
            wanted = golden["greedy_ids"]
            checks.check(f"{label}: prompt ids", prompt_ids == ids)
            checks.check(f"{label}: greedy ids", made == wanted, "" if made == wanted else f"expected {wanted}, got {made}")
        whole = cli.logits_bytes(exe, ids)
        for chunk in (7, 1):
            chunked = cli.logits_bytes(exe, ids, "--chunk", chunk, "--threads", 1)
            checks.check(f"{label}: equal bits in chunks of {chunk}", chunked == whole)
        result = common.run([exe, "verify"])
        checks.check(f"{label}: verify passes", result.code == 0, "" if result.code == 0 else (result.text + result.errors).strip()[-200:])


def all_models(checks, ctx):
    tiny, goldens = context.tiny_models(), context.golden("tiny-goldens.json")
    checks.check("goldens and models are the same set", sorted(goldens["models"]) == sorted(tiny.MODELS))
    for name in tiny.MODELS:
        path = tiny.write(ctx.work, name)
        checks.group(name, one, ctx, path, name, tiny.MODELS[name][2], goldens["prompt"], goldens["models"][name])


def inspecting(checks, ctx):
    for sub in ("inspect", "plan"):
        result = common.run([ctx.llmc, sub, ctx.model], timeout=60)
        checks.check(f"llmc {sub}", result.code == 0 and len(result.out) > 200, f"{result.seconds:.2f} s, {len(result.out)} bytes")
