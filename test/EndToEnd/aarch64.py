"""AArch64: cross-compiled executables, emulated by QEMU, give the bits of the native ones."""
import hashlib
import os
import shutil
import stat

import common
import context
import exe as cli


RUN = os.path.join(common.ROOT, "scripts", "run-aarch64.sh")
# Every storage type, and the arithmetic of each; windows and sinks.
TINY = {"llama-tied.f32": ("default",), "llama3-untied.f16": ("default",), "qwen2.hf-bf16": ("default", "f32"), "llama-256.k": ("default", "f32", "q8"),
        "llama-tied.q5": ("default", "q8"), "llama-tied.q4_1": ("q8",), "llama-256.hf-fp8": ("default",), "gemma2-plain.q8_0": ("default", "q8"), "granite-swa.hf-f32": ("default",)}


def built(ctx, name):
    return os.path.join(os.path.dirname(ctx.llmc), name + "-aarch64")


def stub(checks, ctx):
    """The cross-built stub's path; None with a note where this machine has none."""
    path = built(ctx, "llmc-runtime-stub")
    missing = [what for what, there in ((path, os.path.exists(path)), ("qemu-aarch64", shutil.which("qemu-aarch64"))) if not there]
    if missing:
        checks.note(f"skipped: no {' and no '.join(missing)}; scripts/install-deps.sh and scripts/build-aarch64.sh make them")
        return None
    return path


def emulated(ctx, name):
    """A command that runs the executable `name` under QEMU."""
    path = ctx.path(name + ".sh")
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\nexec "{RUN}" "{ctx.path(name)}" "$@"\n')
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def compiled(checks, ctx, model, name, *flags):
    """(native, emulated) executables of a model; None after a failed check."""
    for cpu, suffix in (("native", "x"), ("neon_dotprod", "a")):
        result = ctx.compile(model, f"{name}-{suffix}", f"--target-cpu={cpu}", *flags)
        if result.code != 0:
            checks.check(f"{name}: compiles with --target-cpu={cpu}", False, result.errors.strip()[-300:])
            return None
    return ctx.path(name + "-x"), emulated(ctx, name + "-a")


def equal(checks, label, executables, ids, *flags):
    native, arm = (cli.logits_bytes(exe, ids, *flags, cache=True) for exe in executables)
    checks.check(f"{label}: logits and cache have the bits of x86-64", native == arm and len(native[0]) > 0,
                 f"{len(native[0])} bytes, {hashlib.sha256(native[0]).hexdigest()[:12]}" if native == arm else "they differ")


def tiny_models(checks, ctx):
    if not stub(checks, ctx):
        return
    tiny, goldens = context.tiny_models(), context.golden("tiny-goldens.json")["models"]
    for name, computes in TINY.items():
        path = tiny.write(ctx.work, name)
        for compute in computes:
            executables = compiled(checks, ctx, path, f"{name}-{compute}", f"--compute={compute}")
            if executables:
                equal(checks, f"{name} ({compute})", executables, goldens[name]["prompt_ids"])
    path = ctx.path("iq4.gguf")
    tiny.write_gguf(path, "iq4", ("llama-256", "gguf", "IQ4_XS", "IQ4_XS")) # an embedding of codes that index a table
    executables = compiled(checks, ctx, path, "iq4")
    equal(checks, "IQ4_XS", executables, goldens["llama-256.k"]["prompt_ids"])
    result = common.run([executables[1], "verify"])
    checks.check("verify passes", result.code == 0, (result.text + result.errors).strip()[-200:] if result.code else "")
    executables = compiled(checks, ctx, tiny.write(ctx.work, "qwen2.q4_1"), "cts-arm")
    result = common.run([RUN, built(ctx, "llmc-cts"), ctx.path("cts-arm-a"), "--quick", "--traces", "3"])
    checks.check("conformance of qwen2.q4_1", result.code == 0, (result.text.strip().splitlines() or [result.errors.strip()])[-1])


def smollm2(checks, ctx):
    if not stub(checks, ctx):
        return
    executables = compiled(checks, ctx, ctx.model, "smollm2-arm")
    if not executables:
        return
    ids = context.golden("smollm2-logits.json.gz")["ids"][:20]
    equal(checks, "SmolLM2", executables, ids, "--chunk", 16)
    native, arm = (cli.generate(exe, {"text": "The capital of France is"}, 6) for exe in executables)
    checks.check("SmolLM2: the same text", native == arm, arm[2])


def refusals(checks, ctx):
    """What is wrong is said by name."""
    path = stub(checks, ctx)
    if not path:
        return
    model = context.tiny_models().write(ctx.work, "llama-tied.f32")
    arm = compiled(checks, ctx, model, "refused")[1]

    def refused(label, command, wanted, **env):
        result = common.run(command, env={**ctx.environment(), **env})
        checks.check(label, result.code in (1, 2) and wanted in result.errors, result.errors.strip()[-200:])

    refused("a CPU without dot products", [arm, "run", "x"], "this CPU cannot run the package: neon_dotprod lacks asimddp", LLMC_QEMU_CPU="cortex-a72")
    refused("an instruction set of another architecture", [arm, "run", "x", "--isa=avx2"], "--isa: the package has no code for avx2, only neon_dotprod")
    native = [ctx.llmc, "compile", model, "-o", ctx.path("no")]
    refused("a stub for another architecture", [*native, f"--stub={path}"], "expected the runtime executable for x86-64, got another file")
    os.makedirs(ctx.path("alone"), exist_ok=True)
    alone = shutil.copy(ctx.llmc, ctx.path("alone", "llmc"))
    refused("no stub", [alone, *native[1:], "--target-cpu=neon_dotprod"], "runtime executable for AArch64: expected it at " + ctx.path("alone", "llmc-runtime-stub-aarch64"))
    refused("a module for another architecture", [ctx.llmc, "explain", ctx.path("refused-a")], "expected a shared object for x86-64")
