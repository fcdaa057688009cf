"""EXE serve as its users meet it: OpenAI's client, curl-like requests, signals."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

import common


class Server:
    """EXE serve on a port of its choice, until the end of a with."""

    def __init__(self, exe, *flags, stack=None, timeout=120):
        self.timeout = timeout  # of a request
        command = [exe, "serve", "--port", "0", *map(str, flags)]
        if stack:
            command = ["bash", "-c", f"ulimit -s {stack}; exec \"$@\"", "-", *command]
        start = time.monotonic()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.seconds = time.monotonic() - start
        if " on http://" not in line:
            raise RuntimeError(f"serve said {line!r}: {self.process.stderr.read()[-400:]}")
        self.url = line.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, body) of a request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json", "Authorization": "Bearer key", **(headers or {})})
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, response.headers, answer

    def text(self, prompt, tokens, **more):
        status, _, body = self.ask("POST", "/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": tokens, **more})
        assert status == 200, body
        return json.loads(body)["choices"][0]["text"]

    def metric(self, name):
        lines = self.ask("GET", "/metrics")[2].decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith("llmc_" + name + " "))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def idle(self, seconds=10):
        """True once nobody is worked for and all blocks are back."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.metric("requests_running") == self.metric("requests_waiting") == self.metric("kv_use_ratio") == 0:
                return True
            time.sleep(0.05)
        return False

    def end(self, number=signal.SIGTERM):
        """(exit code, seconds) after a signal."""
        start = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(60)
        return self.process.returncode, time.monotonic() - start


def client(checks, ctx):
    python = common.must([os.path.join(common.ROOT, "scripts", "openai-client.sh")], timeout=300).text.strip()
    with Server(ctx.default(), "--api-key", "key", "--model-name", "smol", "--batch-dir", ctx.path("batches")) as server:
        result = common.run([python, "-B", os.path.join(common.HERE, "openai_conformance.py"), server.url, "smol"], timeout=300)
        lines = result.text.splitlines()
        for line in lines:
            checks.check("openai: " + json.loads(line)[0], *json.loads(line)[1:])
        checks.check("openai: ran to its end", result.code == 0 and len(lines) > 40, result.errors.strip()[-400:])


def batches(checks, ctx):
    """A batch goes on where a killed server stopped."""
    def begin():
        return Server(ctx.default(), "--batch-dir", ctx.path("killed-batches"), "--max-running", 4)

    lines = "".join(json.dumps({"custom_id": f"c{i}", "method": "POST", "url": "/v1/completions",
                                "body": {"prompt": f"Count from {i}:", "temperature": 0, "max_tokens": 24, "ignore_eos": True}}) + "\n" for i in range(24))
    form = (f'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; name="file"; '
            f'filename="f"\r\n\r\n{lines}\r\n--b--\r\n')
    with begin() as server:
        file = json.loads(server.ask("POST", "/v1/files", form, {"Content-Type": "multipart/form-data; boundary=b"})[2])["id"]
        batch = json.loads(server.ask("POST", "/v1/batches", {"input_file_id": file, "endpoint": "/v1/completions", "completion_window": "24h"})[2])["id"]
        end = time.monotonic() + 60
        while json.loads(server.ask("GET", "/v1/batches/" + batch)[2])["request_counts"]["completed"] < 4 and time.monotonic() < end:
            time.sleep(0.02)
        server.end(signal.SIGKILL)
    with begin() as server:
        while (state := json.loads(server.ask("GET", "/v1/batches/" + batch)[2]))["status"] in ("validating", "in_progress", "finalizing") and time.monotonic() < end:
            time.sleep(0.1)
        checks.check("killed with -9, the batch is completed by the next server", state["status"] == "completed", state)
        output = server.ask("GET", f"/v1/files/{state['output_file_id']}/content")[2].decode().splitlines()
        checks.check("no line is lost, none comes twice", sorted(json.loads(o)["custom_id"] for o in output) == sorted(f"c{i}" for i in range(24)), len(output))


