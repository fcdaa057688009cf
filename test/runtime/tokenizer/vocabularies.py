"""Vocabularies for judge.py and make_small_goldens.py: how to get the reference's
tokenizer of a file that llmc reads, and strings that are hard to tokenize.

Needs the packages tokenizers and gguf; sentencepiece and protobuf for tokenizer.model.
"""
import random
import struct
import subprocess

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

# Driver ------------------------------------------------------------------------------------------


class Driver:
    """llmc-tokenize-file --pipe."""

    def __init__(self, binary, vocabulary):
        self.process = subprocess.Popen([binary, str(vocabulary), "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what, payload):
        self.process.stdin.write(what.encode() + struct.pack("<I", len(payload)) + payload)
        self.process.stdin.flush()
        size = self.process.stdout.read(4)
        if len(size) < 4:
            raise RuntimeError(f"the driver ended with {self.process.wait()}")
        return self.process.stdout.read(struct.unpack("<I", size)[0])

    def encode(self, text, special=False, prefix=False):
        text = text if isinstance(text, bytes) else text.encode()
        answer = self.ask("p" if prefix else "s" if special else "e", text)
        return list(struct.unpack(f"<{len(answer) // 4}i", answer))

    def decode(self, ids, skip=False):
        return self.ask("k" if skip else "d", struct.pack(f"<{len(ids)}i", *ids)).decode()

    def nanoseconds(self, text, repeats):
        """Of thread time for encoding `text` that often, and how many ids came out of it."""
        return struct.unpack("<QQ", self.ask("b", struct.pack("<I", repeats) + text.encode()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# GGUF to the reference ---------------------------------------------------------------------------


class Gguf:
    def __init__(self, path):
        import gguf

        fields = gguf.GGUFReader(path).fields
        self.get = lambda key, default=None: fields[key].contents() if key in fields else default
        self.model = self.get("tokenizer.ggml.model")
        self.pre = self.get("tokenizer.ggml.pre", "default")
        self.tokens = self.get("tokenizer.ggml.tokens")
        self.kinds = self.get("tokenizer.ggml.token_type") or [1] * len(self.tokens)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1F7Dᾀ-ᾴᾶ-ᾼ"
    "\u1FBEῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)


def digits():
    return pre_tokenizers.Digits(individual_digits=True)


def pipeline(pre):
    """normalizer, pre-tokenizers and ignore_merges of the models' own tokenizer.json."""
    nfc = normalizers.NFC()
    return {
        "gpt-2": (None, [byte_level()], False),
        "mpt": (nfc, [byte_level()], False),
        "smollm": (None, [digits(), byte_level()], False),
        "starcoder": (None, [digits(), byte_level()], False),
        "refact": (None, [digits(), byte_level()], False),
        "command-r": (nfc, [digits(), byte_level()], False),
        "llama-bpe": (None, [split(LLAMA3), byte_level(False)], True),
        "qwen2": (nfc, [split(QWEN2), byte_level(False)], False),
        "qwen35": (None, [split(QWEN35), byte_level(False)], False),
        "falcon": (None, [pre_tokenizers.Punctuation("contiguous"), byte_level(), pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")], False),
        "deepseek-coder": (None, [split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), digits(), byte_level(False)], False),
        "deepseek-llm": (None, [split("[\r\n]"), split(DEEPSEEK_LETTERS), split("\\s?[!-/:-~！-／：-～‘-‟　-。]+"), split("\\s+$"), split("[一-龥ࠀ-一가-퟿]+"), digits(), byte_level(False)], False),
    }[pre]


def of_gguf(path):
    """A GGUF vocabulary as the `tokenizers` library's Tokenizer."""
    file = Gguf(path)
    vocabulary = {t: i for i, t in enumerate(file.tokens)}
    special = [t for t, kind in zip(file.tokens, file.kinds) if kind == 3]
    defined = [t for t, kind in zip(file.tokens, file.kinds) if kind == 4]
    if file.model == "bert":
        tokenizer = word_piece(file)
    else:
        merges = [tuple(m.split(" ")) for m in file.get("tokenizer.ggml.merges")]
        if file.model == "gemma4":
            tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
            tokenizer.normalizer = normalizers.Replace(" ", "▁")
            tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
            tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        else:
            normalizer, steps, ignore_merges = pipeline(file.pre)
            tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore_merges))
            if normalizer:
                tokenizer.normalizer = normalizer
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
            tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in special])
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in defined])
    return tokenizer, special + defined


def word_piece(file):
    def spelling(token, kind):
        if kind == 3:
            return token
        return token[1:] if token.startswith("▁") else "##" + token

    vocabulary = {spelling(t, kind): i for i, (t, kind) in enumerate(zip(file.tokens, file.kinds))}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    return tokenizer


