"""Bad input: one clear error line, exit 1 (2 for usage), no crash, nothing half-written left behind.

The kinds of faults are those reported in public against GGUF and safetensors readers: lying counts and sizes, wrong
types, cut files, names that lead out of the folder. The readers' own unit tests and fuzz targets go through them
exhaustively; here each kind goes through the command once.
"""
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import time

import common
import context


def gguf(version=3, tensors=0, pairs=0, body=b""):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs) + body


def string(text):
    return struct.pack("<Q", len(text)) + text


def refused(checks, name, result, code, *needles):
    """One error line, the exit code, no crash; each needle (a string or a tuple of alternatives) is in the message."""
    lines = [line for line in result.errors.splitlines() if line.strip()]
    text = result.errors
    wrong = []
    if result.code != code:
        wrong.append(f"expected exit {code}, got {result.code}")
    if not lines:
        wrong.append("expected a message, got none")
    if code == 1 and sum("error" in line.lower() for line in lines) > 1:
        wrong.append(f"expected one error, got {len(lines)} lines")
    if any(word in text for word in ("Stack dump", "PLEASE submit", "terminate called", "Sanitizer", "Assertion", "LLVM ERROR")):
        wrong.append("it crashed")
    for needle in needles:
        if not any(part in text for part in (needle if isinstance(needle, tuple) else (needle,))):
            wrong.append(f"expected {needle!r} in the message")
    checks.check(f"refused: {name}", not wrong, "; ".join(wrong) + (f" | {text.strip()[:300]}" if wrong else "") or
                 (lines[0].replace(common.ROOT, "")[:150] if lines else ""))


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return path


