#!/usr/bin/env python3
"""Many chats at a time through EXE serve, beside the engine without HTTP; the last line is JSON.

  serve_load.py EXE [--clients 32] [--requests 64] [--tokens 64] [--rounds 3] [-- FLAGS of serve and batch]
  serve_load.py --url http://127.0.0.1:8080 ...      any server of OpenAI's interface; its text counts as one token an event

Rounds alternate between the server and `EXE batch` with the same requests, so that a machine that is busy is so for both. The clients are
one Python process on the same machine, whose time is part of what is measured (client_cpu_seconds). Needs nothing but Python.
"""
import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

TOPICS = ("the sea", "a compiler", "bread", "the moon", "a violin", "rain", "chess", "a city at night")


def bodies(args, stream):
    """All answers have the same length, whatever the model says."""
    for i in range(args.requests):
        yield {"messages": [{"role": "user", "content": f"Write a long story, number {i}, about {TOPICS[i % len(TOPICS)]}."}],
               "max_tokens": args.tokens, "ignore_eos": True, "temperature": 0.7, "seed": i, "stream": stream}


class Answer:
    def __init__(self):
        self.first, self.gaps, self.events, self.tokens = None, [], 0, 0


async def one(reader, writer, host, body):
    """A streamed chat on a kept connection."""
    data = json.dumps(body).encode()
    start = last = time.monotonic()
    writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    header = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in header[:16]:
        raise RuntimeError(header.decode() + (await reader.read(2000)).decode())
    answer, text = Answer(), b""
    while True:
        size = int(await reader.readline(), 16)
        text = await reader.readexactly(size + 2)
        if size == 0:
            return answer
        now, events = time.monotonic(), text.count(b'"content":') - text.count(b'"content":""')
        if b'"usage":{' in text:
            answer.tokens = int(re.search(rb'"completion_tokens":(\d+)', text)[1])
        if not events:
            continue
        answer.events += events
        if answer.first is None:
            answer.first = now - start
        else:
            answer.gaps += [(now - last) / events] * events
        last = now


async def load(args, url):
    place = urllib.parse.urlparse(url)
    waiting = list(bodies(args, True))[::-1]
    answers = []

    async def client():
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 20)
        while waiting:
            body = waiting.pop()
            body["stream_options"] = {"include_usage": True}
            answers.append(await one(reader, writer, place.netloc, body))
        writer.close()

    start, cpu = time.monotonic(), time.process_time()
    await asyncio.gather(*(client() for _ in range(args.clients)))
    return answers, time.monotonic() - start, time.process_time() - cpu


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def serve_round(args, url):
    answers, seconds, cpu = asyncio.run(load(args, url))
    tokens = sum(a.tokens or a.events for a in answers)
    gaps = [gap for a in answers for gap in a.gaps]
    return {"tokens_per_second": tokens / seconds, "tokens": tokens, "ttft_p50": quantile([a.first for a in answers], 0.5),
            "ttft_p99": quantile([a.first for a in answers], 0.99), "inter_token_p50": quantile(gaps, 0.5), "inter_token_p99": quantile(gaps, 0.99),
            "client_cpu_seconds": cpu}


def batch_round(args):
    """Tokens/s of the same requests in a file: scheduler, engine, text and JSON, but no HTTP."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "in.jsonl"), os.path.join(folder, "out.jsonl")
        with open(source, "w") as file:
            for i, body in enumerate(bodies(args, False)):
                file.write(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/chat/completions", "body": body}) + "\n")
        run = subprocess.run([args.exe, "batch", source, "-o", out, "--max-running", str(args.clients), *args.flags], capture_output=True, text=True, check=True)
        return {"tokens_per_second": float(re.search(r"([0-9.]+) tokens/s\s*$", run.stderr)[1])}


def medians(rounds):
    return {key: round(statistics.median(r[key] for r in rounds), 4) for key in rounds[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe", nargs="?")
    parser.add_argument("--url")
    for name, value in (("clients", 32), ("requests", 64), ("tokens", 64), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    own, _, args_flags = " ".join(sys.argv[1:]).partition(" -- ")
    args = parser.parse_args(own.split())
    args.flags = args_flags.split()
    if bool(args.exe) == bool(args.url):
        parser.error("expected either EXE or --url")
    if args.url:
        print(json.dumps({"serve": medians([serve_round(args, args.url) for _ in range(args.rounds)]), "clients": args.clients}))
        return
    serve, batch = [], []
    server = subprocess.Popen([args.exe, "serve", "--port", "0", "--max-running", str(args.clients), *args.flags], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        asyncio.run(load(argparse.Namespace(**{**vars(args), "requests": args.clients, "tokens": 4}), url))  # warm
        for n in range(args.rounds):
            serve.append(serve_round(args, url))
            server.send_signal(19)  # SIGSTOP: the other one has the machine alone
            batch.append(batch_round(args))
            server.send_signal(18)
            print(f"round {n + 1}: serve {serve[-1]['tokens_per_second']:.1f} tokens/s, p99 {serve[-1]['inter_token_p99'] * 1e3:.0f} ms between tokens; "
                  f"batch {batch[-1]['tokens_per_second']:.1f} tokens/s", flush=True)
    finally:
        server.send_signal(18)
        server.terminate()
        server.wait()
    served, offline = medians(serve), medians(batch)
    overhead = 1e6 / served["tokens_per_second"] - 1e6 / offline["tokens_per_second"]
    print(json.dumps({"ratio": round(served["tokens_per_second"] / offline["tokens_per_second"], 4), "overhead_us_per_token": round(overhead, 1),
                      "serve": served, "batch": offline, "clients": args.clients, "requests": args.requests, "tokens": args.tokens}))


if __name__ == "__main__":
    main()
