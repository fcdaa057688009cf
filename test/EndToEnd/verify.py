"""The oracle: verify passes on what is right and names what is wrong."""
import os

import common
from package import changed_section, damaged_copy, miscompiled


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
    """Wrong instructions in one kernel (the projection that adds the residual): verify names its first op."""
    exe, bad, counts = ctx.default(), ctx.path("smollm2-kernel"), []

    def change(module):
        data, count = miscompiled(module, r"linear_.*_576x576_residual_.*", ctx.path("module.so"))
        counts.append(count)
        return data

    changed_section(exe, bad, "module.avx2", change)
    if checks.check("a fault could be planted in a kernel", counts[0] > 0, f"{counts[0]} instructions"):
        result = common.run([bad, "verify", "--per-layer", "--isa=avx2"])
        checks.check("verify names the first wrong op", result.code == 1 and "first op beyond the bound: blk.0.attn_residual" in result.errors,
                     (result.errors.strip() or result.text.strip())[-200:])
    os.remove(bad)
