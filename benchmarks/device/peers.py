"""The peers, each in a process of its own (peer_*.py), and llmc beside them."""
import json
import os
import signal
import subprocess
import sys

from report import Skip

HERE = os.path.dirname(os.path.abspath(__file__))


def json_lines(result):
    lines = result.out.decode("utf-8", "replace").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def torch(report, kit):
    """torch on the 8B shape, in its own process; what it has printed counts even if it is cut short."""
    del kit
    seconds = report.limit(450)
    process = subprocess.Popen([sys.executable, os.path.join(HERE, "peer_torch.py"), "--seconds", str(max(20, seconds - 60))],
                               stdout=subprocess.PIPE, stderr=report.log_file, text=True, start_new_session=True)
    report.log("$ peer_torch.py")
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.alarm(int(seconds))
    for line in process.stdout:
        report.log("  out: " + line.rstrip())
        if not line.startswith("{"):
            continue
        found = json.loads(line)
        what = found.pop("what")
        key = {"decode": "peer.decode.{batch}.{mode}", "prefill": "peer.prefill.{tokens}.{mode}", "about": "peer.about"}[what]
        if "skipped" in found:
            report.skip(key.format(**found), found["skipped"])
        else:
            report.figure(key.format(**found), found)
    code = process.wait()
    signal.alarm(0)
    if code != 0:
        raise Skip("the peer ran into its timeout" if code == -signal.SIGKILL else f"the peer exited with {code}; device.log has its words")


def ops(report, kit):
    """Each operation of a prompt beside torch's kernels."""
    exes = [kit.path("ops", name) for name in kit.names("ops") if not name.endswith(".json")]
    for found in json_lines(report.must([sys.executable, os.path.join(HERE, "peer_ops.py"), *exes], timeout=report.limit(500))):
        if "tokens" in found:
            report.figure(f"peer.ops.{found.pop('shape')}.{found.pop('tokens')}", found)
        else:
            report.figure("peer.ops", found)


STEPS = (("1", 8192), ("8", 1024), ("1,16,64,256", 512))  # batches, tokens of each prompt


def our_steps(report, exe):
    """(batch, prompt): figures of EXE bench for each pair that steps() compares."""
    rates = {}
    for batches, prompt in STEPS:
        answer = report.must([exe, "bench", "--batch", batches, "--prompt", prompt, "--gen", 65, "--repeat", 3], timeout=120)
        for figures in json_lines(answer)[-1]["batches"]:
            rates[figures["batch"], prompt] = figures
    return rates


def has_vllm():
    return subprocess.run([sys.executable, "-c", "import vllm"], capture_output=True, check=False).returncode == 0


def peers_of_steps(report, shape):
    """(name, figures) of every peer that this machine has: vLLM, torch."""
    config = os.path.join(HERE, f"llama-{shape}.json")
    if has_vllm():
        for found in json_lines(report.must([sys.executable, os.path.join(HERE, "peer_vllm.py"), config], timeout=400)):
            yield "vllm", found
    else:
        report.skip("vllm", "python3 has no vllm")
    torch_flags = ["--shape", shape, "--context", 512, "--seconds", 150]
    for flags in (["--modes", "layer-graph", "--batches", "1,16,64,256"], ["--modes", "reduce-overhead", "--batches", "1,16"]):
        result = report.run([sys.executable, os.path.join(HERE, "peer_torch.py"), *torch_flags, *flags], timeout=200)
        for found in json_lines(result):  # what it has said before it ran out of time counts
            if "tok_s" in found:
                yield f"torch.{found.pop('mode')}", found


def steps(report, kit, shape):
    """Whole steps of prompts and of decoding: the peers between two runs of llmc."""
    exe = kit.path(f"llama-{shape}", "bf16-8192")
    before, theirs = our_steps(report, exe), list(peers_of_steps(report, shape))
    after, best = our_steps(report, exe), {}
    for name, found in theirs:
        what = found.pop("what", None)
        if what == "about":
            report.figure(f"steps.{shape}.about.{name}", found)
        elif what:
            case = what, found.get("batch", 1), found.get("tokens", found.get("context"))
            report.figure("steps.{}.{}.{}x{}.{}".format(shape, *case, name), found)
            best[case] = max(best.get(case, (0, "")), (found["tok_s"], name))
    for batches, prompt in STEPS:
        for batch in map(int, batches.split(",")):
            what = "decode" if prompt == 512 else "prefill"
            mine = [rates[batch, prompt][what + "_tokens_per_second"] for rates in (before, after)]
            tok_s, name = best.get((what, batch, prompt), (0, ""))
            report.figure("steps.{}.{}.{}x{}".format(shape, what, batch, prompt),
                          {"llmc_tok_s": [round(rate, 1) for rate in mine], "peer_tok_s": tok_s, "peer": name,
                           "ratio": round(sum(mine) / 2 / tok_s, 3) if tok_s else None})
