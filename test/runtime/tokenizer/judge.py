#!/usr/bin/env python3
"""Compares llmc's tokenizer with the references, on real vocabularies.

    python judge.py pairs --driver BUILD/test/runtime/tokenizer/llmc-tokenize-file [--llama-cpp FOLDER]
    python judge.py differential --driver ... [--count 20000] [--seed 1] VOCABULARY...

pairs: every models/ggml-vocab-*.gguf with .inp and .out of llama.cpp's sources: ids equal. The
sources are in the sdist of llama-cpp-python 0.3.36, which is downloaded unless a folder is given.

differential: random and adversarial strings (vocabularies.py), encoded and decoded, against HF
tokenizers (GGUF of models gpt2, gemma4 and bert, tokenizer.json) and sentencepiece (tokenizer.model,
GGUF of models llama and t5). What the reference builds from a GGUF file is also written as
tokenizer.json or tokenizer.model and read back by llmc: the forms of a tokenizer give equal ids.

Needs tokenizers, gguf, sentencepiece, protobuf. Ends with 1 if anything differs.
"""
import argparse
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import vocabularies
from vocabularies import Driver, Gguf, valid

# The pairs of llama.cpp --------------------------------------------------------------------------


def download():
    folder = Path(tempfile.gettempdir()) / "llama-cpp-python-0.3.36"
    models = folder / "llama_cpp_python-0.3.36/vendor/llama.cpp/models"
    if not models.exists():
        folder.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
                        "-d", folder, "llama-cpp-python==0.3.36"], check=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
            sdist.extractall(folder, members=[m for m in sdist if "/models/ggml-vocab-" in m.name], filter="data")
    return models


def pairs(arguments):
    folder = Path(arguments.llama_cpp) / "models" if arguments.llama_cpp else download()
    wrong = total = 0
    for path in sorted(folder.glob("ggml-vocab-*.gguf")):
        if not path.with_suffix(".gguf.inp").exists():
            continue
        inputs = path.with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
        outputs = path.with_suffix(".gguf.out").read_text().splitlines()
        if len(inputs) == len(outputs) + 1 and not inputs[-1]:
            inputs.pop()  # some of the files end with the line that separates
        driver = Driver(arguments.driver, path)
        failed = []
        for text, line in zip(inputs, outputs, strict=True):
            expected = [int(i) for i in line.split()]
            got = driver.encode(text)
            if got != expected:
                failed.append((text, expected, got))
        driver.close()
        print(f"{path.name}: {len(inputs) - len(failed)} of {len(inputs)} equal")
        for text, expected, got in failed[:5]:
            print(f"  {text!r}\n    expected {expected}\n    got      {got}")
        wrong += len(failed)
        total += len(inputs)
    print(f"{total - wrong} of {total} pairs equal")
    return wrong


# Differential ------------------------------------------------------------------------------------


class Report:
    def __init__(self, name):
        self.name, self.differences, self.compared, self.start = name, 0, 0, time.time()

    def compare(self, what, case, expected, got):
        self.compared += 1
        if expected == got:
            return
        self.differences += 1
        if self.differences <= 5:
            print(f"  {self.name}: {what} {case!r}\n    expected {expected!r}\n    got      {got!r}", flush=True)

    def close(self):
        print(f"{self.name}: {self.differences} differences in {self.compared} comparisons, {time.time() - self.start:.0f} s", flush=True)
        return self.differences


def without_special_pieces(reference):
    """The same Unigram model in which no text spells a special token: its pieces have names that no text has.

    HF gives the token where its name is a piece of the model, also for user text; llmc does not.
    """
    import json

    from tokenizers import Tokenizer

    data = json.loads(reference.to_str())
    if data["model"]["type"] != "Unigram":
        return reference
    special = {token["content"] for token in data["added_tokens"] if token["special"]}
    hidden = lambda i: f"\U0010FFFD{i}"
    data["model"]["vocab"] = [[hidden(i) if piece in special else piece, score] for i, (piece, score) in enumerate(data["model"]["vocab"])]
    data["added_tokens"] = [token for token in data["added_tokens"] if not token["special"]]
    data["post_processor"] = None
    return Tokenizer.from_str(json.dumps(data))


