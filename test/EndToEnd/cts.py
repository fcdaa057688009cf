"""The conformance suite of the devices (runtime/cts) on CPU packages of tiny models, two of them with an arithmetic for prompts, with every instruction set."""
import os

import common
import context


def binary(ctx):
    """llmc-cts of the build that llmc comes from, beside it or in runtime/cts."""
    folder = os.path.dirname(os.path.realpath(ctx.llmc))
    while folder != "/":
        path = os.path.join(folder, "runtime", "cts", "llmc-cts")
        if os.path.exists(path):
            return path
        folder = os.path.dirname(folder)
    raise RuntimeError("no llmc-cts in the build of " + ctx.llmc)


def cpu(checks, ctx):
    tiny, cts = context.tiny_models(), binary(ctx)
    for name, *flags in (("qwen2.q4_1",), ("llama3-untied.f16",), ("qwen2.q4_1", "--numerics=phase"), ("llama-tied.bf16", "--numerics=phase")):
        exe = ctx.executable("-".join(("cts", name, *flags)), tiny.write(ctx.work, name), *flags)
        result = common.run([cts, exe])
        lines = result.text.strip().splitlines() or [result.errors.strip()]
        for line in lines:
            if line.startswith("FAIL"):
                checks.note(line)
        checks.check(f"conformance of {' '.join((name, *flags))}", result.code == 0, lines[-1])
