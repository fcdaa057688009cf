"""Figures of the compiled models: EXE bench on SmolLM2 and on the shape of Llama-3.1-8B."""
import json
import os
import shutil
import statistics

# Parameters of the 8B shape that a decode step reads: all but the embedding, of which it reads a row.
PARAMETERS_8B = 32 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336) + 128256 * 4096
# Operations of one token of an 8,192-token prompt: the products of the layers, and causal attention over half the prompt.
FLOPS_8B_PROMPT = 2 * (PARAMETERS_8B - 128256 * 4096) + 4 * 32 * 4096 * 8192 // 2
BYTES_PER_WEIGHT = {"bf16": 2.0, "q4_0": 18 / 32, "q4_k": 144 / 256}


def bench(report, exe, *flags, timeout):
    return json.loads(report.must([exe, "bench", *flags], timeout=timeout).out)


def figures(batch, storage=None):
    """What is kept of one entry of `batches`."""
    kept = {"prefill_tok_s": round(batch["prefill_tokens_per_second"], 1), "decode_tok_s": round(batch["decode_tokens_per_second"], 2),
            "decode_ms": round(batch["decode_ms_per_step"], 4), "decode_runs": [round(x, 1) for x in batch["decode_runs"]],
            "prefill_runs": [round(x, 1) for x in batch["prefill_runs"]]}
    if storage and kept["decode_ms"]:
        kept["weights_tb_s"] = round(PARAMETERS_8B * BYTES_PER_WEIGHT[storage] / kept["decode_ms"] * 1e-9, 3)
    return kept


def large(report, kit, storage):
    exe, name = kit.path("llama-8b", storage), f"8b.{storage}"

    def decode(batches, prompt, gen, repeat, timeout):
        answer = bench(report, exe, "--batch", batches, "--prompt", prompt, "--gen", gen, "--repeat", repeat, timeout=timeout)
        report.figure(f"{name}.load", {"seconds": round(answer["load_seconds"], 2), "memory": answer.get("gpu")})
        for batch in answer["batches"]:
            report.figure(f"{name}.decode.{batch['batch']}", {"prompt": prompt, "gen": gen, **figures(batch, storage)})

    def prompt():
        answer = bench(report, exe, "--batch", 1, "--prompt", 8192, "--gen", 8, "--repeat", 2, timeout=120)
        rate = answer["batches"][0]["prefill_tokens_per_second"]
        report.figure(f"{name}.prefill.8192", {"prefill_tok_s": round(rate, 1), "first_token_s": round(8192 / rate, 3),
                                               "tflop_s": round(FLOPS_8B_PROMPT * rate * 1e-12, 1), **figures(answer["batches"][0], storage)})

    def chunked():
        """The same prompt in steps of 512 tokens, as when it shares steps with other sequences."""
        rates = {}
        for _ in range(2):
            for chunk in (512, 2048):
                answer = bench(report, exe, "--batch", 1, "--prompt", 8192, "--gen", 1, "--repeat", 2, "--chunk", chunk, timeout=120)
                rates.setdefault(chunk, []).append(answer["batches"][0]["prefill_tokens_per_second"])
        report.figure(f"{name}.prefill.8192.chunks", {**{f"of_{chunk}_tok_s": [round(x, 1) for x in xs] for chunk, xs in rates.items()},
                                                      "ratio": round(sum(rates[512]) / sum(rates[2048]), 3)})

    def profile():
        file = os.path.join(report.folder, f"{name}.profile.json")  # for llmc explain, too
        report.must([exe, "bench", f"--profile={file}", "--prompt", 2048, "--repeat", 5], timeout=120)
        with open(file, encoding="utf-8") as text:
            steps = json.load(text)["steps"]
        for key, step in zip(("prefill_ms", "decode_ms_per_token"), steps):
            ops = {}
            for launch in step["launches"]:
                what = f"{launch['op'].removeprefix('blk.%d.' % launch['layer'])} ({launch['kernel']})"
                ops[what] = ops.get(what, 0) + 1e3 * launch["seconds"]
            largest = sorted(((ms, what) for what, ms in ops.items()), reverse=True)[:14]
            report.figure(f"{name}.ops.{key}", {what: round(ms, 3) for ms, what in largest})

    def files():
        """Loading as real models do it: weights from files, here still in the page cache."""
        folder = os.path.join(kit.work, "materialized")
        os.makedirs(folder)
        try:
            made = report.must([exe, "weights", "--materialize", folder, "--max-shard-size", "1GiB"], timeout=120)
            size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
            answer = bench(report, exe, "--batch", 1, "--prompt", 16, "--gen", 1, "--repeat", 1, "--weights-dir", folder, timeout=60)
            first = first_token(report, [exe, "logits", "--token-ids", "[1, 2, 3]", "-o", os.path.join(kit.work, "logits"), "--weights-dir", folder])
            report.figure(f"{name}.load_from_files", {"seconds": round(answer["load_seconds"], 2), "gb": round(size / 1e9, 2),
                                                      "gb_s": round(size / 1e9 / answer["load_seconds"], 2), "made_s": round(made.seconds, 1),
                                                      "exec_to_first_token_s": first})
        finally:
            shutil.rmtree(folder)

    report.step(f"8B {storage}: batches 1 and 16", decode, "1,16", 1000, 48, 2, 150)
    report.step(f"8B {storage}: prompt of 8,192 tokens", prompt)
    if storage == "bf16":
        report.step(f"8B {storage}: prompt of 8,192 tokens in chunks", chunked)
    report.step(f"8B {storage}: batch 64", decode, "64", 1000, 32, 1, 150)
    report.step(f"8B {storage}: time of each op", profile)
    report.step(f"8B {storage}: load from files", files)


def first_token(report, command):
    """Median seconds of a whole process that computes one token, its end counted in."""
    return round(statistics.median(report.must(command, timeout=60).seconds for _ in range(3)), 3)


def small(report, kit):
    def engine():
        answer = bench(report, kit.smollm2(), "--prompt", 512, "--gen", 128, "--repeat", 5, timeout=60)
        report.figure("smollm2.engine", {"prefill_tok_s": round(answer["prefill_tokens_per_second"], 1),
                                         "decode_tok_s": round(answer["decode_tokens_per_second"], 1), "load_s": round(answer["load_seconds"], 3)})

    def batches():
        answer = bench(report, kit.smollm2(), "--batch", "1,16,64", "--prompt", 512, "--gen", 64, "--repeat", 3, timeout=90)
        for batch in answer["batches"]:
            report.figure(f"smollm2.decode.{batch['batch']}", {"prompt": 512, "gen": 64, **figures(batch)})

    def start():
        report.figure("smollm2.exec_to_first_token_s", first_token(report, [kit.smollm2(), "run", "-n", 1, "Once upon a time"]))

    report.step("SmolLM2: one sequence through the engine", engine)
    report.step("SmolLM2: from exec to the first token", start)
    report.step("SmolLM2: batches", batches)


def group(report, kit):
    small(report, kit)
    for storage in ("bf16", "q4_0", "q4_k"):
        report.step(f"8B {storage}", large, report, kit, storage)
