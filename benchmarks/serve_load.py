#!/usr/bin/env python3
"""Many chats at a time through EXE serve, beside the engine without HTTP and, if wanted, llama.cpp's server; the last line is JSON.

  serve_load.py EXE [--clients 32] [--requests 64] [--tokens 64] [--rounds 3] [--peer LLAMA_SERVER MODEL.gguf] [-- FLAGS of serve and batch]
  serve_load.py EXE --trace FILE [--processes 8] [--held 0.25,1] ... [-- FLAGS of serve and replay]
  serve_load.py --url http://127.0.0.1:8080 ...      any server of OpenAI's interface; its text counts as one token an event

Rounds alternate between the servers and `EXE batch` with the same requests, so that a machine that is busy is so for all; who is not asked is
stopped. llama-server (scripts/peer-llamacpp.sh DIR native server) has as many slots as there are clients. With --trace
(benchmarks/device/make_trace.py) the requests are completions of its ids, as long as it says and greedy, and `EXE replay` is what is
compared with, twice a round. --held: each round once more for each of these shares of
the requests, held by a JSON schema. The clients are --processes Python processes on the
same machine, whose time is part of what is measured (client_cpu_seconds). Needs nothing but Python.
"""
import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

TOPICS = ("the sea", "a compiler", "bread", "the moon", "a violin", "rain", "chess", "a city at night")


# Cannot end before the tokens do; strings are short, so that answers go through all of it.
WORD = {"type": "string", "minLength": 3, "maxLength": 12}
RECORD = {"type": "object", "properties": {"name": WORD, "age": {"type": "integer", "minimum": 0, "maximum": 120}, "kind": {"enum": ["a", "b", "other"]},
                                           "tags": {"type": "array", "items": WORD, "minItems": 1, "maxItems": 5}},
          "required": ["name", "age", "kind", "tags"], "additionalProperties": False}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "records", "strict": True, "schema": {"type": "array", "items": RECORD, "minItems": 2000}}}


def bodies(args, stream, held=0.0):
    """All answers have the same length, whatever the model says; in a trace each has its own."""
    for i, line in enumerate(args.trace[:args.requests]):
        body = {"prompt": line["prompt"], "max_tokens": min(line["output"], args.tokens), "ignore_eos": True, "temperature": 0, "stream": stream}
        yield body | ({"response_format": SCHEMA} if int((i + 1) * held) > int(i * held) else {})
    if args.trace:
        return
    for i in range(args.requests):
        yield {"messages": [{"role": "user", "content": f"Write a long story, number {i}, about {TOPICS[i % len(TOPICS)]}."}],
               "max_tokens": args.tokens, "ignore_eos": True, "temperature": 0.7, "seed": i, "stream": stream}


class Answer:
    def __init__(self):
        self.first, self.gaps, self.events, self.tokens, self.kept = None, [], 0, 0, True


