"""What the groups of checks share: paths, compiled executables, goldens."""
import gzip
import importlib.util
import json
import os

import common
from package import Package


class Context:
    def __init__(self, llmc, model, work):
        self.llmc, self.model, self.work = llmc, model, work
        self.cache = os.path.join(work, "kernel-cache")
        self.built = {}
        os.makedirs(work, exist_ok=True)

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def environment(self):
        # The test's own kernel cache, so that cold and warm compiles are what they claim to be.
        return {"LLMC_CACHE_DIR": self.cache}

    def compile(self, model, name, *flags, **options):
        """llmc compile; returns the Result of a command that may have failed."""
        return common.run([self.llmc, "compile", model, "-o", self.path(name), *flags], env=self.environment(), **options)

    def executable(self, name, model=None, *flags):
        """The path of a compiled model, compiled once."""
        if name not in self.built:
            result = self.compile(model or self.model, name, *flags)
            if result.code != 0:
                raise RuntimeError(f"llmc compile exited {result.code}: {result.errors.strip()[-600:]}")
            self.built[name] = self.path(name)
        return self.built[name]

    def default(self):
        return self.executable("smollm2")

    def exact(self):
        return self.executable("smollm2-f32", None, "--compute=f32")

    def package(self, exe):
        return Package(exe)


def golden(name):
    path = os.path.join(common.DATA, name)
    if name.endswith(".gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return json.load(file)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def prompts():
    """name -> line of prompts.jsonl"""
    with open(os.path.join(common.DATA, "prompts.jsonl"), encoding="utf-8") as file:
        return {item["name"]: item for item in map(json.loads, file)}


def tiny_models():
    """scripts/make-tiny-models.py as a module."""
    spec = importlib.util.spec_from_file_location("tiny", os.path.join(common.ROOT, "scripts", "make-tiny-models.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
