#!/usr/bin/env python3
"""Twice as many clients as EXE serve has places for: whole answers, streams, slow readers, ones that leave, stop halfway or send nonsense.

  soak.py EXE [--seconds 600] [--clients 32] [--seed 0]     all on the loopback interface
Afterwards every block is back, memory has not grown, /health has always answered, and a fixed request has always got the same answer.
Prints a line a check, then one of JSON; exit 1 if a check failed. `run.py --only=soak` does some seconds of it.
A package whose stub is built with -DLLMC_SANITIZE=thread (llmc compile --stub) is looked at for data races: it ends with exit code 66 after one.
"""
import argparse
import asyncio
import collections
import itertools
import json
import os
import random
import socket
import statistics
import struct
import sys
import time

sys.dont_write_bytecode = True

import common
import serve

PLACES = 8
FLAGS = ("--max-running", PLACES, "--kv-tokens", 1024, "--context", 1024, "--max-queue", 64, "--policy", "priority", "--stall-seconds", 2, "--idle-seconds", 4,
         "--max-body", "1MiB")
CONTROL = {"prompt": "The capital of France is", "temperature": 0, "max_tokens": 16, "priority": 1000}
DEEP = "[" * 100000 + "]" * 100000
NONSENSE = ("", "{", "[1]", "null", '{"prompt": "a"', DEEP, '{"x": ' + DEEP + "}", '{"prompt": "a", "tools": ' + DEEP + "}",
            '{"prompt": "a", "response_format": ' + DEEP + "}", "{" + ",".join(f'"{i}":1' for i in range(5000)) + "}", '{"prompt": "a", "top_p": 1e999}',
            '{"prompt": "\\ud800"}', b'{"prompt": "\xff\xfe"}', b"\x00" * 1000, '{"prompt": "a", "max_tokens": -1}', '{"prompt": [[[1]]]}', '{"prompt": "' + "x" * 900000 + '"}',
            '{"prompt": "a", "temperature": NaN}', '{"prompt": "a", "no_such_field": 1}', '{"messages": 3}')
NO_HTTP = (b"\r\n\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET /health HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
           b"GET /health HTTP/1.1\r\nbad header\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
           b"GET /health HTTP/1.1\r\nA: " + b"b" * 100000, b"POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
TOPICS = ("the sea", "a compiler", "bread", "the moon", "a violin", "rain", "chess", "a city at night")


def request_bytes(body, path="/v1/completions", length=None, close=True):
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data) if length is None else length}\r\n" +
            ("Connection: close\r\n" if close else "") + "\r\n").encode() + data