async def one(reader, writer, host, body):
    """A streamed answer on a connection that may be kept."""
    data = json.dumps(body).encode()
    route, part = ("completions", b'"text":') if "prompt" in body else ("chat/completions", b'"content":')
    start = last = time.monotonic()
    writer.write(f"POST /v1/{route} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    header = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in header[:16]:
        raise RuntimeError(header.decode() + (await reader.read(2000)).decode())
    answer, text = Answer(), b""
    answer.kept = b"connection: close" not in header.lower()
    while True:
        size = int(await reader.readline(), 16)
        text = await reader.readexactly(size + 2)
        if size == 0:
            return answer
        now, events = time.monotonic(), text.count(part) - text.count(part + b'""') - text.count(part + b"null")
        if b'"completion_tokens":' in text:
            answer.tokens = int(re.search(rb'"completion_tokens":(\d+)', text)[1])
        if not events:
            continue
        answer.events += events
        if answer.first is None:
            answer.first = now - start
        else:
            answer.gaps += [(now - last) / events] * events
        last = now


async def clients(count, take, url):
    """Answers of so many clients, each of which asks what `take` gives until that is None."""
    place = urllib.parse.urlparse(url)
    answers, again = [], []

    async def client():
        connection = None
        while (body := again.pop() if again else take()) is not None:
            body["stream_options"] = {"include_usage": True}
            fresh = connection is None
            connection = connection or await asyncio.open_connection(place.hostname, place.port, limit=1 << 20)
            try:
                answer = await one(*connection, place.netloc, body)
            except asyncio.IncompleteReadError as error:
                if fresh or error.partial:
                    raise
                again.append(body)  # the server has closed a connection that was kept: once more on a new one
            else:
                answers.append(answer)
                if answer.kept:
                    continue
            connection[1].close()
            connection = None
        if connection:
            connection[1].close()

    await asyncio.gather(*(client() for _ in range(count)))
    return answers


def load(args, url, held=0.0):
    """(answers, seconds, seconds of the clients' processors) of all requests; processes take the next one when a client of theirs is free."""
    waiting, taken, ready = list(bodies(args, True, held)), multiprocessing.Value("i", 0), multiprocessing.Barrier(args.processes)

    def take():
        with taken.get_lock():
            taken.value += 1
            return waiting[taken.value - 1] if taken.value <= len(waiting) else None

    def process(number, pipe):
        count = len(range(number, args.clients, args.processes))
        ready.wait()
        start, cpu = time.monotonic(), time.process_time()
        try:
            answers = asyncio.run(clients(count, take, url))
        except Exception as error:  # the parent's to tell
            pipe.send(error)
        else:
            pipe.send((answers, start, time.monotonic(), time.process_time() - cpu))

    pipes = []
    for number in range(args.processes):
        ours, theirs = multiprocessing.Pipe(False)
        multiprocessing.Process(target=process, args=(number, theirs), daemon=True).start()
        pipes.append(ours)
    found = [pipe.recv() for pipe in pipes]
    for error in found:
        if isinstance(error, Exception):
            raise error
    answers, starts, ends, cpu = zip(*found)
    return list(itertools.chain(*answers)), max(ends) - min(starts), sum(cpu)


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def serve_round(args, url, held=0.0):
    answers, seconds, cpu = load(args, url, held)
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


def replay_round(args):
    """Tokens/s of the same trace in the engine alone: twice in a process, since the first run meets steps of forms that it has not seen."""
    running = f"--max-running={args.clients}"
    run = subprocess.run([args.exe, "replay", "--trace", args.trace_file, running, "--then", running, *args.flags], capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {"tokens_per_second": max(f["output_tokens_per_second"] for f in found), "first": found[0]["output_tokens_per_second"], "second": found[-1]["output_tokens_per_second"],
            **{key: found[-1][key] for key in ("engine_us_per_step", "start_us_per_step")}}


def medians(rounds):
    return {key: round(statistics.median(r[key] for r in rounds), 4) for key in rounds[0]}


class Server:
    """A server that is stopped (SIGSTOP) while nobody asks it: the others have the machine alone."""

    def __init__(self, args, command, url=None):
        self.args = args
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL if url else subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = url or self.process.stdout.readline().split()[-1]
        if url:
            self.wait_for_health()
        self.rounds, self.held = [], {share: [] for share in args.held}
        load(argparse.Namespace(**{**vars(args), "requests": args.clients, "tokens": 4}), self.url)  # warm
        self.process.send_signal(signal.SIGSTOP)

    def wait_for_health(self):
        for _ in range(600):
            try:
                urllib.request.urlopen(self.url + "/health", timeout=5).read()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"{self.url}: expected it to be ready after 60 s")

    def round(self):
        self.process.send_signal(signal.SIGCONT)
        self.rounds.append(serve_round(self.args, self.url))
        for share, rounds in self.held.items():
            rounds.append(serve_round(self.args, self.url, share))
        self.process.send_signal(signal.SIGSTOP)
        return self.rounds[-1]

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


def start_peer(args):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    exe, model = args.peer
    threads, slots = str(os.cpu_count()), str(args.clients)
    room = 128 + args.tokens  # of a request
    return Server(args, [exe, "-m", model, "-t", threads, "-tb", threads, "-np", slots, "-c", str(room * args.clients), "--port", str(port)], f"http://127.0.0.1:{port}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe", nargs="?")
    parser.add_argument("--url")
    parser.add_argument("--peer", nargs=2)
    for name, value in (("clients", 32), ("requests", None), ("tokens", None), ("rounds", 3), ("processes", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--trace", dest="trace_file")
    parser.add_argument("--held", type=lambda text: [float(share) for share in text.split(",")], default=[])
    own, _, args_flags = " ".join(sys.argv[1:]).partition(" -- ")
    args = parser.parse_args(own.split())
    args.flags = args_flags.split()
    if bool(args.exe) == bool(args.url):
        parser.error("expected either EXE or --url")
    args.trace = []
    if args.trace_file:
        with open(args.trace_file, encoding="utf-8") as file:
            args.trace = [json.loads(line) for line in file]
    args.requests = args.requests or len(args.trace) or 64
    args.tokens = args.tokens or (max(line["output"] for line in args.trace) if args.trace else 64)
    if args.url:
        print(json.dumps({"serve": medians([serve_round(args, args.url) for _ in range(args.rounds)]), "clients": args.clients}))
        return
    batch, servers, offline_name, offline_round = [], [], "replay" if args.trace else "batch", replay_round if args.trace else batch_round
    try:
        servers.append(Server(args, [args.exe, "serve", "--port", "0", "--max-running", str(args.clients), *args.flags]))
        if args.peer:
            servers.append(start_peer(args))
        for n in range(args.rounds):
            rounds = [server.round() for server in servers]
            batch.append(offline_round(args))
            print(f"round {n + 1}: " + "; ".join(f"{name} {r['tokens_per_second']:.1f} tokens/s, p99 {r['inter_token_p99'] * 1e3:.0f} ms between tokens"
                                                for name, r in zip(("serve", "llama-server"), rounds)) +
                  "".join(f"; {share:.0%} held {held[-1]['tokens_per_second']:.1f} tokens/s" for share, held in servers[0].held.items()) +
                  f"; {offline_name} {batch[-1]['tokens_per_second']:.1f} tokens/s", flush=True)
    finally:
        for server in servers:
            server.end()
    served, offline = medians(servers[0].rounds), medians(batch)
    overhead = 1e6 / served["tokens_per_second"] - 1e6 / offline["tokens_per_second"]
    result = {"ratio": round(served["tokens_per_second"] / offline["tokens_per_second"], 4), "overhead_us_per_token": round(overhead, 1), "serve": served, offline_name: offline}
    if args.held:
        held = {share: medians(rounds) for share, rounds in servers[0].held.items()}
        result |= {"held_over_free": {share: round(m["tokens_per_second"] / served["tokens_per_second"], 4) for share, m in held.items()}, "held": held}
    if args.peer:
        peer = medians(servers[1].rounds)
        result |= {"over_llama_server": round(served["tokens_per_second"] / peer["tokens_per_second"], 3),
                   "inter_token_p99_over_llama_server": round(served["inter_token_p99"] / peer["inter_token_p99"], 3), "llama_server": peer}
    print(json.dumps({**result, "clients": args.clients, "requests": args.requests, "tokens": args.tokens}))


if __name__ == "__main__":
    main()
