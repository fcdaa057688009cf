"""What the package and the levels must look like."""
import os
import re
import subprocess

import common

LLVM = "/usr/lib/llvm-22/bin"


def package(checks, ctx):
    """One ELF file; generated code needs nothing and exports one symbol."""
    exe = ctx.default()
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", common.must([f"{LLVM}/llvm-readelf", "-d", exe]).text)
    allowed = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}
    checks.check("the executable needs glibc only", needed and set(needed) <= allowed, needed)
    package = ctx.package(exe)
    modules = [name for name in package.sections if name.startswith("module.")]
    checks.check("the package has a module for each instruction set", sorted(modules) == sorted("module." + isa for isa in package.manifest["isas"])
                 and "module.avx2" in modules, modules)
    for name in modules:
        path = ctx.path(name + ".so")
        with open(path, "wb") as file:
            file.write(package.read(name))
        symbols = [line.split() for line in common.must([f"{LLVM}/llvm-nm", "-D", path]).text.splitlines() if line.strip()]
        undefined = [s[-1] for s in symbols if "U" in s[:-1]]
        defined = [s[-1] for s in symbols if "U" not in s[:-1] and "w" not in s[:-1]]
        checks.check(f"{name} has no undefined symbols", undefined == [], undefined[:5])
        checks.check(f"{name} exports llmc_module_v1 alone", defined == ["llmc_module_v1"], defined[:5])
        os.remove(path)


def words(checks, ctx):
    """The lowering to a target knows no algorithm; the runtime knows no LLVM."""
    def grep(pattern, *folders):
        found = subprocess.run(["grep", "-rniE", "--include=*.cpp", "--include=*.h", "--include=*.td", pattern,
                                *[os.path.join(common.ROOT, folder) for folder in folders]], capture_output=True, text=True)
        return [line.replace(common.ROOT + "/", "") for line in found.stdout.splitlines()]
    hits = grep("attention|softmax|gemm", "lib/Conversion/TileToCPU")
    checks.check("the target lowering has no word of attention, softmax or GEMM", not hits, hits[:3])
    hits = grep(r"#include [<\"](mlir|llvm|llvm-c|mlir-c)/", "runtime", "lib/Frontend/GGUF", "lib/Frontend/HuggingFace", "lib/Support")
    checks.check("runtime and front ends include no LLVM header", not hits, hits[:3])


def emitted(checks, ctx):
    """--emit shows the IR of a level; attention is a loop over tile ops that carries m, l and acc."""
    lm = common.must([ctx.llmc, "compile", ctx.model, "--emit=lm", "-o", "-"], env=ctx.environment()).text
    checks.check("--emit=lm", "lm.attention" in lm and "lm.weight" in lm, f"{len(lm.splitlines())} lines")
    tile = common.must([ctx.llmc, "compile", ctx.model, "--emit=tile", "-o", "-"], env=ctx.environment()).text
    checks.check("--emit=tile", "tile.kernel" in tile and "rt.dispatch" in tile, f"{len(tile.splitlines())} lines")
    kernel = next((part for part in tile.split("tile.kernel")[1:] if "attention" in part[:80]), "")
    carried = re.search(r"= scf\.for .*iter_args\(([^)]*)\)", kernel)
    checks.check("attention is a loop that carries at least three values", carried and carried[1].count("=") >= 3,
                 carried[1][:120] if carried else "no scf.for with iter_args")
    variants = set(re.findall(r"max_rows = (\d+)", tile))
    checks.check("kernel variants by rows are in the IR", len(variants) >= 2, sorted(variants))
