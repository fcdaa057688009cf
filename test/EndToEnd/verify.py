"""The oracle: verify passes on what is right and names what is wrong."""
import os

import common
import context
from package import damaged_copy


def passes(checks, ctx):
    for label, exe in (("default", ctx.default()), ("f32", ctx.exact())):
        result = common.run([exe, "verify"])
        checks.check(f"verify passes ({label})", result.code == 0, (result.text.strip().splitlines() or [result.errors[-200:]])[-1][:160])
    result = common.run([ctx.default(), "verify", "--per-layer"])
    checks.check("verify --per-layer goes through the layers", result.code == 0 and "blk.29" in result.text, f"{len(result.text.splitlines())} lines")


def weight_fault(checks, ctx):
    exe = ctx.default()
    package = ctx.package(exe)
    name = next(w["name"] for w in package.manifest["weights"] if w["name"].startswith("blk.17.") and "norm" not in w["name"])
    offset, size = package.weight(name)
    bad = damaged_copy(exe, ctx.path("smollm2-weight"), offset + size // 2, 64)
    result = common.run([bad, "verify"])
    checks.check("verify names a damaged weight", result.code == 1 and name in result.text + result.errors,
                 (result.errors.strip() or result.text.strip())[-200:])
    os.remove(bad)


def kernel_fault(checks, ctx):
    """A kernel compiled wrong on purpose: verify --per-layer names its first op."""
    result = ctx.compile(ctx.model, "smollm2-kernel", "--plant-fault=blk.0.ffn_act")
    if not checks.check("compile with a planted kernel fault", result.code == 0, result.errors.strip()[-200:]):
        return
    result = common.run([ctx.path("smollm2-kernel"), "verify", "--per-layer"])
    checks.check("verify names the first wrong op", result.code == 1 and "blk.0.ffn_act" in result.text + result.errors,
                 (result.errors.strip() or result.text.strip())[-200:])
    os.remove(ctx.path("smollm2-kernel"))
