"""Compiling for a GPU on a machine without one. What the kernels compute is checked on a GPU, by benchmarks/device.sh."""
import ctypes
import json
import os
import re
import shutil

import common
import context
from bad_input import refused

TARGET = "--target=cuda:sm_90a"
# One of each kind of weights; the kit of scripts/make-device-kit.sh compiles them all.
TINY = ("llama-tied.f32", "llama-tied.q4_0", "qwen2.q8_0", "mistral-mqa.hf-bf16", "gemma2.hf-f32", "granite-swa.hf-f32")
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 352, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 999, "max_position_embeddings": 512}


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


def gate(checks, label, result):
    """No spills, in a compile that ended well; a machine without ptxas has no gate, and a warning instead."""
    if "warning: no ptxas" in result.errors:
        checks.note(f"{label}: no ptxas on this machine, kernels not gated")
        return
    found = re.search(r"sm_90a: no spills, at most (\d+) registers", result.errors)
    checks.check(f"{label}: kernels without spills", found is not None, found[0] if found else result.errors.strip()[-300:])


def compiled(checks, ctx, label, model, name, *flags):
    """The path of what llmc made; None if it failed."""
    result = ctx.compile(model, name, TARGET, *flags)
    if not checks.check(f"{label}: compiles", result.code == 0, result.errors.strip()[-300:] if result.code else f"{result.seconds:.1f} s"):
        return None
    gate(checks, label, result)
    return ctx.path(name)


def starts(checks, label, exe, command=("run", "--raw", "x")):
    """The executable starts, says what it would take, and that there is no GPU. `command`: one that needs it."""
    info = common.run([exe, "info"], timeout=60)
    checks.check(f"{label}: info prints the memory on the GPU", info.code == 0 and "GPU, own allocations" in info.text, info.errors.strip()[-200:])
    if has_driver():
        checks.note(f"{label}: this machine has a CUDA driver; running is for benchmarks/device.sh")
        return
    refused(checks, f"{label}: {command[0]} without a driver", common.run([exe, *command], timeout=60), 1, "no CUDA driver")


def tiny_models(checks, ctx):
    tiny = context.tiny_models()
    for name in TINY:
        if exe := compiled(checks, ctx, name, tiny.write(ctx.work, name), f"{name}-cuda"):
            starts(checks, name, exe)
            manifest = ctx.package(exe).manifest
            checks.check(f"{name}: one module, for sm_90a, nothing on the reference",
                         manifest["isas"] == ["sm_90a"] and manifest["reference_ops"] == [], manifest["isas"])


def smollm2(checks, ctx):
    exe = compiled(checks, ctx, "SmolLM2", ctx.model, "smollm2-cuda")
    if not exe:
        return
    starts(checks, "SmolLM2", exe)
    info = json.loads(common.must([exe, "info", "--json", "--context", 1024]).out)
    items = {item["name"]: item["bytes"] for item in info["memory"]["items"] if item["kind"] == "device"}
    # 30 layers, 3 KV heads of 64, K and V in bf16
    checks.check("SmolLM2: KV pool of 1,024 tokens, up to pieces of 2 MiB", 0 <= items["kv pool"] - 1024 * 30 * 3 * 64 * 4 < 2 << 20, items["kv pool"])
    checks.check("SmolLM2: the parts on the GPU add up", sum(items.values()) == info["memory"]["device_bytes"])
    result = common.run([ctx.llmc, "plan", ctx.model, TARGET, "--context=1024", "--memory=80GiB"], timeout=60)
    total = re.search(r"^\s*total\s+(\d+)", result.text, re.M)
    checks.check("SmolLM2: plan says what info says", result.code == 0 and total and int(total[1]) == info["memory"]["device_bytes"],
                 result.errors.strip()[-200:] or (total and total[1]))
    checks.check("SmolLM2: plan says how many tokens fit", "tokens of KV fit" in result.text)
    refused(checks, "plan with 50 MiB", common.run([ctx.llmc, "plan", ctx.model, TARGET, "--memory=50MiB"], timeout=60), 1, "the model needs")
    os.remove(exe)


