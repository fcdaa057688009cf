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
import split


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


def bad_keys(ctx, folder, good):
    """(name, path, needles) of well-formed GGUF files whose keys or tensors are wrong."""
    pairs, table = split.take_apart(good)

    def file(name, content):
        return write(os.path.join(folder, name.replace(" ", "-").replace("/", "-") + ".gguf"), content)

    def key(name, kind, value, what):
        changed = [(k, raw) for k, raw in pairs if k != name] + [(name, string(name.encode()) + struct.pack("<I", kind) + value)]
        return f"GGUF with {what}", file(what, split.put_together(changed, table)), (name,)

    u32, i32, f32 = (lambda v: struct.pack("<I", v)), (lambda v: struct.pack("<i", v)), (lambda v: struct.pack("<f", v))
    yield key("llama.context_length", 8, string(b"256"), "a length that is a string")
    yield key("llama.block_count", 6, f32(2.0), "a float of layers")
    yield key("llama.block_count", 4, u32(2**31 - 1), "2^31 layers")[:2] + ("blk.2.",)
    yield key("llama.embedding_length", 4, u32(0), "hidden size 0")
    yield key("llama.attention.head_count", 5, i32(-4), "negative heads")
    yield key("llama.attention.head_count_kv", 4, u32(3), "kv heads that do not divide")
    yield key("llama.attention.value_length", 4, u32(16), "values shorter than keys")
    yield key("llama.rope.dimension_count", 4, u32(31), "an odd number of rotated dimensions")
    yield key("llama.attention.layer_norm_rms_epsilon", 6, f32(float("nan")), "epsilon NaN")
    yield key("llama.attention.sliding_window", 5, i32(-1), "a negative window")
    yield key("llama.rope.scaling.type", 8, string(b"spiral"), "unknown rope scaling")
    yield key("llama.rope.scaling.factor", 6, f32(0.0), "rope factor 0")
    yield key("general.alignment", 5, i32(32), "a signed alignment")
    yield key("tokenizer.ggml.tokens", 9, struct.pack("<IQI", 5, 1, 1), "tokens that are numbers")
    yield key("tokenizer.ggml.scores", 9, struct.pack("<IQ", 0, 269) + bytes(269), "scores that are bytes")
    yield key("tokenizer.ggml.token_type", 9, struct.pack("<IQi", 5, 1, 1), "too few token types")
    yield key("tokenizer.ggml.eos_token_id", 4, u32(2**31), "an end token out of range")
    yield key("tokenizer.ggml.model", 8, string(b"abacus"), "an unknown tokenizer")
    yield key("tokenizer.chat_template", 8, string(b"{% if %}"), "a broken template")[:2] + ("template:1:7",)
    yield "GGUF with a key twice", file("twice", split.put_together(pairs + pairs[:1], table)), (pairs[0][0], "once")
    yield "GGUF with a tensor twice", file("tensor-twice", split.put_together(pairs, table + table[:1])), (table[0][0], "once")
    yield "GGUF with tensors that overlap", file("overlap", split.put_together(pairs, table, {table[1][0]: 32})), (table[1][0], table[0][0])
    yield "GGUF with a tensor off its alignment", file("align", split.put_together(pairs, table, {table[1][0]: 33})), (table[1][0], "33")
    entry = table[1][1]
    zero = [table[0], [table[1][0], entry[:-12] + struct.pack("<QI", 0, struct.unpack("<I", entry[-4:])[0]), table[1][2]], *table[2:]]
    yield "GGUF with an extent of 0", file("zero", split.put_together(pairs, zero)), (table[1][0],)
    retired = [table[0], [table[1][0], entry[:-4] + struct.pack("<I", 36), table[1][2]], *table[2:]]
    yield "GGUF with a retired tensor type", file("retired", split.put_together(pairs, retired)), (table[1][0], "IQ4_NL_4_4")
    deep = string(b"deep") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 60 + struct.pack("<IQ", 4, 0)
    yield "GGUF with 60 nested arrays", file("deep", split.put_together(pairs + [("deep", deep)], table)), ("deep",)
    parts = split.split(good, folder, 3)
    os.remove(parts[1])
    yield "split GGUF without its second part", parts[0], ("m-00002-of-00003.gguf", "part 2 of 3")
    yield "split GGUF under another name", shutil.copyfile(parts[0], os.path.join(folder, "renamed.gguf")), ("split.no", "-00001-of-00003.gguf")


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
    path = copy("link")
    os.rename(os.path.join(path, "config.json"), os.path.join(folder, "outside.json"))
    os.symlink("../outside.json", os.path.join(path, "config.json"))
    yield "config.json that is a link out of the folder", path, ("config.json", "outside.json")
    path = copy("utf16")
    text = open(os.path.join(path, "config.json"), encoding="utf-8").read()
    write(os.path.join(path, "config.json"), text.encode("utf-16"))
    yield "config.json in UTF-16", path, ("config.json", "UTF-16")
    path = copy("deep")
    write(os.path.join(path, "generation_config.json"), b"[" * 100000)
    yield "generation_config.json of 100000 brackets", path, ("generation_config.json", "128 nested")
    for key, value in (("hidden_size", 64.5), ("intermediate_size", -96), ("num_hidden_layers", 0), ("vocab_size", 2**63), ("rms_norm_eps", 0),
                       ("num_key_value_heads", 3), ("max_position_embeddings", "256"), ("rope_theta", 0), ("head_dim", 0),
                       ("hidden_act", "gelu"), ("partial_rotary_factor", 2), ("quantization_config", {"quant_method": "gptq"})):
        yield f"folder with {key} {value}", config(f"number-{key}", **{key: value}), (key,)
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    names = [name for name in header if name != "__metadata__"]

    def headed(name, change):
        changed = json.loads(json.dumps(header))
        change(changed)
        text = json.dumps(changed).encode()
        return weights(name, struct.pack("<Q", len(text)) + text + data[8 + struct.unpack("<Q", data[:8])[0]:])

    first, second = names[:2]
    yield "safetensors whose tensors overlap", headed("overlap", lambda h: h[second].update(data_offsets=h[first]["data_offsets"], shape=h[first]["shape"])), (second,)
    yield "safetensors with a hole", headed("hole", lambda h: h.pop(first)), ("cover",)
    yield "safetensors with a wrong span", headed("span", lambda h: h[first].update(shape=[1])), (first, "data_offsets")
    yield "safetensors with an unknown type", headed("dtype", lambda h: h[first].update(dtype="F7")), (first, "F7")
    yield "safetensors with a negative extent", headed("negative", lambda h: h[first].update(shape=[-1, 96])), (first, "shape")
    yield "safetensors with extents that overflow", headed("overflow", lambda h: h[first].update(shape=[2**40, 2**40])), (first, "shape")
    yield "safetensors with metadata that is a number", headed("metadata", lambda h: h.update(__metadata__={"a": 1})), ("__metadata__",)


def models(checks, ctx):
    tiny, folder = context.tiny_models(), ctx.path("bad")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    good = tiny.write(folder, "llama-tied.q4_0")
    good_folder = tiny.write(folder, "llama-tied.hf-f32")
    refused(checks, "a missing file", ctx.compile(os.path.join(folder, "no-such.gguf"), "bad-out"), 1, "no-such.gguf")
    for name, path, needles in [*bad_gguf(ctx, folder, good), *bad_keys(ctx, folder, good), *bad_folders(ctx, folder, good_folder)]:
        refused(checks, name, ctx.compile(path, "bad-out", timeout=60), 1, *needles)
        for sub in ("inspect", "plan"):
            # A plan needs no weights and neither looks at the template.
            if "template" in name or (sub == "plan" and name == "folder without weights"):
                continue
            refused(checks, f"{sub}: {name}", common.run([ctx.llmc, sub, path], timeout=60), 1, *needles)
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
