#!/usr/bin/env python3
"""Writes small_goldens.json: small vocabularies of every kind, and what the references give for them.

    python make_small_goldens.py        (needs tokenizers, sentencepiece, protobuf)

"tokenizers": name -> {"json": a tokenizer.json, "gguf": {metadata beside tokens and merges} where
a GGUF file can say the same}; "models": name -> {"base64": a tokenizer.model}. Each has "plain"
(special tokens stay text) and "special": FNV-1a of the ids of every text of "texts", "ends": of the first texts with what the post-processor adds, and "decode":
[ids, text, text without special tokens].
"""
import base64
import io
import json
import random
import struct
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import vocabularies
from vocabularies import LLAMA3, QWEN2, byte_level, digits, split, valid

HERE = Path(__file__).parent
CORPUS = (HERE / "../../data/evaluation.txt").read_text()
CORPUS += "\nDon't  panic: naïve café, 12345 + 3.14 = x;\n\tdef f(a_b): return 'привет мир', \"中文 日本語\", 한국어, नमस्ते, שלום 🦊👩‍🚀\n" * 12
ALPHABET = pre_tokenizers.ByteLevel.alphabet()
SPECIAL = [AddedToken("<s>", special=True, normalized=False), AddedToken("<|turn|>", special=True, normalized=False, lstrip=True),
           AddedToken("<|mask|>", special=True, normalized=False, rstrip=True)]
ADDED = [AddedToken("<|a|>", normalized=False), AddedToken("<|a|>x", normalized=False), AddedToken("wör", single_word=True), AddedToken("Foo Bar", lstrip=True, rstrip=True)]


def trained(model, trainer, normalizer=None, pre=None, decoder=None, processor=None, added=True):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(pre) if isinstance(pre, list) else pre
    if decoder:
        tokenizer.decoder = decoders.Sequence(decoder) if isinstance(decoder, list) else decoder
    tokenizer.train_from_iterator(CORPUS.splitlines(keepends=True), trainer)
    if added:
        tokenizer.add_special_tokens(SPECIAL)
        tokenizer.add_tokens(ADDED)
    if processor:
        tokenizer.post_processor = processor(tokenizer)
    return tokenizer


def bpe(size=420, alphabet=ALPHABET, special=(), **options):
    return trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=list(alphabet), special_tokens=list(special), **options)


def changed(tokenizer, **model):
    """The same with other settings of the model."""
    data = json.loads(tokenizer.to_str())
    data["model"].update(model)
    return Tokenizer.from_str(json.dumps(data))


def byte_pairs(pre, normalizer=None, **model):
    return changed(trained(models.BPE(), bpe(), normalizer, pre, decoders.ByteLevel()), **model)


BYTES = [f"<0x{b:02X}>" for b in range(256)]
SPM_DECODER = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]


def characters(normalizer=None, pre=None, fallback=True, decoder=SPM_DECODER, **model):
    trainer = trainers.BpeTrainer(vocab_size=700 if fallback else 400, show_progress=False, limit_alphabet=90, special_tokens=["<unk>", *(BYTES if fallback else [])])
    tokenizer = trained(models.BPE(unk_token="<unk>"), trainer, normalizer, pre, list(decoder) if decoder else None)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in BYTES]
    data["model"].update({"fuse_unk": True, "byte_fallback": fallback, **model})
    return Tokenizer.from_str(json.dumps(data))


def metaspace(scheme, split=False):
    return pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=split)


def template(before="<s> ", after=""):
    return lambda t: processors.TemplateProcessing(single=f"{before}$A{after}", special_tokens=[(p, t.token_to_id(p)) for p in (before + after).split()])


