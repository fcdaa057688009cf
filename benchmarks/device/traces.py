"""512 requests at once (make_trace.py) through the engine, vLLM between two runs of llmc; then llmc with older ways to batch, and with
less room for the cache."""
import json
import os
import sys

from peers import HERE, has_vllm, json_lines

# Tokens of KV cache that the trace fills (all of it needs 418,000), and half of them.
FULL, HALF = 240000, 120000
# Static batches of as many as a package for GPUs takes by default: of all 512 there would be only one.
COMPARED = {"static": "--batching=static --max-running=64", "pool": f"--kv-tokens={FULL}", "half the pool": f"--kv-tokens={HALF}"}


def summary(found):
    kept = ("seconds", "output_tokens_per_second", "total_tokens_per_second", "steps", "preemptions", "swaps", "most_running", "finished", "refused",
            "cut_by_the_pool", "engine_us_per_step", "start_us_per_step", "pool_tokens", "pool_used_saturated", "time_to_first_token", "inter_token")
    return {key: found[key] for key in kept}


def replay(report, kit, trace, *then):
    """One figure for the flags themselves and for each of `then`."""
    flags = [word for text in then for word in ("--then", text)]
    answer = report.must([kit.path("llama-8b", "bf16-8192"), "replay", "--trace", trace, "--context", 8192, "--prefix-cache=off", "--swap-memory=4GiB",
                          *flags],
                         timeout=120 + 60 * len(then))
    return [summary(found) for found in json_lines(answer)]


def group(report, kit):
    trace = os.path.join(kit.work, "trace-512.jsonl")
    report.must([sys.executable, os.path.join(HERE, "make_trace.py"), trace], timeout=60)
    ours = replay(report, kit, trace)
    peer = {}
    if has_vllm():
        command = [sys.executable, os.path.join(HERE, "peer_vllm.py"), os.path.join(HERE, "llama-8b.json"), "--trace", trace]
        found = [line for line in json_lines(report.must(command, timeout=400)) if line["what"] == "trace"]
        peer = max(found, key=lambda figures: figures["output_tokens_per_second"])
        report.figure("trace.8b.vllm", found)
    else:
        report.skip("vllm", "python3 has no vllm")
    again, *others = replay(report, kit, trace, *COMPARED.values())
    ours.append(again)
    for name, figures in zip(COMPARED, others):
        report.figure(f"trace.8b.{name}", figures)
    report.figure("trace.8b.llmc", ours)
    rate = sum(figures["output_tokens_per_second"] for figures in ours) / len(ours)
    by_name = dict(zip(COMPARED, others))

    def against(figures):
        return round(rate / figures["output_tokens_per_second"], 3) if figures else None

    words = {"llmc_tok_s": [round(figures["output_tokens_per_second"], 1) for figures in ours],
             "vllm_tok_s": peer.get("output_tokens_per_second"), "ratio": against(peer),
             "over static": against(by_name["static"]),
             "pool_used_saturated": round(by_name["pool"]["pool_used_saturated"], 4),
             "half the pool": round(by_name["half the pool"]["output_tokens_per_second"] / by_name["pool"]["output_tokens_per_second"], 3)}
    report.figure("trace.8b", words)
    report.check("every request of the trace has ended well", all(figures["finished"] == 512 for figures in [*ours, *others]))
    report.log(json.dumps(words), True)
