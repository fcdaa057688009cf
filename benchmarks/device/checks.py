"""Checks beside the numerics: that it starts, the conformance suite, errors, memory, compute-sanitizer."""
import json
import os
import re
import shutil
import subprocess
import time

import kit as kits
from report import Skip


def smoke(report, kit):
    def answer():
        result = report.run([kit.smollm2(), "run", "What is the capital of France?", "--stats"], timeout=90)
        text = result.out.decode("utf-8", "replace")
        report.check("SmolLM2 answers", result.code == 0 and "Paris" in text, text.strip()[:120] if result.code == 0 else result.why())
        if found := re.search(r"load ([\d.]+) ms, prefill (\d+) tokens ([\d.]+) ms.*\nfirst token ([\d.]+) ms after start, then (\d+) tokens of ([\d.]+) ms",
                              result.err):
            report.figure("smollm2.run", {"load_ms": float(found[1]), "prompt_tokens": int(found[2]), "prefill_ms": float(found[3]),
                                          "first_token_ms_after_exec": float(found[4]), "ms_per_token": float(found[6])})

    def info(name, exe):
        result = report.run([exe, "info"])
        report.check(f"{name}: info", result.code == 0 and b"memory while serving" in result.out, "" if result.code == 0 else result.why())

    refused = kit.about["ptx_only"] | kit.about["left_out"]
    report.check("every package passed the gate of the kernels (ptxas: no spills)", not refused, ", ".join(refused))
    report.step("SmolLM2 answers", answer)
    report.step("info of SmolLM2", lambda: info("SmolLM2", kit.smollm2()))
    report.step("info of a tiny model", lambda: info("llama-tied.q4_0", kit.path("tiny", "llama-tied.q4_0")))


# Of llmc-kernel-check. Its reference is a plain loop in double precision on the CPU, hence the limit on a step's tokens.
STEPS, STEP_TOKENS, CASES = 12, 300, 1000

# ---- conformance ----------------------------------------------------------------------------------------------------


def last_line(result):
    lines = result.out.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def conformance(report, kit):
    def suite(name):
        result = report.run([kit.path("llmc-cts"), kit.path("tiny", name)], timeout=120)
        report.check(f"llmc-cts on {name}", result.code == 0, last_line(result) if result.code == 0 else result.why(), seconds=round(result.seconds, 1))

    def kernels(name):
        path = os.path.join(kit.work, "kernels.json")
        result = report.run([kit.path("llmc-kernel-check"), kit.path("check", name), "--steps", STEPS, "--max-tokens", STEP_TOKENS, "--json", path],
                            timeout=90)
        figures = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            os.remove(path)
            figures = {key: found[key] for key in ("cases", "failed") if key in found}
            cases.append(figures.get("cases", 0))
        report.check(f"llmc-kernel-check on {name}", result.code == 0, last_line(result) if result.code == 0 else result.why(),
                     seconds=round(result.seconds, 1), **figures)

    cases = []
    for name in ("llama-tied.bf16", "llama3-untied.f16", "qwen2.q4_1", "llama-tied.f32-on-cpu"):
        report.step(f"llmc-cts on {name}", suite, name)
    if not kit.names("check"):
        report.skip("llmc-kernel-check", "the kit has no random-shape packages")
    for name in kit.names("check"):
        report.step(f"llmc-kernel-check on {name}", kernels, name)
    if cases:
        report.check(f"at least {CASES} cases of kernels against the reference", sum(cases) >= CASES, cases=sum(cases))


# ---- compute-sanitizer ----------------------------------------------------------------------------------------------

IDS = [40 + i % 50 for i in range(150)]  # chunks of 100 and 50: pipelines for many tokens and kernels for few


