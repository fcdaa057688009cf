"""Weights that are not inside the executable: shards beside it, random ones, random ones written as files."""
import os
import shutil
import subprocess

import bad_input
import common
import exe as cli

IDS = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308]
SHARD = 20 << 20


def separate(checks, ctx):
    folder = ctx.path("separate")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    result = ctx.compile(ctx.model, "separate/m", "--weights=separate", f"--max-shard-size={SHARD}")
    if not checks.check("--weights=separate compiles", result.code == 0, result.errors[-300:] if result.code else ""):
        return
    exe = os.path.join(folder, "m")
    shards = sorted(name for name in os.listdir(folder) if name != "m")
    checks.check("shards are no larger than asked for", len(shards) > 1 and all(os.path.getsize(os.path.join(folder, s)) <= SHARD for s in shards), len(shards))
    checks.check("the same logits as with the weights inside", cli.logits_bytes(exe, IDS) == cli.logits_bytes(ctx.default(), IDS))
    checks.check("weights --check", common.run([exe, "weights", "--check"]).code == 0)

    shard = os.path.join(folder, shards[1])
    with open(shard, "r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    damaged = common.run([exe, "verify", "--tokens", "4"])
    checks.check("verify names a damaged shard", damaged.code == 1 and shards[1] in damaged.errors, damaged.errors.strip())
    os.truncate(shard, 1000)
    short = common.run([exe, "run", "x"])
    checks.check("a truncated shard is named", short.code == 1 and f"{shards[1]}: truncated shard: expected" in short.errors, short.errors.strip())
    os.remove(shard)
    missing = common.run([exe, "run", "x"])
    checks.check("a missing shard is named", missing.code == 1 and shards[1] in missing.errors, missing.errors.strip())

    shutil.rmtree(folder)
    os.makedirs(folder)
    process = subprocess.run([ctx.llmc, "compile", ctx.model, "-o", exe, "--weights=separate", f"--max-shard-size={SHARD}"],
                             capture_output=True, env={**os.environ, **ctx.environment()},
                             preexec_fn=bad_input.limited(SHARD - 1))
    checks.check("a failed compile leaves no shards", process.returncode != 0 and os.listdir(folder) == [], os.listdir(folder))


def random(checks, ctx):
    exe = ctx.executable("random", None, "--weights=random:5")
    checks.check("random weights take no room", os.path.getsize(exe) < 20 << 20, common.mebibytes(os.path.getsize(exe)))
    logits = cli.logits_bytes(exe, IDS)
    checks.check("random weights are the same at every start", cli.logits_bytes(exe, IDS) == logits)
    unfused = ctx.executable("random-unfused", None, "--weights=random:5", "--no-fuse-qkv")
    checks.check("random weights do not depend on fusion", cli.logits_bytes(unfused, IDS) == logits)
    other = ctx.executable("random-other", None, "--weights=random:6")
    checks.check("another seed is another model", cli.logits_bytes(other, IDS) != logits)
    result = common.run([exe, "verify", "--tokens", "32"])
    checks.check("verify of random weights", result.code == 0, result.text.strip())

    folder = ctx.path("materialized")
    shutil.rmtree(folder, ignore_errors=True)
    written = common.run([exe, "weights", "--materialize", folder, "--max-shard-size", "30MiB"])
    checks.check("weights --materialize", written.code == 0, written.text.strip() or written.errors)
    checks.check("materialised weights are the same", cli.logits_bytes(exe, IDS, "--weights-dir", folder) == logits)
    checks.check("their hashes", common.run([exe, "weights", "--check", "--weights-dir", folder]).code == 0)
    wrong = common.run([other, "run", "x", "--weights-dir", folder])
    checks.check("files of another package are refused", wrong.code == 1 and "another package" in wrong.errors, wrong.errors.strip())
    shutil.rmtree(folder)
