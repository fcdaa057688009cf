"""What a run on a GPU machine found: checks, figures, a log. Written after every step, so that a run cut short is not lost."""
import json
import os
import signal
import subprocess
import time
import traceback


class Skip(Exception):
    """A step that cannot be done here; says why."""


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds  # code None: ran into its timeout

    def why(self):
        """The last words of a command that failed, on one line."""
        text = "timeout" if self.code is None else f"exit {self.code}"
        words = (self.err.strip() or self.out.decode("utf-8", "replace").strip())[-300:]
        return f"{text}: {' | '.join(words.splitlines()[-3:])}"


class Report:
    def __init__(self, folder, budget):
        self.folder = folder
        self.start = time.monotonic()
        self.deadline = self.start + budget
        os.makedirs(folder, exist_ok=True)
        self.log_file = open(os.path.join(folder, "device.log"), "w", encoding="utf-8")
        self.group = ""
        self.data = {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "checks": [], "skipped": [], "benchmarks": {}}

    # ---- words -----------------------------------------------------------------------------------------------------

    def log(self, text, shown=False):
        line = f"[{time.monotonic() - self.start:7.1f}] {text}"
        self.log_file.write(line + "\n")
        self.log_file.flush()
        if shown:
            print(line, flush=True)

    def check(self, name, good, detail="", **numbers):
        entry = {"group": self.group, "name": name, "pass": bool(good)}
        if detail != "":
            entry["detail"] = str(detail)
        entry.update(numbers)
        self.data["checks"].append(entry)
        figures = ", ".join(f"{k} {v}" for k, v in numbers.items() if not isinstance(v, (list, dict)))
        self.log(f"{'ok  ' if good else 'FAIL'} {self.group}: {name}" + "".join(f": {x}" for x in (detail, figures) if x != ""), True)
        self.write()
        return bool(good)

    def skip(self, name, reason):
        self.data["skipped"].append({"group": self.group, "name": name, "reason": str(reason)})
        self.log(f"skip {self.group}: {name}: {reason}", True)
        self.write()

    def figure(self, name, value):
        self.data["benchmarks"][name] = value
        self.log(f"     {name}: {json.dumps(value)[:400]}", True)
        self.write()

    # ---- work ------------------------------------------------------------------------------------------------------

    def remaining(self):
        return self.deadline - time.monotonic()

    def limit(self, seconds):
        """A timeout that keeps to the budget of the whole run."""
        rest = self.remaining()
        if rest < 5:
            raise Skip("the time budget is spent")
        return min(seconds, rest)

    def step(self, name, function, *args):
        """Runs a step; whatever it raises is one failed check, and the others go on."""
        try:
            function(*args)
        except Skip as reason:
            self.skip(name, reason)
        except Exception as error:
            self.log(traceback.format_exc())
            self.check(name, False, f"{type(error).__name__}: {error}")

    def run(self, command, timeout=60, stdin=None, env=None):
        """Runs a command with both outputs kept; on a timeout its whole process group ends."""
        command = [str(part) for part in command]
        timeout = self.limit(timeout)
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env={**os.environ, **(env or {})}, start_new_session=True)
        try:
            out, err = process.communicate(stdin, timeout)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            code = None
        result = Result(code, out, err.decode("utf-8", "replace"), time.monotonic() - start)
        self.log(f"$ {' '.join(command)[:500]}\n    {'timeout' if code is None else code} after {result.seconds:.2f} s")
        for label, text in (("out", out[:3000].decode("utf-8", "replace")), ("err", result.err[-3000:])):
            if text.strip():
                self.log(f"  {label}: " + text.rstrip().replace("\n", "\n       "))
        return result

    def must(self, command, **options):
        result = self.run(command, **options)
        if result.code != 0:
            raise RuntimeError(result.why())
        return result

    # ---- the end ---------------------------------------------------------------------------------------------------

    def write(self):
        self.data["seconds"] = round(time.monotonic() - self.start, 1)
        path = os.path.join(self.folder, "device.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=1, ensure_ascii=False)
        os.replace(path + ".new", path)


def summary(data):
    failed = [f"{c['group']}: {c['name']}" for c in data["checks"] if not c["pass"]]
    return {"card": data.get("gpu", {}).get("name"), "driver": data.get("gpu", {}).get("driver"), "date": data["date"],
            "passed": len(data["checks"]) - len(failed), "failed": failed, "skipped": len(data["skipped"]),
            "ratios": data.get("ratios", {}), "trace": data["benchmarks"].get("trace.8b"), "seconds": data.get("seconds")}
