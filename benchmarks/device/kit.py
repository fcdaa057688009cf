"""The kit: what scripts/make-device-kit.sh packed, unpacked."""
import glob
import gzip
import json
import os
import subprocess
import tarfile
import tempfile

from report import Skip


class Kit:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.part = os.path.join(self.folder, "part-1")
        with open(os.path.join(self.part, "kit.json"), encoding="utf-8") as file:
            self.about = json.load(file)
        self.work = tempfile.mkdtemp(prefix="llmc-kit-")
        with tarfile.open(os.path.join(self.part, "packages.tar.gz")) as archive:
            archive.extractall(self.work)
        self.weights = os.path.join(self.work, "weights")
        os.makedirs(self.weights)
        for shard in glob.glob(os.path.join(self.folder, "part-*", "*.weights*")):
            os.symlink(shard, os.path.join(self.weights, os.path.basename(shard)))
        self.cuda = self.about["target"].startswith("cuda")

    def path(self, *parts):
        """A file of the unpacked kit; Skip where it was left out, with the reason."""
        path = os.path.join(self.work, *parts)
        if not os.path.exists(path):
            name = "/".join(parts)
            raise Skip(f"{name} is not in the kit: {self.about['left_out'].get(name, 'not made')}")
        return path

    def names(self, folder):
        return sorted(os.listdir(os.path.join(self.work, folder)))

    def smollm2(self):
        """The command of SmolLM2 as a path: a script that knows where the shards are."""
        exe = self.path("smollm2")
        script = os.path.join(self.work, "run-smollm2")
        if not os.path.exists(script):
            if not glob.glob(os.path.join(self.weights, "smollm2.weights*")):
                raise Skip("there are no shards of SmolLM2; part-2 and on have them")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec "{exe}" "$@" --weights-dir "{self.weights}"\n')
            os.chmod(script, 0o755)
        return script

    def data(self, name):
        path = os.path.join(self.part, "data", name)
        opener = gzip.open if name.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file] if name.endswith(".jsonl") else json.load(file)


def gpu():
    """What nvidia-smi says of the first GPU; Skip without one."""
    fields = {"name": "name", "driver": "driver_version", "memory_mib": "memory.total", "compute_capability": "compute_cap",
              "sm_clock_mhz": "clocks.max.sm", "memory_clock_mhz": "clocks.max.memory", "power_limit_w": "power.limit"}
    try:
        answer = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(fields.values()), "--format=csv,noheader,nounits"],
                                capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skip(f"no GPU: nvidia-smi: {error}") from error
    if answer.returncode != 0:
        raise Skip(f"no GPU: nvidia-smi: {(answer.stdout + answer.stderr).strip()[:200]}")
    values = [value.strip() for value in answer.stdout.splitlines()[0].split(",")]
    return dict(zip(fields, values))


def used_mib():
    """MiB in use on the first GPU, by all processes."""
    answer = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True,
                            text=True, timeout=60)
    return int(answer.stdout.split()[0])
