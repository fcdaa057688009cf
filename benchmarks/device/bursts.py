"""Launches of a prompt's step in bursts, each operation alone on a rested card (EXE bench --profile --bursts)."""
import json
import subprocess


def launches(exe, tokens, file):
    """(operation, kernel, seconds) of those of the layers, in order; `file` is written."""
    subprocess.run([exe, "bench", f"--profile={file}", "--bursts", "--prompt", str(tokens), "--repeat", "1"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    with open(file, encoding="utf-8") as text:
        step = next(s for s in json.load(text)["steps"] if s["tokens"] == tokens and s["context"] == tokens)
    return [(x["op"].split(".", 2)[2], x["kernel"], x["seconds"]) for x in step["launches"] if x["layer"] >= 0]
