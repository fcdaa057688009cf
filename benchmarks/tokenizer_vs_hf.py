#!/usr/bin/env python3
"""Single-thread throughput of llmc's tokenizer beside HF tokenizers, interleaved.

    TOKENIZERS_PARALLELISM=false RAYON_NUM_THREADS=1 python benchmarks/tokenizer_vs_hf.py \\
        --driver BUILD/test/runtime/tokenizer/llmc-tokenize-file [--text FILE] [--rounds 9] VOCABULARY...

VOCABULARY: a GGUF file of model gpt2, gemma4 or bert, or a tokenizer.json. The text (prose, code, numbers and
other scripts, about 60 KB) is encoded in one call; HF tokenizers by encode and by encode_batch_fast, which leaves
out offsets: the faster one counts. Times are CPU times, since machines are shared; the two take turns and the
median of the rounds' ratios counts.

Needs tokenizers and gguf. The last line is one JSON object: {"ratio": {vocabulary: times faster}, "least": ...}.
"""
import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/runtime/tokenizer"))

import vocabularies  # noqa: E402


def default_text():
    prose = (ROOT / "test/data/evaluation.txt").read_text()
    code = (ROOT / "test/runtime/tokenizer/vocabularies.py").read_text() + (ROOT / "runtime/tokenizer/Tokenizer.h").read_text()
    mixed = "\n".join(t for t in vocabularies.texts(5, 400) if isinstance(t, str))
    return prose * 8 + code * 2 + mixed


def reference_of(path):
    from tokenizers import Tokenizer

    if path.suffix == ".json":
        return Tokenizer.from_file(str(path))
    return vocabularies.of_gguf(path)[0]


def measure(reference, driver, text, rounds):
    """Bytes a second of (llmc, HF), by the median of the rounds, and the median of their ratios."""
    size = len(text.encode())
    best = lambda times: min(times)

    def theirs():
        times = []
        for call in (lambda: reference.encode(text, add_special_tokens=False), lambda: reference.encode_batch_fast([text], add_special_tokens=False)):
            start = time.process_time_ns()
            call()
            times.append(time.process_time_ns() - start)
        return best(times)

    driver.nanoseconds(text, 1), theirs()  # caches, pages
    pairs = [(driver.nanoseconds(text, 1)[0], theirs()) for _ in range(rounds)]
    return (1e3 * size / statistics.median(p[0] for p in pairs), 1e3 * size / statistics.median(p[1] for p in pairs),
            statistics.median(p[1] / p[0] for p in pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--text")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("vocabularies", nargs="+")
    arguments = parser.parse_args()
    text = Path(arguments.text).read_text() if arguments.text else default_text()
    ratios = {}
    for path in map(Path, arguments.vocabularies):
        driver = vocabularies.Driver(arguments.driver, path)
        ours, theirs, ratio = measure(reference_of(path), driver, text, arguments.rounds)
        driver.close()
        ratios[path.stem] = round(ratio, 2)
        print(f"{path.stem}: llmc {ours:.1f} MB/s, tokenizers {theirs:.1f} MB/s, ratio {ratio:.2f}", flush=True)
    print(json.dumps({"ratio": ratios, "least": min(ratios.values())}))


if __name__ == "__main__":
    main()
