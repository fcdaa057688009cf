#!/usr/bin/env python3
"""llama.cpp's server with the requests of a trace (benchmarks/device/make_trace.py), all at once; one line of JSON.

  peer_llama_server.py LLAMA_SERVER MODEL.gguf TRACE.jsonl THREADS SLOTS
The time counts from the first request to the last answer: the server has loaded the model and warmed up.
"""
import concurrent.futures
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def ask(port, path, body=None, timeout=600):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.loads(answer.read())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(server, port):
    for _ in range(600):
        if server.poll() is not None:
            sys.exit(f"llama-server exited with {server.returncode}")
        try:
            ask(port, "/health", timeout=2)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit("llama-server: expected it to be ready after 60 s")


def main():
    exe, model, trace, threads, slots = sys.argv[1:]
    with open(trace, encoding="utf-8") as file:
        requests = [json.loads(line) for line in file]
    room = max(len(r["prompt"]) + r["output"] for r in requests) + 8
    port = free_port()
    server = subprocess.Popen([exe, "-m", model, "-t", threads, "-tb", threads, "-np", slots, "-c", str(room * int(slots)), "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(server, port)

        def one(request):
            answer = ask(port, "/completion", {"prompt": request["prompt"], "n_predict": request["output"], "ignore_eos": True, "temperature": 0,
                                               "cache_prompt": False})
            return answer["tokens_predicted"]

        one({"prompt": requests[0]["prompt"][:16], "output": 4})
        start = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
            made = sum(pool.map(one, requests))
        seconds = time.perf_counter() - start
    finally:
        server.terminate()
        server.wait()
    asked = sum(r["output"] for r in requests)
    if made != asked:
        sys.exit(f"expected {asked} tokens of llama-server, got {made}")
    print(json.dumps({"requests": len(requests), "slots": int(slots), "output_tokens": made, "seconds": round(seconds, 3),
                      "output_tokens_per_second": round(made / seconds, 2)}))


if __name__ == "__main__":
    main()