def answers(checks, ctx):
    exe = ctx.default()
    want = json.loads(common.must([exe, "run", "--raw", "--json", "-n", 16, "-t", 0, "The capital of France is"]).text)
    with Server(exe) as server:
        checks.note(f"ready after {server.seconds:.2f} s")
        checks.check("serve answers as run does", server.text("The capital of France is", 16) == want["text"])
        checks.check("ready and healthy", [server.ask("GET", path)[0] for path in ("/ready", "/health")] == [200, 200])
        checks.check("metrics name a step", server.metric("steps_total") > 0)
        code, seconds = server.end()
        checks.check("SIGTERM ends an idle server", code == 0 and seconds < 2, f"exit {code}, {seconds:.2f} s")
    with Server(exe) as server:
        code, _ = server.end(signal.SIGINT)
        checks.check("so does Ctrl-C", code == 0, code)


def drain(checks, ctx):
    for flag, whole in ((30, True), (0.2, False)):
        with Server(ctx.default(), "--drain-seconds", flag) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            tokens = 60 if whole else 4000
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": tokens, "ignore_eos": True, "stream": True}),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            begun = response.read(40)
            server.process.send_signal(signal.SIGTERM)
            rest = begun + response.read()
            server.process.wait(60)
            name = f"--drain-seconds {flag}"
            checks.check(f"{name}: the answer is {'whole' if whole else 'given up'}", (b"[DONE]" in rest) == whole and (b"shutting down" in rest) != whole)
            checks.check(f"{name}: exit 0", server.process.returncode == 0, server.process.returncode)


def faults(checks, ctx):
    """B61 and B62 with a stack of 512 KiB; the same control request before and after, and no memory lost."""
    deep = "[" * 100000 + "]" * 100000
    with Server(ctx.default(), "--mmap", "--stall-seconds", 2, "--policy", "priority", stack=512) as server:
        def ask():  # goes before the streams below
            return server.text("The capital of France is", 12, priority=1000)

        control = ask()
        bad = {"deep JSON": '{"prompt": "a", "tools": ' + deep + "}", "deep JSON in an unknown key": '{"x": ' + deep + "}",
               "a million keys": "{" + ",".join(f'"{i}":1' for i in range(600000)) + "}", "1e999": '{"prompt": "a", "top_p": 1e999}',
               "a lone surrogate": '{"prompt": "\\ud800"}', "invalid UTF-8": b'{"prompt": "\xff"}', "cut JSON": '{"prompt": "a'}
        for name, body in bad.items():
            start = server.cpu_seconds()  # not the clock's: the machine may be busy with other things
            status, _, answer = server.ask("POST", "/v1/completions", body)
            seconds = server.cpu_seconds() - start
            checks.check(f"{name}: 400 within a second", status == 400 and seconds < 1 and json.loads(answer)["error"]["message"], f"{status}, {seconds:.2f} s")
        bytes_after = []
        for _ in range(3):  # the first grows the tokenizer's and the allocator's own memory
            for _ in range(8):
                status, _, _ = server.ask("POST", "/v1/completions", '{"prompt": "' + "x" * (7 << 20) + '"}')
            checks.check("7 MiB of text: refused", status == 400, status)
            status, _, _ = server.ask("POST", "/v1/completions", b"x" * (64 << 20))
            checks.check("64 MiB: 413", status == 413, status)
            bytes_after.append(common.anonymous_bytes([server.process.pid]))
        grown = bytes_after[-1] - bytes_after[0]
        checks.check("memory stays flat", grown < 16 << 20, common.mebibytes(grown))
        streams = []
        for _ in range(40):  # nobody reads these
            s = socket.create_connection(("127.0.0.1", server.port))
            body = json.dumps({"prompt": "a", "max_tokens": 400, "ignore_eos": True, "stream": True})
            s.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            streams.append(s)
        start = time.monotonic()
        checks.check("/health beside 40 streams", server.ask("GET", "/health")[0] == 200 and time.monotonic() - start < 1, f"{time.monotonic() - start:.2f} s")
        with open(f"/proc/{server.process.pid}/status") as file:
            threads = next(int(line.split()[1]) for line in file if line.startswith("Threads:"))
        checks.check("a stream costs no thread", threads < 12, threads)
        checks.check("a request is served beside them", ask() == control)
        for s in streams:
            s.close()
        checks.check("clients that leave give their blocks back", server.idle())
        checks.check("the control request answers the same", ask() == control)
        code, seconds = server.end()
        checks.check("and the server ends well", code == 0 and seconds < 3, f"exit {code}, {seconds:.2f} s")