class Soak:
    def __init__(self, server, seconds, clients, seed):
        self.server, self.clients, self.random = server, clients, random.Random(seed)
        self.seconds, self.end = seconds, 0.0
        self.outcomes = collections.Counter()  # (kind, status or what else happened)
        self.wrong = collections.Counter()     # those that should not have happened
        self.memory, self.load, self.health, self.controls = [], [], [], set()

    # What a client may do.
    def body(self):
        """(path, body) of a good request."""
        r = self.random
        body = {"max_tokens": r.choice((1, 8, 24, 60)), "temperature": r.choice((0, 0.8)), "seed": r.randrange(100), "n": r.choice((1, 1, 1, 1, 2, 4)),
                "ignore_eos": True, "priority": r.randrange(3), "presence_penalty": r.choice((0, 0, 0.5)), "stream": r.random() < 0.5}
        text = f"Write a story, number {r.randrange(20)}, about {r.choice(TOPICS)}." * r.choice((1, 1, 4, 12))
        if r.random() < 0.5:
            return "/v1/chat/completions", {**body, "messages": [{"role": "user", "content": text}]}
        return "/v1/completions", {**body, "prompt": text, "logprobs": r.choice((None, None, 3))}

    async def connect(self, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.setblocking(False)
        await asyncio.get_running_loop().sock_connect(s, ("127.0.0.1", self.server.port))
        return await asyncio.open_connection(sock=s, limit=4096 if receive_buffer else 1 << 16)

    def leave(self, writer):
        if self.random.random() < 0.5:  # with a reset
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        else:
            writer.close()

    async def talk(self, data, expected, kind, eof=False):
        """Sends and reads to the end of the connection; the status must be among `expected` (0: closed without an answer)."""
        reader, writer = await self.connect()
        answer = b""
        try:
            writer.write(data)
            if eof:
                writer.write_eof()
            answer = await reader.read(-1)
        except ConnectionError:  # the server has answered and closed while the rest was still being sent
            pass
        finally:
            writer.close()
        status = int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0
        self.outcomes[kind, status] += 1
        if status not in expected:
            self.wrong[kind, status, answer[:200]] += 1
        return answer

    async def whole(self):
        path, body = self.body()
        answer = await self.talk(request_bytes(body, path), (200, 503), "whole answer")
        if answer.startswith(b"HTTP/1.1 200") and body["stream"] and b"data: [DONE]" not in answer:
            self.wrong["stream without its end", answer[-200:]] += 1

    async def slow(self):
        path, body = self.body()
        reader, writer = await self.connect(4096)
        writer.write(request_bytes({**body, "stream": True, "n": 2}, path))
        for _ in range(self.random.randrange(1, 60)):
            if not await reader.read(300):
                break
            await asyncio.sleep(0.05)
        self.outcomes["slow reader", "left"] += 1
        self.leave(writer)

    async def leaves(self):
        path, body = self.body()
        reader, writer = await self.connect()
        writer.write(request_bytes(body, path))
        try:
            await asyncio.wait_for(reader.readuntil(b"data: " if body["stream"] else b"\r\n\r\n"), self.random.random() * 2)
        except (asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        self.outcomes["leaves", "left"] += 1
        self.leave(writer)

    async def half_open(self):
        data = request_bytes(self.body()[1])
        reader, writer = await self.connect()
        writer.write(data[: self.random.randrange(len(data))])
        try:
            await asyncio.wait_for(reader.read(-1), self.random.random() * 6)
            self.outcomes["half a request", "closed by the server"] += 1
        except asyncio.TimeoutError:
            self.outcomes["half a request", "left"] += 1
        self.leave(writer)

    async def half_closed(self):
        path, body = self.body()
        await self.talk(request_bytes(body, path), (0, 200, 503), "half closed", eof=True)

    async def nonsense(self):
        path = self.random.choice(("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"))
        await self.talk(request_bytes(self.random.choice(NONSENSE), path), (200, 400) if path == "/tokenize" else (400,), "nonsense")

    async def no_http(self):
        await self.talk(self.random.choice(NO_HTTP), (400, 431), "no HTTP", eof=self.random.random() < 0.5)

    async def huge(self):
        if self.random.random() < 0.5:
            await self.talk(request_bytes("", length=64 << 20), (413,), "huge body announced", eof=True)
        else:
            await self.talk(request_bytes(b"x" * (8 << 20)), (0, 413), "huge body")

    async def client(self):
        kinds = ((self.whole, 12), (self.leaves, 4), (self.slow, 2), (self.half_open, 2), (self.half_closed, 1), (self.nonsense, 2), (self.no_http, 1), (self.huge, 0.3))
        while time.monotonic() < self.end:
            kind = self.random.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
            try:
                await asyncio.wait_for(kind(), 600)
            except ConnectionError:  # reset by a server that had to answer early
                self.outcomes[kind.__name__, "reset"] += 1
            except asyncio.TimeoutError:
                self.wrong[kind.__name__, "nothing for 600 s"] += 1

    # What is watched meanwhile.
    def control(self):
        status, _, answer = self.server.ask("POST", "/v1/completions", CONTROL)
        self.controls.add(json.dumps(json.loads(answer)["choices"]) if status == 200 else f"{status} {answer}")

    async def watch(self):
        for count in itertools.count(1):
            start = time.monotonic()
            status = (await asyncio.to_thread(self.server.ask, "GET", "/health"))[0]
            self.health.append(time.monotonic() - start)
            if status != 200:
                self.wrong["/health", status] += 1
            self.memory.append(common.anonymous_bytes([self.server.process.pid]))
            self.load.append(await asyncio.to_thread(lambda: (self.server.metric("requests_running"), self.server.metric("requests_waiting"))))
            if count % 10 == 0:
                await asyncio.to_thread(self.control)
            if time.monotonic() > self.end:
                return
            await asyncio.sleep(1)

    async def run(self):
        self.end = time.monotonic() + self.seconds
        clients = [asyncio.create_task(self.client()) for _ in range(self.clients)]
        await self.watch()
        late = (await asyncio.wait(clients, timeout=5))[1]  # in the middle of something: they leave, too
        for client in late:
            client.cancel()
        for result in await asyncio.gather(*clients, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


def quarter(values, which):
    return statistics.fmean(values[len(values) * which // 4: max(len(values) * (which + 1) // 4, len(values) * which // 4 + 1)])


def soak(checks, exe, seconds, clients=4 * PLACES, seed=0):
    """Half of the clients are in the middle of a good request at a time, about twice as many as there are places. Returns figures."""
    with serve.Server(exe, *FLAGS, timeout=600) as server:
        run = Soak(server, seconds, clients, seed)
        run.control()
        try:
            asyncio.run(run.run())
        except Exception as error:  # most of all a server that is gone
            checks.check("the soak ran to its end", False, repr(error))
        alive = checks.check("the server is alive", server.process.poll() is None, server.process.poll())
        if not alive:
            return {}
        checks.check("all blocks are back", server.idle(60))
        run.control()
        checks.check("the control request got the same answer every time", len(run.controls) == 1, f"{len(run.controls)}")
        checks.check("/health always answered", len(run.health) > 0 and max(run.health) < 5, f"{max(run.health):.2f} s at most")
        checks.check("every answer had the status that its request deserves", not run.wrong, "; ".join(map(str, run.wrong.most_common(3))))
        waiting, running = (statistics.fmean(load[i] for load in run.load) for i in (1, 0))
        checks.check("more asked than there were places", waiting > 1, f"{running:.1f} running, {waiting:.1f} waiting on average")
        first, last = quarter(run.memory, 1), quarter(run.memory, 3)
        allowed = 16 << 20 if run.seconds >= 60 else 64 << 20  # in some seconds the heap has not yet grown to what so many clients need at a time
        checks.check("memory stays flat", last - first < allowed, f"{common.mebibytes(first)} in the second quarter, {common.mebibytes(last)} in the last")
        figures = {"seconds": seconds, "clients": clients, "running": round(running, 2), "waiting": round(waiting, 2), "mebibytes": [round(quarter(run.memory, q) / 2**20, 1) for q in range(4)],
                   "health_most_seconds": round(max(run.health), 3), "connections_left": server.metric("http_connections") - 1,
                   "preemptions": server.metric("preemptions_total"), "generated": server.metric("generated_tokens_total"),
                   "outcomes": {" ".join(map(str, key)): count for key, count in sorted(run.outcomes.items(), key=str)}}
        code, took = server.end()
        checks.check("and it ends well", code == 0 and took < 5, f"exit {code}, {took:.2f} s")
        return figures


def some_seconds(checks, ctx):
    soak(checks, ctx.default(), 12)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=4 * PLACES)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    checks = common.Checks()
    print(json.dumps(soak(checks, os.path.abspath(args.exe), args.seconds, args.clients, args.seed)))
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
