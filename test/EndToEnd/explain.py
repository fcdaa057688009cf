"""llmc explain: the work of every kernel against a count of our own, the three forms of the answer, profiles."""
import html.parser
import json
import os
import re
import xml.etree.ElementTree

import common
import context

# name -> (flags of compile, whether activations are rounded to codes, a bias on q, k and v, a window)
MODELS = {
    "llama-tied.f32": ((), False, False, 0),
    "llama-tied.q4_1": ((), True, False, 0),
    "llama3-untied.f16": ((), False, False, 0),
    "qwen2.q4_1": (("--compute=f32",), False, True, 0),
    "mistral-window.hf-f32": ((), False, False, 24),
}
STEPS = [(1, 1, 100), (1, 17, 17), (3, 5, 60), (1, 40, 50), (16, 1, 200)]


def explained(ctx, exe, *flags):
    return json.loads(common.must([ctx.llmc, "explain", exe, "--format=json", *flags], timeout=60).out)


def step_flags(step):
    return [f"--batch={step[0]}", f"--tokens={step[1]}", f"--context={step[2]}"]


def seen(position, window):
    return min(position + 1, window) if window else position + 1


def flops(model, step, coded, bias, window):
    """FLOPs of a step of the Llama family, written from the papers and not from the compiler."""
    sequences, tokens, cached = step
    hidden, heads, kv, dim, ffn = (model[key] for key in ("hidden", "heads", "kv_heads", "head_dim", "ffn"))
    layer = 2 * hidden * (heads + 2 * kv) * dim + 2 * heads * dim * hidden + 6 * hidden * ffn  # products
    layer += 2 * hidden                                # residuals
    layer += 2 * 4 * hidden + 5 * ffn                  # norms, activation of the gate
    layer += 6 * (dim // 2) * (heads + kv)             # rotary embedding
    layer += (heads + 2 * kv) * dim if bias else 0
    layer += 4 * (2 * hidden + heads * dim + ffn) if coded else 0
    per_token = model["layers"] * layer + 3 * (dim // 2)
    per_row = 2 * hidden * model["vocab"] + 4 * hidden + (4 * hidden if coded else 0)
    pairs = sum(seen(position, window) for position in range(cached - tokens, cached))
    return sequences * (tokens * per_token + per_row + model["layers"] * 4 * heads * dim * pairs)


def weight_bytes(manifest):
    """What a step reads whole: all but an embedding that is not the head's, too."""
    tied = not any(weight["name"] == "output" for weight in manifest["weights"])
    return sum(weight["bytes"] for weight in manifest["weights"] if tied or weight["name"] != "token_embd")


def one(checks, ctx, name, flags, coded, bias, window):
    exe = ctx.executable(f"explain-{name}", context.tiny_models().write(ctx.work, name), *flags)
    manifest = ctx.package(exe).manifest
    model = manifest["model"]
    kv = next(item["bytes"] for item in manifest["ledger"] if item["name"] == "kv per token")
    for step in STEPS:
        label, answer = f"{name}, step {step}", explained(ctx, exe, *step_flags(step))
        kernels, total = answer["kernels"], answer["total"]
        want = flops(model, step, coded, bias, window)
        checks.check(f"{label}: FLOPs as counted by hand", total["flops"] == want, f"{total['flops']:.0f}, by hand {want}")
        gathered = sum(kernel["weight_bytes"] for kernel in kernels if kernel["op"] == "token_embd")
        checks.check(f"{label}: weights read once are the package's", total["weight_bytes"] - gathered == weight_bytes(manifest),
                     f"{total['weight_bytes'] - gathered:.0f} of {weight_bytes(manifest)}")
        sequences, tokens, cached = step
        read = min(cached, window + tokens - 1) if window else cached
        checks.check(f"{label}: KV bytes are the ledger's", total["kv_bytes"] == sequences * (read + tokens) * kv, total["kv_bytes"])
        for key in ("flops", "bytes", "weight_bytes", "activation_bytes", "kv_bytes", "predicted_seconds"):
            whole = sum(kernel[key] for kernel in kernels)
            if abs(whole - total[key]) > 1e-9 * total[key]:
                checks.check(f"{label}: {key} of the kernels add up", False, f"{whole} and {total[key]}")
        launches = len(json.loads(common.must([exe, "info", "--json"]).out)["ops"])
        checks.check(f"{label}: every launch is in a row", sum(kernel["launches"] for kernel in kernels) == launches)


def work(checks, ctx):
    for name, (flags, coded, bias, window) in MODELS.items():
        checks.group(name, one, ctx, name, flags, coded, bias, window)


class Balanced(html.parser.HTMLParser):
    """Raises unless every tag is closed by its own."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"</{tag}> at {self.getpos()} closes nothing")


def page(checks, label, text):
    parser = Balanced()
    parser.feed(text)
    parser.close()
    checks.check(f"{label}: tags are balanced", parser.open == [], parser.open)
    checks.check(f"{label}: nothing from elsewhere", not re.search(r"https?:|src=|href=|url\(|<script|@import", text))
    picture = xml.etree.ElementTree.fromstring(re.search(r"<svg.*</svg>", text, re.S)[0])
    box = [float(x) for x in picture.get("viewBox").split()]
    inside = all(0 < float(c.get("cx")) < box[2] and 0 < float(c.get("cy")) < box[3] for c in picture.iter("circle"))
    checks.check(f"{label}: a picture with every point inside", inside and len(list(picture.iter("circle"))) >= 5)


def forms(checks, ctx, label, exe, *flags):
    """JSON, text and page of the same step."""
    answer = explained(ctx, exe, *flags)
    text = common.must([ctx.llmc, "explain", exe, *flags], timeout=60).text
    rows = [line for line in text.splitlines() if re.match(r"\s+\d+ +[\d.]+ +[\d.]+", line)]
    checks.check(f"{label}: a line for every kernel, and a total", len(rows) == len(answer["kernels"]) + 1, f"{len(rows)} lines")
    checks.check(f"{label}: what bounds the step", re.search(r"^bound by (memory|compute): \d+ %", text, re.M) and "predicted: at least" in text)
    output = ctx.path("explain.html")
    common.must([ctx.llmc, "explain", exe, "--format=html", "-o", output, *flags], timeout=60)
    with open(output, encoding="utf-8") as file:
        page(checks, label, file.read())
    return answer, text


def profiles(checks, ctx):
    exe = ctx.executable("explain-llama-tied.q4_1", context.tiny_models().write(ctx.work, "llama-tied.q4_1"))
    file = ctx.path("tiny.profile.json")
    bench = common.must([exe, "bench", f"--profile={file}", "--prompt", 40, "--batch", "1,2", "--repeat", 3, "--threads", 2], timeout=60)
    checks.check("bench --profile prints a table of each step", bench.text.count("; its launches: ") == 4 and "attn_qkv (linear" in bench.text)
    chunked = common.must([exe, "bench", "--prompt", 40, "--gen", 2, "--repeat", 1, "--chunk", 7, "--batch", 2], timeout=60)
    drawn = common.must([exe, "bench", "--prompt", 40, "--gen", 2, "--repeat", 1, "--batch", 2, "--temperature", 0.8, "--top-p", 0.9], timeout=60)
    checks.check("bench --top-p measures", json.loads(drawn.text)["batches"][0]["decode_tokens_per_second"] > 0)
    checks.check("bench --chunk measures", json.loads(chunked.text)["batches"][0]["prefill_tokens_per_second"] > 0)
    for flags, step in (((), [1, 40, 40]), (("--tokens=1",), [1, 1, 41]), (("--batch=2", "--tokens=40"), [2, 40, 40])):
        label = " ".join(["profile", *flags])
        answer, text = forms(checks, ctx, label, exe, f"--profile={file}", *flags)
        checks.check(f"{label}: is the step asked for", [answer["step"][key] for key in ("sequences", "tokens", "context")] == step, answer["step"])
        with open(file, encoding="utf-8") as source:
            measured = next(s for s in json.load(source)["steps"] if [s["sequences"], s["tokens"], s["context"]] == step)
        whole = sum(launch["seconds"] for launch in measured["launches"])
        checks.check(f"{label}: no measured time is lost", abs(answer["total"]["measured_seconds"] - whole) < 1e-9 and answer["total"]["step_seconds"] == measured["seconds"])
        checks.check(f"{label}: most time first", [k["measured_seconds"] for k in answer["kernels"]] == sorted((k["measured_seconds"] for k in answer["kernels"]), reverse=True))
        checks.check(f"{label}: fraction of the bound", all(abs(k["fraction_of_bound"] * k["measured_seconds"] - k["predicted_seconds"]) < 1e-12 for k in answer["kernels"]))
        checks.check(f"{label}: the text has the measured times", "of bound" in text and "measured (" in text)


def smollm2(checks, ctx):
    exe = ctx.default()
    manifest = ctx.package(exe).manifest
    answer, _ = forms(checks, ctx, "SmolLM2, decoding", exe)
    parameters = 134_515_008 - 61 * 576  # of matrices, the tied one once; norms beside them
    attention = 30 * 9 * 64 * (4 * 1024 + 4)  # scores and sums; rounding of the result
    products = sum(k["flops"] for k in answer["kernels"] if k["arithmetic"] == "int16")
    checks.check("SmolLM2: two FLOPs a parameter and token, within 0.1 %", abs(products / (2 * parameters) - 1) < 1e-3, f"{products / (2 * parameters):.6f}")
    attn = next(k for k in answer["kernels"] if k["op"] == "attn")
    kv = 1024 * next(i["bytes"] for i in manifest["ledger"] if i["name"] == "kv per token")
    checks.check("SmolLM2: attention over 1,024 tokens", (attn["flops"], attn["kv_bytes"]) == (attention, kv),
                 f"{attn['flops']:.0f} FLOPs and {attn['kv_bytes']} bytes, by hand {attention} and {kv}")
    checks.check("SmolLM2: decoding waits for memory", answer["total"]["memory_bound_share"] > 0.9, answer["total"]["memory_bound_share"])
    answer, _ = forms(checks, ctx, "SmolLM2, prompt of 512", exe, "--tokens=512")
    checks.check("SmolLM2: a prompt waits for arithmetic", answer["total"]["memory_bound_share"] < 0.5, answer["total"]["memory_bound_share"])
    result = ctx.compile(ctx.model, "explain-cuda", "--target=cuda:sm_90a", "--ptx-only")
    if not checks.check("SmolLM2 for a GPU compiles", result.code == 0, result.errors.strip()[-300:] if result.code else ""):
        return
    gpu = ctx.path("explain-cuda")
    answer, _ = forms(checks, ctx, "SmolLM2 on a GPU that is not here", gpu, "--batch=16", "--context=2048", "--hardware=h200-sxm")
    products = sum(k["flops"] for k in answer["kernels"] if k["arithmetic"] == "bf16" and k["weight_bytes"])
    checks.check("SmolLM2 on a GPU: two FLOPs a parameter and token, within 0.1 %", abs(products / (32 * parameters) - 1) < 1e-3, f"{products / (32 * parameters):.6f}")
    checks.check("SmolLM2 on a GPU: the card that was asked for", answer["hardware"]["bytes_per_second"] == 4.8e12)
    os.remove(gpu)


def refusal(checks, label, command, code, part):
    result = common.run(command, timeout=60)
    checks.check(f"{label}: exit {code}, one line that says why", result.code == code and part in result.errors and result.errors.count("\n") == 1,
                 f"exit {result.code}: {result.errors.strip()[-200:]}")


def refused(checks, ctx):
    tiny = context.tiny_models()
    exe = ctx.executable("explain-llama-tied.q4_1", tiny.write(ctx.work, "llama-tied.q4_1"))
    other = ctx.executable("explain-llama-tied.f32", tiny.write(ctx.work, "llama-tied.f32"))
    good, file = ctx.path("good.profile.json"), ctx.path("bad.profile.json")
    common.must([exe, "bench", f"--profile={good}", "--prompt", 8, "--repeat", 1], timeout=60)
    command = [ctx.llmc, "explain", exe]
    refusal(checks, "profile of another model", [ctx.llmc, "explain", other, f"--profile={good}"], 1, f"{good}: expected a profile of {other}")
    refusal(checks, "profile without that step", [*command, f"--profile={good}", "--batch=4"], 1,
            f"{good}: expected one of its steps (--tokens=8 --batch=1 --context=8; --tokens=1 --batch=1 --context=9), got --batch=4")
    refusal(checks, "profile that is not there", [*command, "--profile=/nowhere/p.json"], 1, "/nowhere/p.json")
    for label, text in (("no JSON", "profile"), ("another JSON", "{\"a\": 1}"), ("half a profile", None)):
        with open(good, encoding="utf-8") as source:
            whole = source.read()
        with open(file, "w", encoding="utf-8") as target:
            target.write(text if text else whole[:len(whole) // 2])
        refusal(checks, label, [*command, f"--profile={file}"], 1, f"{file}: expected a profile of EXE bench --profile, got")
    changed = json.loads(whole)
    changed["steps"][0]["launches"][3]["kernel"] = "another"
    with open(file, "w", encoding="utf-8") as target:
        json.dump(changed, target)
    refusal(checks, "profile of other kernels", [*command, f"--profile={file}"], 1, "launches[3]: expected kernel")
    refusal(checks, "bench that draws from nothing", [exe, "bench", "--top-p", 1.5], 2, "--top-p: expected a number from 0 to 1, got '1.5'")
    refusal(checks, "bench in chunks larger than a step", [exe, "bench", "--chunk", 513], 1, "--chunk: expected at most 512 tokens")
    refusal(checks, "too many tokens", [*command, "--tokens=513"], 1, "--tokens: expected at most 512 new tokens for each of 1 sequences")
    refusal(checks, "too much context", [*command, "--context=1000000"], 1, "--context: expected 1 (the new tokens) to")
    refusal(checks, "an unknown machine", [*command, "--hardware=h200-sxm"], 1, "--hardware: expected vm-2, laptop-ddr4")
    refusal(checks, "an unknown instruction set", [*command, "--isa=sm_90a"], 1, "--isa: expected avx2")
    refusal(checks, "a file that is no package", [ctx.llmc, "explain", file], 1, file)
    refusal(checks, "an unknown form", [*command, "--format=xml"], 2, "--format: expected text, json, html")
    refusal(checks, "a file that cannot be written", [*command, "-o", "/nowhere/x"], 1, "/nowhere/x")
