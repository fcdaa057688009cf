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


def rates_of_8b(report, exe):
    """(batch, prompt): figures of EXE bench for each pair that vllm() compares."""
    rates = {}
    for batches, prompt in (("1", 8192), ("8", 1024), ("1,16,64", 1000)):
        answer = report.must([exe, "bench", "--batch", batches, "--prompt", prompt, "--gen", 65, "--repeat", 3], timeout=120)
        for figures in json_lines(answer)[-1]["batches"]:
            rates[figures["batch"], prompt] = figures
    return rates


def vllm(report, kit):
    """vLLM on the 8B shape between two runs of llmc."""
    if subprocess.run([sys.executable, "-c", "import vllm"], capture_output=True, check=False).returncode != 0:
        raise Skip("python3 has no vllm")
    exe = kit.path("llama-8b", "bf16-8192")
    before = rates_of_8b(report, exe)
    peer = report.must([sys.executable, os.path.join(HERE, "peer_vllm.py"), os.path.join(HERE, "llama-8b.json")], timeout=400)
    after = rates_of_8b(report, exe)
    for found in json_lines(peer):
        what = found.pop("what", None)
        if what == "about":
            report.figure("peer.vllm.about", found)
        elif what:
            case = found["batch"], found.get("tokens", found.get("context"))
            mine = [rates[case][what + "_tokens_per_second"] for rates in (before, after)]
            report.figure("peer.vllm.{}.{}x{}".format(what, *case),
                          {**found, "llmc_tok_s": [round(rate, 1) for rate in mine], "ratio": round(sum(mine) / 2 / found["tok_s"], 3)})