def model_proto_of_gguf(path):
    """A SentencePiece vocabulary of a GGUF file as the bytes of a tokenizer.model."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    file = Gguf(path)
    unigram = file.model == "t5"
    model = proto.ModelProto()
    unknown = file.get("tokenizer.ggml.unknown_token_id", 0)
    for i, (token, score, kind) in enumerate(zip(file.tokens, file.get("tokenizer.ggml.scores"), file.kinds)):
        # Of several unknown pieces (old converters) the others are names of nothing.
        kind = 2 if i == unknown else 3 if kind == 2 else kind
        model.pieces.add(piece=token, score=score, type=kind)
    model.trainer_spec.model_type = 1 if unigram else 2
    model.trainer_spec.byte_fallback = 6 in file.kinds
    model.trainer_spec.unk_id = unknown
    model.trainer_spec.bos_id = file.get("tokenizer.ggml.bos_token_id", 1)
    model.trainer_spec.eos_id = file.get("tokenizer.ggml.eos_token_id", 2)
    model.normalizer_spec.add_dummy_prefix = file.get("tokenizer.ggml.add_space_prefix", not unigram)
    model.normalizer_spec.remove_extra_whitespaces = file.get("tokenizer.ggml.remove_extra_whitespaces", False)
    model.normalizer_spec.precompiled_charsmap = bytes(b & 255 for b in file.get("tokenizer.ggml.precompiled_charsmap", []))
    return model.SerializeToString()


# Strings -----------------------------------------------------------------------------------------

FRAGMENTS = [
    " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\t\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\u180e", "\u200b", "\u200d", "\ufeff", "\x85", "\x0b\x0c",
    "'s", "'S", "'ll", "'LL", "\u2019t", "don't", "he'll've", "I'm", "we'D", "the", " the", "The", " quick", "ing", "er", "é", "e\u0301", "\u0301",
    "ñ", "Straße", " naïve", "Ω", "привет", " мир", "שלום", "مرحبا", "नमस्ते", "ไทย", "中文", "日本語", "한국어", "\u1100\u1161", "ｆｕｌｌ", "㍿", "①",
    "0", "7", "42", " 123", "2048kg", "3.14", "½", "²", "Ⅷ", "٣", "१२", "1,000,000", "12345678", "!", "?!", "...", "--", "(", ")", "{", "}", "。", "，", "¿",
    "[0]", "=>", "!=", "//", "/*", "*/", "#", "@", "$x", "%", "&", "_", "__init__", "def f(x):", "return", "x=\t\t7", ";", "<", ">", "|", "^", "~", "`", "+",
    "🦊", "👩‍🚀", "🏳️‍🌈", "❄", "❄️", "🇩🇪", "\u0301\u0323", "\x00", "\x01", "\x7f", "\U0001F600", "\U00020000", "\U0010FFFF", "\ufffd", "ſ", "ﬁ", "ǅ", "ʰ", "‿",
    "http://a.b/c?d=e&f=1", "AAAAAAAAAAAAAAAAAAAAAAAA", "aaaaaaaaaaaaaaaaa", "=====", "          ", "\n\n\n\n", "zzzzzzzZZZZ", "▁", "▁▁", "Ġ", "##", "<0x0A>", "<0xC3>", "<0xc3>",
    "İ", "ß", "K", "Å", "a\u0328\u0301", "\u0344", "각", "각", "ஸ்ரீ", "က်", "\u202e", "\u2066", "\ufe0f", "\U000e0061", "\U0001d400",
]
WORDS = ("time", " year", " people", " way", "Day", " man", " thing", " woman", " life", " CHILD", " World", " school", " state", " family", " student", " group",
         " country", " problem", " hand", " part", " place", " case", " week", " company", " system", " program", " question", " work", " government", " number",
         " über", " être", " señor", " год", " человек", " 时间", "年", " わたし", " النهار", " שנה", " साल", " ปี")
SCRIPTS = [(0x20, 0x7F), (0, 0x300), (0x300, 0x370), (0x370, 0x530), (0x590, 0x780), (0x900, 0xE80), (0x1000, 0x1200), (0x2000, 0x2070), (0x2070, 0x2C00),
           (0x3000, 0x3400), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xF900, 0x10000), (0x10000, 0x11000), (0x1F300, 0x1FB00), (0, 0x110000)]


def random_text(rng, special):
    kind = rng.randrange(9)
    fragments = FRAGMENTS + special * 2
    if kind < 2:
        return "".join(rng.choice(fragments) for _ in range(rng.randrange(1, 12)))
    if kind == 2:
        return "".join(rng.choice(WORDS) if rng.random() < 0.7 else rng.choice(fragments) for _ in range(rng.randrange(1, 20)))
    if kind == 3:
        return "".join(chr(rng.randrange(0x20, 0x7F)) if rng.random() < 0.8 else rng.choice(" \n\t") for _ in range(rng.randrange(1, 60)))
    if kind == 4:  # malformed UTF-8, which counts as U+FFFD
        raw = bytearray("".join(rng.choice(fragments) for _ in range(rng.randrange(1, 6))).encode("utf-8", "surrogatepass"))
        for _ in range(rng.randrange(1, 5)):
            raw.insert(rng.randrange(len(raw) + 1), rng.choice([0x80, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xFF, rng.randrange(256)]))
        return bytes(raw)
    if kind == 5:
        return rng.choice(fragments) * rng.randrange(1, 40)
    if kind == 6:  # special tokens, whole, cut and beside spaces
        token = rng.choice(special or FRAGMENTS)
        cut = token[: rng.randrange(1, len(token) + 1)]
        return rng.choice(fragments) + rng.choice(["", " ", "  ", "\n"]) + rng.choice([token, cut]) + rng.choice(["", " ", "\n "]) + rng.choice(fragments)
    ranges = [rng.choice(SCRIPTS) for _ in range(rng.randrange(1, 4))]
    points = (rng.randrange(*rng.choice(ranges)) for _ in range(rng.randrange(1, 24)))
    return "".join(chr(c) for c in points if not 0xD800 <= c <= 0xDFFF)


def texts(seed, count, special=()):
    rng = random.Random(seed)
    special = list(special)[:400]
    return [random_text(rng, special) for _ in range(count)]


def long_texts():
    units = ["Z", "中", ".", " ", "\n", "\u0301", "0", "Zz", "a b ", "🦊", "▁", "é\u0301 "]
    return [unit * (20000 // len(unit)) for unit in units]


def valid(text):
    """What the reference is given: malformed UTF-8 counts as U+FFFD, one per maximal subpart."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