def separate(checks, ctx):
    """Weights beside the executable, and what happens when they are not."""
    folder = ctx.path("separate-cuda")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    exe = compiled(checks, ctx, "separate weights", ctx.model, "separate-cuda/smollm2", "--weights=separate", "--max-shard-size=48MiB")
    if not exe:
        return
    shards = sorted(f for f in os.listdir(folder) if ".weights" in f)
    sizes = [os.path.getsize(os.path.join(folder, f)) for f in shards]
    checks.check("separate weights: shards of at most 48 MiB", len(shards) == 2 and max(sizes) <= 48 << 20, f"{shards}, {sizes}")
    checks.check("separate weights: little else in the executable", os.path.getsize(exe) < 16 << 20, common.mebibytes(os.path.getsize(exe)))
    good = common.run([exe, "weights", "--check"], timeout=120)
    checks.check("separate weights: hashes fit", good.code == 0, (good.text + good.errors).strip()[-150:])
    last = os.path.join(folder, shards[-1])
    os.truncate(last, sizes[-1] - 1)
    for command in (["weights"], ["run", "x"]):
        refused(checks, f"{command[0]} with a shard cut short", common.run([exe, *command], timeout=60), 1, shards[-1])
    os.remove(last)
    for command in (["weights"], ["run", "x"]):
        refused(checks, f"{command[0]} without a shard", common.run([exe, *command], timeout=60), 1, shards[-1])
    elsewhere = common.run([exe, "weights", "--weights-dir", ctx.path("nowhere")], timeout=60)
    refused(checks, "weights in a folder that is not there", elsewhere, 1, "nowhere")
    shutil.rmtree(folder)


def random_weights(checks, ctx):
    folder = ctx.path("config-only")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    made = {}
    for storage in ("bf16", "q4_0"):
        exe = compiled(checks, ctx, f"config.json alone, {storage}", folder, f"random-{storage}", "--weights=random:1", f"--random-storage={storage}")
        if exe:
            starts(checks, f"config.json alone, {storage}", exe, ("bench", "--prompt", "8", "--gen", "4")) # no tokenizer, so that run says that first
            made[storage] = common.must([exe, "weights"], timeout=60).text
    checks.check("random weights: the recipe is told", all("random, seed 1" in text for text in made.values()), made)
    refused(checks, "config.json alone, without --weights=random", ctx.compile(folder, "bad-out", TARGET), 1, ("random", "safetensors"))


def head_groups(checks, ctx):
    """Numbers of query heads on a KV head for which rows of tokens and heads are no multiples of four, with heads of 128: their kernels
    take the most registers."""
    for name, heads, kv_heads in (("Llama-3.2-3B", 6, 2), ("Qwen2.5-7B", 14, 2)):
        folder = ctx.path(f"heads-{heads}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({**CONFIG, "num_hidden_layers": 1, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": 128}, file)
        compiled(checks, ctx, f"heads as in {name}", folder, f"heads-{heads}-cuda", "--weights=random:1")


def flags(checks, ctx):
    model = context.tiny_models().write(ctx.work, "llama-tied.q4_0")
    texts = {}
    for name, more in (("plain", ()), ("trap", ("--trap-checks",))):
        result = ctx.compile(model, f"{name}.ptx", TARGET, "--emit=ptx", *more)
        if not checks.check(f"--emit=ptx {' '.join(more)}", result.code == 0, result.errors.strip()[-300:] if result.code else ""):
            return
        with open(ctx.path(f"{name}.ptx"), encoding="utf-8") as file:
            texts[name] = file.read()
    checks.check("PTX is for sm_90a", ".target sm_90a" in texts["plain"])
    traps = {name: len(re.findall(r"^\s*(?:@%p\d+ )?trap;", text, re.M)) for name, text in texts.items()}
    checks.check("--trap-checks adds traps", traps["trap"] > traps["plain"] == 0, traps)
    again = ctx.compile(model, "again.ptx", TARGET, "--emit=ptx", "--no-cache")
    same = again.code == 0 and open(ctx.path("again.ptx"), encoding="utf-8").read() == texts["plain"]
    checks.check("compiling twice, the second time without the cache, gives the same PTX", same, again.errors.strip()[-200:] if again.code else "")
    for target in ("cuda:sm_80", "cuda", "rocm"):
        refused(checks, f"--target={target}", ctx.compile(model, "bad-out", f"--target={target}"), 2, "--target", "cuda:sm_90a", target)
    refused(checks, "--compute=q8 on a GPU", ctx.compile(model, "bad-out", TARGET, "--compute=q8"), 2, "--compute", "q8")
    checks.check("what was refused left no output", not [f for f in os.listdir(ctx.work) if f.startswith("bad-out")])


def device_script(checks, ctx):
    """benchmarks/device.sh: wrong use is told, and no GPU is no crash."""
    script = os.path.join(common.ROOT, "benchmarks", "device.sh")
    for name, command in (("without a kit", [script]), ("with a folder that is no kit", [script, ctx.work]),
                          ("with an unknown group", [script, ctx.work, "--only", "everything"])):
        refused(checks, f"device.sh {name}", common.run(command, timeout=60), 2)
