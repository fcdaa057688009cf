"""ggml's quantised blocks (ggml-common.h), written with simple quantisers. Only the standard library.

encode(values, kind) -> (bytes, the values as they are stored, array of f32). These are right to the last bit: products of
an f16, integers and codes have at most 24 bits, and a double holds their sum with a minimum before the one rounding to f32.
"""
import array
import bisect
import math
import struct

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
# kind -> (values of a block, number of ggml's enum)
BLOCKS = {"Q4_0": (32, 2), "Q4_1": (32, 3), "Q5_0": (32, 6), "Q5_1": (32, 7), "Q8_0": (32, 8), "Q2_K": (256, 10), "Q3_K": (256, 11),
          "Q4_K": (256, 12), "Q5_K": (256, 13), "Q6_K": (256, 14), "IQ4_NL": (32, 20), "IQ4_XS": (256, 23)}


def f16(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def halves(codes, count):
    """Nibbles: of each 2 * count codes, the first ones low, the others high."""
    return bytes(codes[at + i] & 15 | (codes[at + count + i] & 15) << 4 for at in range(0, len(codes), 2 * count) for i in range(count))


def parts(codes, count, bits):
    """The same for parts of 1 or 2 bits: code i + count * j is at bit bits * j of byte i."""
    mask = (1 << bits) - 1
    return bytes(sum((codes[at + i + count * j] & mask) << (bits * j) for j in range(8 // bits))
                 for at in range(0, len(codes), count * 8 // bits) for i in range(count))


def clamp(value, low, high):
    return low if value < low else high if value > high else value


BORDERS = [(a + b) / 2 for a, b in zip(IQ4, IQ4[1:])]


def nearest(x):
    """The code of a table whose value is nearest."""
    return bisect.bisect(BORDERS, x)


# ---- blocks of 32 ---------------------------------------------------------------------------------------------------


def short(x, kind):
    if kind == "Q8_0":
        d = f16(max(abs(v) for v in x) / 127.0)
        codes = [clamp(round(v / d), -127, 127) if d else 0 for v in x]
        return struct.pack("<e32b", d, *codes), [d * c for c in codes]
    if kind == "IQ4_NL":
        d = f16(max(x, key=abs) / -127.0)
        codes = [nearest(v / d) if d else 8 for v in x]
        return struct.pack("<e", d) + halves(codes, 16), [d * IQ4[c] for c in codes]
    zero = {"Q4_0": 8, "Q5_0": 16}.get(kind, 0)
    top = 31 if kind.startswith("Q5") else 15
    if zero:
        d = f16(max(x, key=abs) / -zero)
        codes = [clamp(math.floor(v / d + zero + 0.5), 0, top) if d else zero for v in x]
        head, stored = struct.pack("<e", d), [d * (c - zero) for c in codes]
    else:
        low = min(x)
        d, m = f16((max(x) - low) / top), f16(low)
        codes = [clamp(math.floor((v - low) / d + 0.5), 0, top) if d else 0 for v in x]
        head, stored = struct.pack("<ee", d, m), [d * c + m for c in codes]
    high = struct.pack("<I", sum((c >> 4) << i for i, c in enumerate(codes))) if top == 31 else b""
    return head + high + halves(codes, 16), stored


# ---- blocks of 256 --------------------------------------------------------------------------------------------------


def with_minimum(x, group, top, most):
    """-> d, dmin, scales, minima (integers up to `most`), codes, stored."""
    groups = [x[i:i + group] for i in range(0, 256, group)]
    lows = [max(0.0, -min(g)) for g in groups]
    steps = [(max(g) + low) / top for g, low in zip(groups, lows)]
    d, dmin = f16(max(0.0, *steps) / most), f16(max(lows) / most)
    scales = [clamp(round(s / d), 0, most) if d else 0 for s in steps]
    minima = [clamp(round(m / dmin), 0, most) if dmin else 0 for m in lows]
    codes, stored = [], []
    for g, s, m in zip(groups, scales, minima):
        step, low = d * s, dmin * m
        own = [clamp(int((v + low) / step + 0.5), 0, top) for v in g] if step else [0] * group
        codes += own
        stored += [step * c - low for c in own]
    return d, dmin, scales, minima, codes, stored


def signed(x, group, zero, most, table=False):
    """-> d, scales (integers of magnitude up to `most`), codes, stored."""
    groups = [x[i:i + group] for i in range(0, 256, group)]
    steps = [max(g, key=abs) / -(127 if table else zero) for g in groups]
    d = f16(max(abs(s) for s in steps) / most)
    scales = [clamp(round(s / d), -most, most) if d else 0 for s in steps]
    codes, stored = [], []
    for g, s in zip(groups, scales):
        step = d * s
        if table:
            own = [nearest(v / step) for v in g] if step else [8] * group
            stored += [step * IQ4[c] for c in own]
        else:
            own = [clamp(int(v / step + zero + 0.5), 0, 2 * zero - 1) for v in g] if step else [zero] * group
            stored += [step * (c - zero) for c in own]
        codes += own
    return d, scales, codes, stored


def six_bit_pairs(scales, minima):
    """Q4_K's and Q5_K's 12 bytes."""
    out = [scales[i] | scales[4 + i] >> 4 << 6 for i in range(4)]
    out += [minima[i] | minima[4 + i] >> 4 << 6 for i in range(4)]
    return bytes(out + [scales[4 + i] & 15 | (minima[4 + i] & 15) << 4 for i in range(4)])


def long(x, kind):
    if kind == "Q2_K":
        d, dmin, scales, minima, codes, stored = with_minimum(x, 16, 3, 15)
        return bytes(s | m << 4 for s, m in zip(scales, minima)) + parts(codes, 32, 2) + struct.pack("<ee", d, dmin), stored
    if kind in ("Q4_K", "Q5_K"):
        d, dmin, scales, minima, codes, stored = with_minimum(x, 32, 15 if kind == "Q4_K" else 31, 63)
        high = parts([c >> 4 for c in codes], 32, 1) if kind == "Q5_K" else b""
        return struct.pack("<ee", d, dmin) + six_bit_pairs(scales, minima) + high + halves(codes, 32), stored
    if kind == "Q3_K":
        d, scales, codes, stored = signed(x, 16, 4, 31)
        fields = [s + 32 for s in scales]
        packed = halves(fields, 8) + parts([f >> 4 for f in fields], 4, 2)
        return parts([c >> 2 for c in codes], 32, 1) + parts(codes, 32, 2) + packed + struct.pack("<e", d), stored
    if kind == "Q6_K":
        d, scales, codes, stored = signed(x, 16, 32, 127)
        return halves(codes, 64) + parts([c >> 4 for c in codes], 32, 2) + struct.pack("<16be", *scales, d), stored
    d, scales, codes, stored = signed(x, 32, 0, 31, table=True)
    fields = [s + 32 for s in scales]
    high = sum((f >> 4) << (2 * i) for i, f in enumerate(fields))
    low = bytes(fields[i] & 15 | (fields[i + 1] & 15) << 4 for i in range(0, 8, 2))
    return struct.pack("<eH", d, high) + low + halves(codes, 16), stored


def encode(values, kind):
    size = BLOCKS[kind][0]
    data, stored = [], array.array("f")
    for i in range(0, len(values), size):
        block, back = (short if size == 32 else long)(values[i:i + size], kind)
        data.append(block)
        stored.extend(back)
    return b"".join(data), stored
