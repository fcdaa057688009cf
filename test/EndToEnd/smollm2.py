"""SmolLM2: the same answers as the reference, the contract of the arithmetic, memory and start-up time."""
import hashlib
import os
import re
import shutil

import common
import context
import divergence
import exe as cli


def compiling(checks, ctx):
    shutil.rmtree(ctx.cache, ignore_errors=True)
    cold = ctx.compile(ctx.model, "smollm2", memory=True)
    if not checks.check("llmc compile SmolLM2", cold.code == 0, f"{cold.seconds:.1f} s (goal 60)" if cold.code == 0 else cold.errors[-400:]):
        return
    ctx.built["smollm2"] = ctx.path("smollm2")
    checks.check("compile needs less than 2 GiB", cold.anonymous < 2 << 30, common.mebibytes(cold.anonymous))
    warm = ctx.compile(ctx.model, "smollm2-again")
    checks.check("llmc compile from the kernel cache", warm.code == 0, f"{warm.seconds:.1f} s (goal 10)")
    same = open(ctx.path("smollm2"), "rb").read() == open(ctx.path("smollm2-again"), "rb").read()
    checks.check("compiling twice gives the same bytes", same)
    os.remove(ctx.path("smollm2-again"))
    package = ctx.package(ctx.default())
    checks.check("no op fell back to the reference", package.manifest["reference_ops"] == [], package.manifest["reference_ops"])
    checks.check("weights start at a multiple of 2 MiB", package.sections["weights"][0] % (2 << 20) == 0)
    result = ctx.compile(ctx.model, "smollm2-f32", "--compute=f32")
    if checks.check("llmc compile --compute=f32", result.code == 0, f"{result.seconds:.1f} s" if result.code == 0 else result.errors[-400:]):
        ctx.built["smollm2-f32"] = ctx.path("smollm2-f32")


