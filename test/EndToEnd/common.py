"""Counting checks and running processes."""
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(ROOT, "test", "data")


class Checks:
    """Prints one line a check and counts."""

    def __init__(self):
        self.passed, self.failed = 0, []

    def check(self, name, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed.append(name)
        print(f"{'ok  ' if good else 'FAIL'} {name}" + (f": {detail}" if detail != "" else ""), flush=True)
        return bool(good)

    def note(self, text):
        print("     " + text, flush=True)

    def group(self, title, function, *args):
        """Runs function(checks, *args); an exception is one failed check, and the other groups go on."""
        print(f"== {title}", flush=True)
        start = time.monotonic()
        try:
            function(self, *args)
        except Exception as error:  # a missing option or a crash of the thing under test must not hide the rest
            traceback.print_exc()
            self.check(f"{title} ran to its end", False, str(error).splitlines()[0] if str(error) else repr(error))
        self.note(f"{time.monotonic() - start:.1f} s")


class Result:
    def __init__(self, code, out, err, seconds, first_byte, anonymous, peak):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        self.first_byte = first_byte  # seconds from exec to the first byte on stdout; None: there was none
        self.anonymous = anonymous    # largest RssAnon seen, bytes, over the process tree; 0 unless asked for
        self.peak = peak

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def errors(self):
        return self.err.decode("utf-8", "replace")


def tree(pid):
    """pid and its living descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    found += [int(child) for child in file.read().split()]
        except OSError:
            pass
    return found


def anonymous_bytes(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
        except OSError:
            pass
    return total


def run(command, timeout=600, memory=False, env=None, stdin=None, cwd=None):
    """Runs a command to its end and returns a Result; raises subprocess.TimeoutExpired after `timeout` seconds."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=errors, cwd=cwd,
                                   stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                                   env={**os.environ, **(env or {})})
        first, chunks, largest = [None], [], [0]

        def read():
            while True:
                data = os.read(process.stdout.fileno(), 1 << 20)
                if not data:
                    return
                if first[0] is None:
                    first[0] = time.monotonic() - start
                chunks.append(data)

        def watch():
            while process.poll() is None:
                largest[0] = max(largest[0], anonymous_bytes(tree(process.pid)))
                time.sleep(0.02)

        threads = [threading.Thread(target=read)] + ([threading.Thread(target=watch)] if memory else [])
        for thread in threads:
            thread.start()
        if stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            for thread in threads:
                thread.join()
            process.stdout.close()
        errors.seek(0)
        return Result(process.returncode, b"".join(chunks), errors.read(), time.monotonic() - start, first[0], largest[0], 0)


def must(command, **options):
    """run() that raises with the message of a command that failed."""
    result = run(command, **options)
    if result.code != 0:
        raise RuntimeError(f"exit {result.code}: {' '.join(map(str, command))}: {result.errors.strip()[-600:]}")
    return result


def mebibytes(count):
    return f"{count / 2**20:.1f} MiB"


if __name__ == "__main__":
    sys.exit("this is a module; run run.py")