def bad_gguf(ctx, folder, good):
    """(name, path, needles) of damaged GGUF files."""
    data = open(good, "rb").read()
    cut = lambda name, size: write(os.path.join(folder, name + ".gguf"), data[:size])
    raw = lambda name, content: write(os.path.join(folder, name + ".gguf"), content)
    u32 = lambda key, value, kind=4: string(key) + struct.pack("<II", kind, value)
    yield "empty file", raw("empty", b""), ()
    yield "not a GGUF", raw("text", b"hello, I am a text file\n" * 10), ()
    yield "GGUF cut in the header", cut("cut-head", 200), ()
    yield "GGUF cut in the last tensor", cut("cut-tail", len(data) - 4096), ()
    yield "GGUF with its last byte missing", cut("cut-last", len(data) - 1), ()
    yield "GGUF with 2^63-1 tensors", raw("tensors", gguf(tensors=2**63 - 1)), ("tensor",)
    yield "GGUF with 2^40 keys", raw("keys", gguf(pairs=2**40)), ()
    yield "GGUF with a string of 2^62 bytes", raw("string", gguf(pairs=1, body=struct.pack("<Q", 2**62) + b"x" * 60)), ()
    yield "GGUF with an array of 2^61 entries", raw("array", gguf(pairs=1, body=string(b"a") + struct.pack("<IIQ", 9, 4, 2**61))), ()
    yield "GGUF with alignment 3", raw("alignment", gguf(pairs=1, body=u32(b"general.alignment", 3))), ("general.alignment",)
    yield "GGUF with an empty key", raw("key", gguf(pairs=1, body=u32(b"", 3))), ()
    yield ("GGUF of an unknown architecture",
           raw("mamba", data.replace(string(b"general.architecture") + struct.pack("<I", 8) + string(b"llama"),
                                     string(b"general.architecture") + struct.pack("<I", 8) + string(b"mamba"), 1)),
           ("mamba", "llama", "qwen2"))
    yield ("GGUF without a tensor", raw("absent", data.replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight", 1)), ("blk.1.ffn_up",))
    key = string(b"llama.feed_forward_length") + struct.pack("<I", 4)
    at = data.index(key) + len(key)
    yield ("GGUF with a wrong shape", raw("shape", data[:at] + struct.pack("<I", 192) + data[at + 4:]), ("192",))
    name = string(b"blk.0.ffn_up.weight")
    at = data.index(name) + len(name) + 4 + 16
    yield "GGUF with tensor type 65535", raw("type", data[:at] + struct.pack("<I", 65535) + data[at + 4:]), ("blk.0.ffn_up",)
    at += 4
    yield "GGUF with a tensor behind its end", raw("offset", data[:at] + struct.pack("<Q", 2**40) + data[at + 8:]), ("blk.0.ffn_up",)


def bad_folders(ctx, folder, good):
    """(name, path, needles) of damaged Hugging Face folders."""
    def copy(name):
        path = os.path.join(folder, name)
        shutil.copytree(good, path)
        return path

    def config(name, **changes):
        path = copy(name)
        values = json.load(open(os.path.join(path, "config.json"), encoding="utf-8"))
        values.update(changes)
        json.dump({k: v for k, v in values.items() if v is not Ellipsis}, open(os.path.join(path, "config.json"), "w", encoding="utf-8"))
        return path

    def weights(name, content):
        path = copy(name)
        write(os.path.join(path, "model.safetensors"), content)
        return path

    data = open(os.path.join(good, "model.safetensors"), "rb").read()
    os.makedirs(os.path.join(folder, "nothing"))
    yield "a directory that is no model", os.path.join(folder, "nothing"), ("nothing",)
    yield "folder of an unknown architecture", config("gpt2", model_type="gpt2", architectures=["GPT2LMHeadModel"]), ("gpt2", "llama")
    yield "folder without hidden_size", config("hidden", hidden_size=Ellipsis), ("hidden_size",)
    yield "folder with unknown rope", config("rope", rope_scaling={"rope_type": "spiral", "factor": 2.0}), ("spiral",)
    yield "folder with rope factor 0", config("factor", rope_scaling={"rope_type": "linear", "factor": 0.0}), ("factor",)
    yield "folder with heads that do not divide", config("heads", num_attention_heads=5, head_dim=None), ()
    path = copy("comma")
    write(os.path.join(path, "config.json"), b'{"model_type": "llama",}')
    yield "config with a trailing comma", path, ("config.json",)
    path = copy("absent")
    os.remove(os.path.join(path, "model.safetensors"))
    yield "folder without weights", path, ("safetensors",)
    path = copy("tokenizer")
    os.remove(os.path.join(path, "tokenizer.json"))
    yield "folder without tokenizer.json", path, ("tokenizer.json",)
    for size in (2**63, 100000001, 0):
        yield f"safetensors with a header of {size} bytes", weights(f"header{size}", struct.pack("<Q", size) + data[8:]), ("safetensors",)
    yield "safetensors of 7 bytes", weights("seven", data[:7]), ("safetensors",)
    yield "safetensors cut in a tensor", weights("cut", data[:-1000]), ("safetensors",)
    yield ("safetensors without a tensor", weights("gone", data.replace(b"layers.1.mlp.up_proj", b"layers.1.mlp.xx_proj", 1)), ("up_proj",))
    path = copy("escape")
    os.rename(os.path.join(path, "model.safetensors"), os.path.join(folder, "outside.safetensors"))
    json.dump({"weight_map": {"model.norm.weight": "../outside.safetensors"}},
              open(os.path.join(path, "model.safetensors.index.json"), "w"))
    yield "index that leads out of the folder", path, ("../outside.safetensors",)


def models(checks, ctx):
    tiny, folder = context.tiny_models(), ctx.path("bad")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    good = tiny.write(folder, "llama-tied.q4_0")
    good_folder = tiny.write(folder, "llama-tied.hf-f32")
    refused(checks, "a missing file", ctx.compile(os.path.join(folder, "no-such.gguf"), "bad-out"), 1, "no-such.gguf")
    for name, path, needles in [*bad_gguf(ctx, folder, good), *bad_folders(ctx, folder, good_folder)]:
        refused(checks, name, ctx.compile(path, "bad-out", timeout=60), 1, *needles)
    checks.check("bad input leaves no output", not [f for f in os.listdir(ctx.work) if f.startswith("bad-out")])
    # byte-order marks and CRLF change nothing
    path = os.path.join(folder, "bom")
    shutil.copytree(good_folder, path)
    for side in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        text = open(os.path.join(good_folder, side), "rb").read()
        write(os.path.join(path, side), b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    result = common.run([ctx.llmc, "inspect", path])
    checks.check("accepted: side files with byte-order mark and CRLF", result.code == 0, result.errors.strip()[:200])
    return good


def usage(checks, ctx):
    exe = ctx.default()
    for name, command in (("llmc without arguments", [ctx.llmc]), ("unknown subcommand", [ctx.llmc, "frobnicate"]),
                          ("unknown flag of compile", [ctx.llmc, "compile", ctx.model, "--frobnicate"]),
                          ("compile without a model", [ctx.llmc, "compile"]),
                          ("unknown value of --compute", [ctx.llmc, "compile", ctx.model, "--compute=f17", "-o", ctx.path("bad-out")]),
                          ("executable: unknown subcommand", [exe, "frobnicate"]),
                          ("executable: unknown flag", [exe, "run", "x", "--frobnicate"]),
                          ("executable: threads = many", [exe, "run", "x", "--threads=many"])):
        refused(checks, name, common.run(command, timeout=60), 2)
    flags = open("/proc/cpuinfo").read()
    isa = "avx512vnni" if "avx512_vnni" not in flags else "amx"
    refused(checks, f"an instruction set that is not there ({isa})", common.run([exe, "run", "x", f"--isa={isa}"], timeout=60), 1, isa)


def packages(checks, ctx):
    """Executables that were cut or damaged."""
    exe, copy = ctx.default(), ctx.path("bad-package")
    size = os.path.getsize(exe)
    shutil.copyfile(exe, copy)
    os.chmod(copy, 0o755)
    os.truncate(copy, size - 1)
    refused(checks, "an executable with its last byte missing", common.run([copy, "info"], timeout=60), 1)
    os.truncate(copy, size // 2)
    refused(checks, "half an executable", common.run([copy, "run", "x"], timeout=60), 1)
    os.remove(copy)


def limited(limit):
    def before():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # write() then fails with EFBIG, as it does with ENOSPC on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return before


def full_disk(checks, ctx, good):
    folder = ctx.path("full")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True).returncode == 0
    try:
        command = [ctx.llmc, "compile", good, "-o", os.path.join(folder, "out")]
        process = subprocess.run(command, capture_output=True, timeout=300, env={**os.environ, **ctx.environment()},
                                 preexec_fn=None if mounted else limited(1 << 18))
        result = common.Result(process.returncode, process.stdout, process.stderr, 0, None, 0, 0)
        refused(checks, "a full disk" + ("" if mounted else " (file size limit)"), result, 1, folder)
        checks.check("a full disk leaves nothing half-written", os.listdir(folder) == [], os.listdir(folder))
    finally:
        if mounted:
            subprocess.run(["umount", folder], check=True)


def killed_worker(checks, ctx, good):
    """A worker that dies in mid-compile is an error that names its kernel."""
    cache = ctx.path("killed-cache")
    shutil.rmtree(cache, ignore_errors=True)
    process = subprocess.Popen([ctx.llmc, "compile", good, "-o", ctx.path("bad-out")], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env={**os.environ, "LLMC_CACHE_DIR": cache})
    killed, deadline = False, time.monotonic() + 120
    while process.poll() is None and not killed and time.monotonic() < deadline:
        for pid in common.tree(process.pid)[1:]:
            try:
                if b"--worker" in open(f"/proc/{pid}/cmdline", "rb").read():
                    os.kill(pid, signal.SIGKILL)
                    killed = True
                    break
            except OSError:
                pass
    errors = process.communicate(timeout=300)[1]
    if checks.check("a worker could be killed", killed):
        refused(checks, "a compile whose worker was killed", common.Result(process.returncode, b"", errors, 0, None, 0, 0), 1,
                ("kernel", "worker"), ("signal", "killed", "Killed"))
        checks.check("a killed worker leaves no output", not os.path.exists(ctx.path("bad-out")))