def common_start(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def greedy(checks, ctx, exe, label, goldens, needed):
    """Greedy continuations of the ten prompts against transformers in f32."""
    lines, equal, ids_equal, report = context.prompts(), 0, 0, []
    for golden in context.golden(goldens):
        prompt_ids, ids, _ = cli.generate(exe, lines[golden["name"]], 64)
        wanted = golden["greedy_ids"]
        same = ids == wanted
        ids_equal += prompt_ids == golden["prompt_ids"]
        equal += same
        if not same:
            at = common_start(ids, wanted)
            margin = golden["top2_logits"][min(at, len(wanted) - 1)]
            report.append(f"{golden['name']} from token {at} (margin {margin[0] - margin[1]:.3f})")
    checks.check(f"{label}: prompt ids equal on 10 of 10", ids_equal == 10, ids_equal)
    checks.check(f"{label}: greedy text equal on at least {needed} of 10", equal >= needed, f"{equal}" + "".join("; " + r for r in report))


def kl(checks, ctx, exe, label, bound):
    golden = context.golden("smollm2-logits.json.gz")
    rows = cli.rows(cli.logits_bytes(exe, golden["ids"]), len(golden["ids"]))
    mean, top1 = divergence.kl_rows(rows, golden)
    checks.check(f"{label}: mean KL over 512 positions at most {bound:g}", mean <= bound, f"{mean:.2e}, same first token {top1:.1%}")


def contract(checks, ctx, exe, label, chunks):
    """512 positions: equal bits in logits and cache whatever the chunks of the prefill and the threads."""
    ids = context.golden("smollm2-logits.json.gz")["ids"]
    digest = lambda *flags: [hashlib.sha256(part).digest() for part in cli.logits_bytes(exe, ids, *flags, cache=True)]
    wanted = digest()
    for threads in (1, 2):
        for chunk in chunks:
            got = digest("--chunk", chunk, "--threads", threads)
            checks.check(f"{label}: equal bits in logits and cache with {threads} threads, prefill in chunks of {chunk}", got == wanted,
                         "" if got == wanted else f"logits {'equal' if got[0] == wanted[0] else 'differ'}, cache {'equal' if got[1] == wanted[1] else 'differs'}")


def variants(checks, ctx, exe, label):
    """The same for every instruction set that this machine and the package have."""
    ids = context.golden("smollm2-logits.json.gz")["ids"][:128]
    flags = open("/proc/cpuinfo").read().split()
    have = {"avx2": "avx2" in flags and "fma" in flags, "avx512vnni": "avx512_vnni" in flags, "avx512bf16": "avx512_bf16" in flags,
            "amxbf16": "amx_bf16" in flags, "amxbf16-emulated": "avx512_bf16" in flags}
    digests = {isa: hashlib.sha256(cli.logits_bytes(exe, ids, "--isa", isa)).hexdigest()[:12]
               for isa in ctx.package(exe).manifest["isas"] if have.get(isa)}
    checks.check(f"{label}: equal bits on {', '.join(digests)}", len(set(digests.values())) == 1, digests)


def phase(checks, ctx):
    """Prompts in bf16_eo32: equal bits whatever the chunks and the instruction set, tiles of AMX or what emulates them among these."""
    exe = ctx.executable("smollm2-phase", None, "--numerics=phase", "--isas=avx2,avx512vnni,amxbf16,amxbf16-emulated")
    checks.check("the manifest says so", ctx.package(exe).manifest["numerics"] == "phase", ctx.package(exe).manifest.get("numerics"))
    ids = context.golden("smollm2-logits.json.gz")["ids"][:64]
    checks.check("prompts have other bits than with --numerics=exact", cli.logits_bytes(exe, ids) != cli.logits_bytes(ctx.default(), ids))
    contract(checks, ctx, exe, "phase", (1, 33, 512))
    variants(checks, ctx, exe, "phase")
    kl(checks, ctx, exe, "phase", 2e-3)
    greedy(checks, ctx, exe, "phase", "smollm2-greedy.json", 8)
    for flags, part in ((["--compute=f32"], "--compute=f32"), (["--target=cuda:sm_90a"], "cuda:sm_90a")):
        result = ctx.compile(ctx.model, "refused", "--numerics=phase", *flags)
        checks.check(f"--numerics=phase with {flags[0]} is refused", result.code == 2 and part in result.errors, result.errors.strip()[-200:])


def fusions(checks, ctx):
    """Fusions change no bit."""
    ids = context.golden("smollm2-logits.json.gz")["ids"][:160]
    for label, exe, flags in (("default", ctx.default(), ()), ("f32", ctx.exact(), ("--compute=f32",))):
        result = ctx.compile(ctx.model, "smollm2-plain", "--no-fuse-qkv", "--no-fuse-gate-up", "--no-fuse-residual", "--no-fuse-quantize", *flags)
        if checks.check(f"{label}: compiles without fusions", result.code == 0, result.errors.strip()[-300:] if result.code else f"{result.seconds:.1f} s"):
            same = cli.logits_bytes(exe, ids) == cli.logits_bytes(ctx.path("smollm2-plain"), ids)
            checks.check(f"{label}: equal bits with and without fusions", same)
            os.remove(ctx.path("smollm2-plain"))


def answers(checks, ctx):
    exe = ctx.default()
    question = "What is the capital of France?"
    common.must([exe, "run", question])  # warms the page cache
    runs = [common.run([exe, "run", question]) for _ in range(3)]
    checks.check("the capital of France is Paris", all(r.code == 0 and "Paris" in r.text for r in runs), runs[0].text.strip()[:80])
    checks.check("the same answer three times", len({r.out for r in runs}) == 1)
    first = sorted(r.first_byte or 99 for r in runs)
    checks.note(f"exec to first token: {first[0]:.3f} s best, {first[1]:.3f} s median of 3 (goal 0.3)")
    for sub in ("info", "licenses"):
        result = common.run([exe, sub])
        checks.check(f"{sub} prints", result.code == 0 and len(result.out) > 100, f"{len(result.out)} bytes")
    sampled = [common.must([exe, "run", "Tell me a story.", "--max-tokens", "24", "--temperature", "0.8", "--top-p", "0.95",
                            "--seed", seed]).out for seed in (1, 1, 2)]
    checks.check("sampling: the seed decides", sampled[0] == sampled[1] != sampled[2])
    emoji = common.must([exe, "run", "Repeat after me: 👩‍🚀🚀🌕", "--max-tokens", "32"]).out
    emoji.decode("utf-8")  # raises when the text broke a character
    checks.check("output is whole UTF-8", True)


def memory(checks, ctx):
    result = common.run([ctx.default(), "run", "Write a long essay about rain.", "--max-tokens", "256", "--stats"], memory=True)
    found = re.search(r"^anonymous memory\s+(\d+) bytes", result.errors, re.M)
    if checks.check("run --stats prints the ledger", result.code == 0 and found, result.errors.strip()[-200:] if not found else ""):
        planned = int(found[1])
        checks.check("anonymous memory of run is within 1 % + 16 MiB of the ledger",
                     abs(result.anonymous - planned) <= planned * 0.01 + (16 << 20),
                     f"measured {common.mebibytes(result.anonymous)}, ledger {common.mebibytes(planned)}")
