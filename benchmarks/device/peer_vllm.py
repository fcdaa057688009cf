#!/usr/bin/env python3
"""The peer on a GPU for whole steps: vLLM on the shape of CONFIG.json in bf16 with dummy weights, its defaults (CUDA graphs,
FlashAttention 3, chunked prefill) but for prefix caching, which would skip the prompts.

  peer_vllm.py CONFIG.json [--batches 1,16,64,256] [--context 512] [--generate 65] [--max-context 16384] [--trace FILE]
Decoding: the time of --generate tokens less that of one, medians of three, behind prompts of --context tokens; a prompt: one of
8,192 tokens, and eight of 1,024 at a time, until the first token, medians of five. --trace, in their place: all requests of the file
(make_trace.py), given at once, twice. Needs python3 with vllm. One line of JSON for each figure.
"""
import argparse
import json
import os
import random
import statistics
import tempfile
import time


def say(**values):
    print(json.dumps(values), flush=True)


class Peer:
    def __init__(self, args):
        from vllm import LLM

        folder = tempfile.mkdtemp(prefix="vllm-config-")
        with open(args.config, encoding="utf-8") as file:
            config = json.load(file)
        config["torch_dtype"] = "bfloat16"
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.vocab, self.rng = config["vocab_size"], random.Random(0)
        self.llm = LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", max_model_len=args.max_context,
                       enable_prefix_caching=False, seed=0, disable_log_stats=not args.trace)
        self.seconds([8], 1, 1)

    def seconds(self, lengths, tokens, runs):
        """Median seconds from a batch of prompts to `tokens` tokens of each."""
        from vllm import SamplingParams

        wanted = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        times = []
        for _ in range(runs):
            prompts = [{"prompt_token_ids": [self.rng.randrange(self.vocab) for _ in range(length)]} for length in lengths]
            start = time.perf_counter()
            answers = self.llm.generate(prompts, wanted, use_tqdm=False)
            times.append(time.perf_counter() - start)
            made = sum(len(answer.outputs[0].token_ids) for answer in answers)
            if made != tokens * len(lengths):
                raise SystemExit(f"expected {tokens * len(lengths)} tokens of vLLM, got {made}")
        return statistics.median(times)


    def trace(self, path):
        """Figures of a whole trace: its rates, and what vLLM says of each request's first and later tokens (where it does)."""
        from vllm import SamplingParams

        with open(path, encoding="utf-8") as file:
            requests = [json.loads(line) for line in file]
        prompts = [{"prompt_token_ids": request["prompt"]} for request in requests]
        wanted = [SamplingParams(temperature=0.0, max_tokens=request["output"], ignore_eos=True, detokenize=False) for request in requests]
        start = time.perf_counter()
        answers = self.llm.generate(prompts, wanted, use_tqdm=False)
        seconds = time.perf_counter() - start
        made, asked = sum(len(answer.outputs[0].token_ids) for answer in answers), sum(request["output"] for request in requests)
        if made != asked:
            raise SystemExit(f"expected {asked} tokens of vLLM, got {made}")
        told = [answer.metrics for answer in answers if getattr(answer, "metrics", None)]
        first = [m.first_token_latency for m in told if getattr(m, "first_token_latency", 0)]
        later = [(m.last_token_ts - m.first_token_ts) / (m.num_generation_tokens - 1) for m in told
                 if getattr(m, "num_generation_tokens", 0) > 1 and getattr(m, "last_token_ts", 0)]
        return {"requests": len(requests), "prompt_tokens": sum(len(r["prompt"]) for r in requests), "output_tokens": made,
                "seconds": round(seconds, 3), "output_tokens_per_second": round(made / seconds, 1),
                "total_tokens_per_second": round((made + sum(len(r["prompt"]) for r in requests)) / seconds, 1),
                "time_to_first_token": percentiles(first), "mean_inter_token_of_requests": percentiles(later)}


def percentiles(values):
    values = sorted(values)
    return {f"p{share}": round(values[min(len(values) - 1, len(values) * share // 100)], 4) for share in (50, 99)} if values else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--batches", default="1,16,64,256")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--generate", type=int, default=65)
    parser.add_argument("--max-context", type=int, default=16384)
    parser.add_argument("--trace")
    args = parser.parse_args()
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    import vllm

    peer = Peer(args)
    say(what="about", vllm=vllm.__version__)
    if args.trace:
        for _ in range(2):
            say(what="trace", **peer.trace(args.trace))
        return
    for batch, length in ((1, 8192), (8, 1024)):
        seconds = peer.seconds([length] * batch, 1, 5)
        say(what="prefill", batch=batch, tokens=length, s=round(seconds, 4), tok_s=round(batch * length / seconds, 1))
    for batch in map(int, args.batches.split(",")):
        one = peer.seconds([args.context] * batch, 1, 3)
        all_of_them = peer.seconds([args.context] * batch, args.generate, 3)
        step = (all_of_them - one) / (args.generate - 1)
        say(what="decode", batch=batch, context=args.context, ms=round(1e3 * step, 4), tok_s=round(batch / step, 2))


if __name__ == "__main__":
    main()
