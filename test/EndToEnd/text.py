"""run, chat, tokenize and perplexity with a real model."""
import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import time

import common
import context


def perplexity(checks, ctx):
    """Against transformers in f32 (scripts/make-perplexity-goldens.py). The whole text takes minutes; its first part is enough here."""
    golden = context.golden("smollm2-perplexity.json")["gguf"]["part"]
    text = os.path.join(common.DATA, "pride-and-prejudice.txt")
    for name in ("strided", "llamacpp"):
        wanted = golden[name]
        result = common.must([ctx.default(), "perplexity", "--json", "--method", name, "--tokens", golden["tokens"], text])
        got = json.loads(result.out)
        error = abs(got["perplexity"] / wanted["perplexity"] - 1)
        checks.check(f"perplexity, {name}: within 0.2 % of transformers in f32", error <= 2e-3 and got["tokens_scored"] == wanted["tokens_scored"],
                     f"{got['perplexity']:.4f}, reference {wanted['perplexity']:.4f}, {error:.3%}")


def tokenizing(checks, ctx):
    exe, text = ctx.default(), "Hello, world!\n\n  Größe 猫 🙂 <|im_end|>"
    ids = common.must([exe, "tokenize", text]).text.split()
    back = common.must([exe, "detokenize", *ids]).text
    checks.check("tokenize and detokenize are inverse", back == text + "\n", repr(back) if back != text + "\n" else f"{len(ids)} tokens")
    special = common.must([exe, "tokenize", "--special", text]).text.split()
    checks.check("control tokens only with --special", len(special) < len(ids))


def sampling(checks, ctx):
    exe = ctx.default()
    ask = lambda *flags: json.loads(common.must([exe, "run", "--json", "-n", 48, *flags, "Count from one to twenty in words."]).out)
    whole = ask()
    at = len(whole["text"]) // 2
    stop = whole["text"][at:at + 7]
    cut = ask("--stop", stop)
    checks.check("a stop string cuts the text", cut["text"] == whole["text"][:whole["text"].index(stop)] and cut["stop"] == stop and cut["finish"] == "stop",
                 repr(stop))
    logprobs = ask("--logprobs", 5, "-t", "0.01")["logprobs"]
    checks.check("log-probabilities", all(token["logprob"] <= 0 and len(token["top"]) == 5 for token in logprobs) and len(logprobs) > 0)
    plain = ask("-t", "0.9", "--top-k", 40, "--typical-p", "0.95", "--top-p", "0.9", "--min-p", "0.02", "--repetition-penalty", "1.1", "--seed", 3)
    checks.check("every filter at once, twice the same", plain["text"] == ask("-t", "0.9", "--top-k", 40, "--typical-p", "0.95", "--top-p", "0.9", "--min-p", "0.02",
                                                                             "--repetition-penalty", "1.1", "--seed", 3)["text"], repr(plain["text"][:50]))


def conversation(checks, ctx):
    """Three turns in one process against a cold run of the same messages."""
    exe = ctx.default()
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "chat.json")
        lines = ["My name is Ada.", "What is my name?", "Say <|im_end|> backwards.", "/stats", f"/save {saved}", ""]
        result = common.must([exe, "chat", "-n", 24, "--system", "Be brief."], stdin="\n".join(lines).encode())
        with open(saved, encoding="utf-8") as file:
            messages = json.load(file)
        checks.check("chat has three turns", [m["role"] for m in messages] == ["system"] + ["user", "assistant"] * 3)
        for at in (2, 4, 6):
            with open(os.path.join(folder, "m.json"), "w", encoding="utf-8") as file:
                json.dump(messages[:at], file)
            cold = json.loads(common.must([exe, "run", "--json", "-n", 24, "--messages", os.path.join(folder, "m.json")]).out)
            checks.check(f"answer {at // 2} is that of a cold cache", cold["text"] == messages[at]["content"], repr(messages[at]["content"][:50]))
        started = messages[:2] + [{"role": "assistant", "content": "Dear Ada, your name"}]
        with open(os.path.join(folder, "m.json"), "w", encoding="utf-8") as file:
            json.dump(started, file)
        answer = json.loads(common.must([exe, "run", "--ids", "-n", 4, "--continue-final-message", "--messages", os.path.join(folder, "m.json")]).out)
        seen = common.must([exe, "detokenize", *map(str, answer["prompt_ids"])]).text
        checks.check("--continue-final-message goes on with an answer", seen.endswith("<|im_start|>assistant\nDear Ada, your name\n"), repr(answer["text"]))
        checks.check("the history came from the cache", " of them from the cache" in result.errors, result.errors.strip().splitlines()[-1])


def interrupt(checks, ctx):
    """Ctrl-C in a terminal stops an answer and keeps the conversation."""
    master, slave = pty.openpty()
    process = subprocess.Popen([ctx.default(), "chat", "-n", "4000", "--ignore-eos"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                               preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(slave)
    seen = ""

    def sees(part, limit=60):
        nonlocal seen
        end = time.monotonic() + limit
        while part not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.5)[0]:
                try:
                    seen += os.read(master, 4096).decode("utf-8", "replace")
                except OSError:
                    break
        found = part in seen
        seen = seen.split(part, 1)[1] if found else seen
        return found

    try:
        checks.check("chat greets on a terminal", sees("/help lists the commands]") and sees("> "))
        os.write(master, b"Write a very long story.\n")
        time.sleep(3)
        os.write(master, b"\x03")
        checks.check("Ctrl-C stops the answer", sees("[stopped"), repr(seen[-80:]))
        os.write(master, b"/stats\n")
        checks.check("the partial answer stays in the conversation", sees("2 messages,"), repr(seen[-80:]))
        os.write(master, b"\x04")
        checks.check("Ctrl-D leaves", process.wait(30) == 0)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        os.close(master)
