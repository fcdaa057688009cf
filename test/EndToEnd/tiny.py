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


def quantised(checks, ctx):
    """--quantize=fp8 makes of f32 weights what another quantiser stored, to the bit."""
    tiny, stored = context.tiny_models(), "llama-256.hf-fp8"
    ids, rows = context.golden("tiny-goldens.json")["models"][stored]["prompt_ids"], {}
    plain = ctx.path("llama-256.hf-f32")
    tiny.write_hf(plain, ("llama-256", "hf", "F32", "F32"))
    for name, model, *flags in (("stored", tiny.write(ctx.work, stored)), ("made", plain, "--quantize=fp8")):
        exe = ctx.path(f"fp8-{name}")
        result = ctx.compile(model, f"fp8-{name}", *flags)
        if not checks.check(f"{name}: compiles {' '.join(flags)}", result.code == 0, result.errors.strip()[-300:]):
            return
        rows[name] = cli.logits_bytes(exe, ids)
        layouts = {weight["layout"] for weight in ctx.package(exe).manifest["weights"] if weight["name"].startswith("blk.")}
        checks.check(f"{name}: layers have e4m3 matrices and f32 vectors", layouts == {"n16_e4m3", "rows_f32"}, layouts)
    checks.check("quantising gives the stored codes and scales", len(set(rows.values())) == 1)
    result = common.run([ctx.llmc, "compile", tiny.write(ctx.work, "llama-tied.q4_0"), "-o", ctx.path("refused"), "--quantize=fp8"])
    checks.check("codes are not quantised again", result.code == 1 and "expected f32, f16, bf16 or e4m3 to quantise to fp8, got q4_0" in result.errors,
                 result.errors.strip()[-200:])


def inspecting(checks, ctx):
    for sub in ("inspect", "plan"):
        result = common.run([ctx.llmc, sub, ctx.model], timeout=60)
        checks.check(f"llmc {sub}", result.code == 0 and len(result.out) > 200, f"{result.seconds:.2f} s, {len(result.out)} bytes")