def unigram(normalizer, pre, decoder):
    trainer = trainers.UnigramTrainer(vocab_size=400, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>")
    return trained(models.Unigram(), trainer, normalizer, pre, decoder)


def words(model, trainer, **steps):
    return trained(model(unk_token="[UNK]"), trainer(vocab_size=350, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]"]), **steps)


def tokenizers_of_each_kind(charsmap):
    N, P = normalizers, pre_tokenizers
    word_piece = dict(pre=P.BertPreTokenizer(), decoder=decoders.WordPiece("##"), processor=template("[CLS] ", " [SEP]"))
    yield "gpt2", byte_pairs(byte_level()), {"pre": "gpt-2"}
    yield "gpt2-prefix-space", byte_pairs(P.ByteLevel(add_prefix_space=True)), {"pre": "gpt-2", "add_space_prefix": True}
    yield "digits", byte_pairs([digits(), byte_level()]), {"pre": "smollm"}
    yield "llama3", byte_pairs([split(LLAMA3), byte_level(False)], ignore_merges=True), {"pre": "llama-bpe"}
    yield "qwen2", byte_pairs([split(QWEN2), byte_level(False)], N.NFC()), {"pre": "qwen2"}
    for name in ("falcon", "deepseek-coder", "deepseek-llm", "qwen35", "mpt"):
        normalizer, steps, _ = vocabularies.pipeline(name)
        yield name, byte_pairs(steps, normalizer), {"pre": name}
    yield "spm-legacy", characters(N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])), None
    for scheme in ("first", "always", "never"):
        yield f"metaspace-{scheme}", characters(pre=metaspace(scheme)), None
        yield f"metaspace-{scheme}-split", characters(pre=metaspace(scheme, True), fallback=False, decoder=[decoders.Metaspace("▁", scheme)]), None
    yield "gemma", characters(N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), decoder=SPM_DECODER[:3]), None
    yield "unknown-not-fused", characters(pre=P.Whitespace(), fallback=False, decoder=None, fuse_unk=False), None
    yield "gpt1", trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), bpe(alphabet="", special=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=80),
                          N.BertNormalizer(), P.BertPreTokenizer(), decoders.BPEDecoder("</w>")), None
    yield "clip", trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), bpe(special=["<unk>"], end_of_word_suffix="</w>"),
                          N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]),
                          [P.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True), byte_level(False)], decoders.ByteLevel()), None
    yield "continuing-prefix", trained(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), bpe(alphabet="", special=["<unk>"], continuing_subword_prefix="##", limit_alphabet=80),
                                       None, P.WhitespaceSplit(), decoders.WordPiece("##", cleanup=False)), None
    yield "bert", words(models.WordPiece, trainers.WordPieceTrainer, normalizer=N.BertNormalizer(), **word_piece), None
    yield "bert-cased", words(models.WordPiece, trainers.WordPieceTrainer, normalizer=N.BertNormalizer(lowercase=False, strip_accents=True, handle_chinese_chars=False), **word_piece), None
    yield "words", words(models.WordLevel, trainers.WordLevelTrainer, pre=P.Whitespace()), None
    yield "unigram", unigram(N.Sequence([N.Nmt(), N.NFKC(), N.Lowercase(), N.NFD(), N.StripAccents()]), metaspace("always", True), decoders.Metaspace()), None
    yield "unigram-charsmap", unigram(N.Sequence([N.Precompiled(charsmap), N.Strip(False, True), N.Replace(Regex(" {2,}"), "▁")]), [P.WhitespaceSplit(), metaspace("first", True)], decoders.Metaspace("▁", "first")), None
    steps = {
        "punctuation-removed": [P.WhitespaceSplit(), P.Punctuation("removed")],
        "punctuation-next": [P.Punctuation("merged_with_next")],
        "punctuation-previous": [P.Punctuation("merged_with_previous")],
        "split-contiguous": [P.Split(Regex(r"[aeiou\s]"), "contiguous")],
        "split-next": [P.Split(Regex(r"[A-Z0-9]"), "merged_with_next")],
        "split-previous-invert": [P.Split(Regex(r"\w+"), "merged_with_previous", invert=True)],
        "split-literal": [P.Split("the", "removed"), P.Split(".", "isolated")],
        "delimiter": [P.CharDelimiterSplit("e")],
        "scripts": [P.UnicodeScripts(), P.Digits(individual_digits=False)],
        "fixed-length": [P.FixedLength(3)],
        "triples": [P.Split(Regex(r"\p{N}+"), "isolated"), P.Split(Regex(r"(?=(\d{3})+(?!\d))"), "isolated")],
    }
    for name, pre in steps.items():
        yield name, characters(pre=pre, fallback=False, decoder=None), None
    forms = {
        "nfkd": [N.NFKD(), N.Strip(True, True)], "nfkc": [N.NFKC()], "nfd": [N.NFD()], "accents": [N.NFD(), N.StripAccents(), N.Lowercase()],
        "prepend": [N.Prepend("<<"), N.Replace("e", "3"), N.Replace(Regex("[0-9]+"), "#")], "byte-normalizer": [N.ByteLevel()],
    }
    for name, steps in forms.items():
        alphabet = dict(alphabet=ALPHABET) if name == "byte-normalizer" else dict(alphabet="", limit_alphabet=90)
        yield f"normal-{name}", trained(models.BPE(unk_token="<unk>"), bpe(400, special=["<unk>"], **alphabet), N.Sequence(steps), None,
                                        decoders.ByteLevel() if name == "byte-normalizer" else None), None