def sanitizer_tool():
    for path in (shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer"):
        if path and os.path.exists(path):
            return path
    raise Skip("there is no compute-sanitizer on this machine")


def sanitizer(report, kit):
    def one(path, tool, label, command):
        result = report.run([path, "--tool", tool, "--target-processes", "all", "--error-exitcode", "9", *command], timeout=150)
        text = result.out.decode("utf-8", "replace") + result.err
        if "Device not supported" in text:
            raise Skip("compute-sanitizer says: device not supported (a sandboxed GPU)")
        found = re.findall(r"ERROR SUMMARY: .*|RACECHECK SUMMARY: .*", text)
        report.check(f"{tool} on {label}", result.code == 0 and bool(found), found[-1] if found else result.why(), seconds=round(result.seconds, 1))

    path = sanitizer_tool()
    out = os.path.join(kit.work, "sanitizer.f32")
    for name in ("llama-tied.q4_0", "llama-tied.bf16", "d80.hf-f32", "d256.hf-f32"):
        package = kit.path("tiny", name)
        commands = [(f"logits of {name}", [kit.path("llmc-runtime"), "logits", "--token-ids", json.dumps(IDS), "--output", out, "--chunk", 100,
                                           "--package", package])]
        try:
            if name.startswith("llama"):  # slow, and the same for every size of a head
                commands.insert(0, (f"llmc-cts --quick of {name}", [kit.path("llmc-cts"), "--quick", package]))
        except Skip as reason:
            report.skip(f"llmc-cts --quick of {name}", reason)
        for label, command in commands:
            for tool in ("memcheck", "racecheck", "synccheck"):
                report.step(f"{tool} on {label}", one, path, tool, label, command)


# ---- errors ---------------------------------------------------------------------------------------------------------


def errors(report, kit):
    def refused(name, command, *words):
        result = report.run(command, timeout=90)
        missing = [word for word in words if word not in result.err]
        report.check(f"{name}: exit 1 with an error that says so", result.code == 1 and not missing, result.why() + (f"; without {missing}" if missing else ""))

    exe = kit.path("tiny", "llama-tied.q4_0")
    report.step("device 99", lambda: refused("device 99", [exe, "run", "x", "--device", 99], "99"))
    report.step("4 TiB of KV cache", lambda: refused("4 TiB of KV cache", [exe, "run", "x", "--kv-memory", "4096GiB"], "what fits is a KV pool of", "tokens"))
    report.step("no visible device", lambda: refuse_hidden(report, exe))
    report.step("shards that are not there", lambda: refused("shards that are not there", [kit.path("smollm2"), "run", "x", "--weights-dir", kit.path("tiny")], "smollm2.weights"))


def refuse_hidden(report, exe):
    result = report.run([exe, "run", "x"], env={"CUDA_VISIBLE_DEVICES": ""})
    report.check("no visible device: exit 1 with an error", result.code == 1 and "error:" in result.err, result.why())


# ---- memory ---------------------------------------------------------------------------------------------------------

MIB = 1 << 20


def memory(report, kit):
    """The ledger of `info` beside what nvidia-smi shows while the model runs."""
    def one(name, exe):
        flags = ["--kv-memory", "1GiB"]
        gpu = json.loads(report.must([exe, "info", "--json", *flags]).out)["gpu"]
        idle = kits.used_mib()
        process = subprocess.Popen([exe, "bench", "--prompt", "200", "--gen", "50", "--repeat", "40", *flags], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        peak, deadline = idle, time.monotonic() + report.limit(90)
        while process.poll() is None and time.monotonic() < deadline:
            peak = max(peak, kits.used_mib())
            time.sleep(0.05)
        if process.poll() is None:
            process.kill()
        process.wait()
        out = process.stdout.read()
        process.stdout.close()
        seen, own = (peak - idle) * MIB, gpu["own_bytes"]
        context = gpu["empty_context_bytes"] - idle * MIB
        off = seen - own - context
        report.check(f"{name}: own allocations and an empty context are what nvidia-smi shows, within 1 % or 64 MiB",
                     abs(off) <= max(64 * MIB, 0.01 * (own + context)), own_mib=round(own / MIB, 1), context_mib=round(context / MIB, 1),
                     nvidia_smi_mib=round(seen / MIB, 1), off_mib=round(off / MIB, 1))
        if out.strip().startswith(b"{"):
            grown = json.loads(out)["gpu"]
            change = grown["used_after_bytes"] - grown["used_before_bytes"] - grown["own_bytes"]
            report.check(f"{name}: what the driver says memory grew by is the ledger's, within 1 % or 64 MiB",
                         abs(change) <= max(64 * MIB, 0.01 * own), off_mib=round(change / MIB, 1))

    report.step("memory of SmolLM2", lambda: one("SmolLM2", kit.smollm2()))
    report.step("memory of the 8B shape in q4_0", lambda: one("8B q4_0", kit.path("llama-8b", "q4_0")))