def connections(checks, ctx, idle=1000, streams=200):
    """What a connection without a request costs, and a stream that nobody reads."""
    with Server(ctx.default(), "--mmap", "--context", 1024, "--max-queue", 4096) as server:
        def settled():  # the cache's pages come in the background
            sizes = [0, -1]
            while sizes[-1] != sizes[-2]:
                time.sleep(0.5)
                sizes.append(common.anonymous_bytes([server.process.pid]))
            return sizes[-1]

        def threads():
            return len(os.listdir(f"/proc/{server.process.pid}/task"))

        def connect(request):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.port))
            s.sendall(request)
            return s

        server.text("a", 400, ignore_eos=True)
        before, threads_before = settled(), threads()
        waiting = [connect(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(idle)]
        answered = sum(s.recv(100).startswith(b"HTTP/1.1 200") for s in waiting)
        with_idle = settled()
        checks.check(f"{idle} idle connections: each less than 100 KB", answered == idle and with_idle - before < idle * 100e3, f"{(with_idle - before) / idle / 1e3:.1f} KB")
        body = json.dumps({"prompt": "a", "max_tokens": 300, "ignore_eos": True, "stream": True})
        slow = [connect(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                for _ in range(streams)]
        while server.metric("requests_submitted_total") < streams + 1:
            time.sleep(0.05)
        time.sleep(2)
        with_streams = common.anonymous_bytes([server.process.pid])
        checks.check(f"{streams} slow streams: each less than 100 KB", with_streams - with_idle < streams * 100e3, f"{(with_streams - with_idle) / streams / 1e3:.1f} KB")
        checks.check("none costs a thread", threads() == threads_before, f"{threads_before} before, {threads()} now")
        for s in waiting + slow:
            s.close()
        checks.check("and they give their blocks back", server.idle())


def usage(checks, ctx):
    exe = ctx.default()
    for flags, part in ((("--port", "65536"), "--port: expected a whole number from 0 to 65535"), (("--host", "no such host"), "cannot listen on no such host"),
                        (("--api-key-file", "/nowhere/keys"), "/nowhere/keys: cannot open"), (("--drain-seconds", "x"), "--drain-seconds: expected a number"), (("--tls-cert", "/nowhere/cert"), "--tls-cert: expected --tls-key with it"),
                        (("--tls-cert", "/nowhere/cert", "--tls-key", "/nowhere/key"), "--tls-cert: /nowhere/cert: cannot open")):
        result = common.run([exe, "serve", *flags], timeout=60)
        checks.check(f"serve {' '.join(flags)} is refused", result.code in (1, 2) and part in result.errors, result.errors.strip())
    taken = socket.create_server(("127.0.0.1", 0))
    result = common.run([exe, "serve", "--port", taken.getsockname()[1]], timeout=60)
    checks.check("a port that is taken is refused before the weights are loaded", result.code == 1 and "cannot listen" in result.errors and result.seconds < 2,
                 result.errors.strip())
    text = common.must([exe, "serve", "--help"]).text
    checks.check("serve --help teaches", all(word in text for word in ("/v1/chat/completions", "curl", "--drain-seconds", "--api-key-file", "openai.OpenAI")))


if __name__ == "__main__":
    sys.exit("this is a module; run run.py")