def sentencepieces():
    rules = io.StringIO()
    for source, target in [("\u2460", "1"), ("\uff41", "a"), ("\ufb01", "fi"), ("\u3000", " "), ("\t", " "), ("\n", " "), ("e\u0301", "é"), ("\u00df", "ss"), ("\u200b", ""), ("\u00a0", " ")]:
        rules.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")
    rule_file = Path("/tmp/llmc-normalization-rules.tsv")
    rule_file.write_text(rules.getvalue())
    shared = dict(vocab_size=420, normalization_rule_name="identity", num_threads=1, minloglevel=2, hard_vocab_limit=False)
    kinds = {
        "bpe": dict(model_type="bpe", vocab_size=700, byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98),
        "bpe-symbols": dict(model_type="bpe", user_defined_symbols=["<|a|>", "\n", "▁▁", "12", "ab"], control_symbols=["<ctrl>"]),
        "bpe-suffix": dict(model_type="bpe", treat_whitespace_as_suffix=True),
        "bpe-no-prefix": dict(model_type="bpe", add_dummy_prefix=False, remove_extra_whitespaces=False),
        "unigram": dict(model_type="unigram"),
        "unigram-bytes": dict(model_type="unigram", vocab_size=700, byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98),
        "unigram-rules": dict(model_type="unigram", normalization_rule_name=None, normalization_rule_tsv=str(rule_file), user_defined_symbols=["<|a|>", "ﬁ", "12"]),
        "char": dict(model_type="char"),
    }
    for name, options in kinds.items():
        model = io.BytesIO()
        options = {key: value for key, value in {**shared, **options}.items() if value is not None}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS.splitlines()), model_writer=model, **options)
        yield name, model.getvalue()


def fnv(ids):
    h = 0x811C9DC5
    for byte in b"".join(struct.pack("<i", i) for i in ids):
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return h


def goldens_of(tokenizer, texts):
    out = {}
    for name in ("plain", "special"):
        tokenizer.encode_special_tokens = name == "plain"
        out[name] = [fnv(tokenizer.encode(valid(t), add_special_tokens=False).ids) for t in texts]
    out["ends"] = [fnv(tokenizer.encode(valid(t), add_special_tokens=True).ids) for t in texts[:24]]
    rng = random.Random(7)
    out["decode"] = []
    for i in range(24):
        ids = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randrange(1, 9))] if i % 2 else tokenizer.encode(valid(texts[i]), add_special_tokens=False).ids[:40]
        out["decode"].append([ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids, skip_special_tokens=True)])
    return out


def goldens_of_model(model, texts):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    encoded = [processor.encode(valid(t)) for t in texts]
    known = [ids for ids in encoded if ids and processor.unk_id() not in ids][:24]
    return {"plain": [fnv(ids) for ids in encoded], "decode": [[ids, processor.decode(ids), processor.decode(ids)] for ids in known]}


def main():
    texts = vocabularies.texts(11, 260, [t.content for t in SPECIAL + ADDED]) + ["", " ", "Foo Bar", " wör wör! xwör", "<|a|>xy", "p  <|turn|> q", "p <|mask|> \n q", "<|turn|><|mask|>  "]
    pieces = dict(sentencepieces())
    from sentencepiece import sentencepiece_model_pb2 as proto
    charsmap = proto.ModelProto.FromString(pieces["unigram-rules"]).normalizer_spec.precompiled_charsmap
    out = {"texts": [t if isinstance(t, str) else {"hex": t.hex()} for t in texts], "tokenizers": {}, "models": {}}
    for name, tokenizer, gguf in tokenizers_of_each_kind(charsmap):
        data = json.loads(tokenizer.to_str())
        out["tokenizers"][name] = {"json": data, **({"gguf": gguf} if gguf else {}), **goldens_of(tokenizer, texts)}
    for name, model in pieces.items():
        out["models"][name] = {"base64": base64.b64encode(model).decode(), **goldens_of_model(model, texts)}
    with open(HERE / "small_goldens.json", "w", encoding="utf-8") as file:
        def lines(entries):
            return "{\n" + ",\n".join(json.dumps(k) + ":" + json.dumps(v, ensure_ascii=False, separators=(",", ":")) for k, v in entries.items()) + "\n}"
        file.write("{\n" + ",\n".join(json.dumps(k) + ": " + (lines(v) if isinstance(v, dict) else json.dumps(v, ensure_ascii=False)) for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()