class ContentsKept:
    """Decodes as the reference, but every added token as its content (docs/tokenizers.md).

    HF's byte-level decoder takes contents in its alphabet (`û`) for the byte that the letter stands for.
    """

    def __init__(self, reference):
        from transformers.convert_slow_tokenizer import bytes_to_unicode

        self.reference = reference
        alphabet = set(bytes_to_unicode().values())
        is_taken = lambda text: set(text) <= alphabet and not text.isascii()
        self.contents = {i: t.content for i, t in reference.get_added_tokens_decoder().items() if is_taken(t.content) and not t.special}
        if "ByteLevel" not in str(reference.decoder):
            self.contents = {}

    def decode(self, ids, skip_special_tokens):
        text, run = "", []
        for i in ids:
            if i in self.contents:
                text += self.reference.decode(run, skip_special_tokens=skip_special_tokens) + self.contents[i]
                run = []
            else:
                run.append(i)
        return text + self.reference.decode(run, skip_special_tokens=skip_special_tokens)


def against_tokenizers(name, driver, reference, special, arguments):
    report = Report(name)
    special_ids = {reference.token_to_id(t) for t in special}
    decoder, plain = ContentsKept(reference), without_special_pieces(reference)
    for text in vocabularies.texts(arguments.seed, arguments.count, special) + vocabularies.long_texts():
        plain.encode_special_tokens = True
        report.compare("plain", text, plain.encode(valid(text), add_special_tokens=False).ids, driver.encode(text))
        reference.encode_special_tokens = False
        expected = reference.encode(valid(text), add_special_tokens=False).ids
        got = driver.encode(text, special=True)
        report.compare("special", text, expected, got)
        if not name.endswith("as gguf"):  # whose reference is built without a post-processor
            report.compare("with the tokenizer's own ends", text, reference.encode(valid(text), add_special_tokens=True).ids, driver.encode(text, prefix=True))
        report.compare("decode", got, decoder.decode(got, skip_special_tokens=False), driver.decode(got))
    rng = random.Random(arguments.seed)
    size = reference.get_vocab_size()
    for _ in range(arguments.count // 4):
        ids = [rng.randrange(size) if rng.random() < 0.9 or not special_ids else rng.choice(list(special_ids)[:50]) for _ in range(rng.randrange(1, 12))]
        for skip in (False, True):
            report.compare(f"decode skip={skip}", ids, decoder.decode(ids, skip_special_tokens=skip), driver.decode(ids, skip))
    return report.close()


def against_sentencepiece(name, driver, model, arguments):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    report = Report(name)
    names = [processor.id_to_piece(i) for i in range(processor.get_piece_size()) if processor.is_control(i) or i == processor.unk_id()]
    for text in vocabularies.texts(arguments.seed, arguments.count, names) + vocabularies.long_texts():
        expected = processor.encode(valid(text))
        got = driver.encode(text)
        report.compare("encode", text, expected, got)
        if processor.unk_id() not in expected:  # written as its name, not as " ⁇ "
            report.compare("decode", expected, processor.decode(expected), driver.decode(expected))
    return report.close()


def judge_gguf(path, arguments):
    file = Gguf(path)
    with tempfile.TemporaryDirectory() as folder:
        if file.model in ("llama", "t5"):
            model = vocabularies.model_proto_of_gguf(path)
            written = Path(folder) / "tokenizer.model"
            written.write_bytes(model)
            return sum(against_sentencepiece(f"{path.name} as {form.suffix[1:]}", Driver(arguments.driver, form), model, arguments)
                       for form in (path, written))
        reference, special = vocabularies.of_gguf(path)
        written = Path(folder) / "tokenizer.json"
        reference.save(str(written))
        return sum(against_tokenizers(f"{path.name} as {form.suffix[1:]}", Driver(arguments.driver, form), reference, special, arguments)
                   for form in (path, written))


def judge_json(path, arguments):
    from tokenizers import Tokenizer

    reference = Tokenizer.from_file(str(path))
    special = [t.content for t in reference.get_added_tokens_decoder().values()]
    return against_tokenizers(path.name, Driver(arguments.driver, path), reference, special, arguments)


def differential(arguments):
    differences = 0
    for vocabulary in map(Path, arguments.vocabularies):
        if vocabulary.suffix == ".gguf":
            differences += judge_gguf(vocabulary, arguments)
        elif vocabulary.suffix == ".json":
            differences += judge_json(vocabulary, arguments)
        else:
            differences += against_sentencepiece(vocabulary.name, Driver(arguments.driver, vocabulary), vocabulary.read_bytes(), arguments)
    print(f"{differences} differences")
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("pairs", "differential"):
        command = commands.add_parser(name)
        command.add_argument("--driver", required=True)
        if name == "pairs":
            command.add_argument("--llama-cpp")
        else:
            command.add_argument("--count", type=int, default=20000)
            command.add_argument("--seed", type=int, default=1)
            command.add_argument("vocabularies", nargs="+")
    arguments = parser.parse_args()
    sys.exit(1 if (pairs if arguments.command == "pairs" else differential)(arguments) else 0)


if __name__ == "__main__":
    main()
