"""Reads and damages packages (runtime/include/llmc/package.h), independently of the runtime's own reader."""
import json
import os
import re
import shutil
import struct

import xxhash

import common

SECTION = struct.Struct("<48sQQQQ")
TRAILER = struct.Struct("<QIIQQ8s")


class Package:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            file.seek(-TRAILER.size, os.SEEK_END)
            table, count, version, _, size, magic = TRAILER.unpack(file.read())
            assert magic == b"LLMCPKG1" and version == 1 and size == os.path.getsize(path), "bad trailer"
            file.seek(table)
            self.sections = {}
            for _ in range(count):
                name, offset, length, _, _ = SECTION.unpack(file.read(SECTION.size))
                self.sections[name.split(b"\0")[0].decode()] = (offset, length)
        self.manifest = json.loads(self.read("manifest"))

    def read(self, section):
        offset, length = self.sections[section]
        with open(self.path, "rb") as file:
            file.seek(offset)
            return file.read(length)

    def weight(self, name):
        """(offset in the file, bytes) of a packed weight."""
        for weight in self.manifest["weights"]:
            if weight["name"] == name:
                return self.sections["weights"][0] + weight["offset"], weight["bytes"]
        raise KeyError(f"no weight {name}; there are {[w['name'] for w in self.manifest['weights']][:12]}...")


def damaged_copy(path, out, offset, length, mask=0x5A):
    """A copy of the package with `length` bytes from `offset` on changed."""
    shutil.copyfile(path, out)
    shutil.copymode(path, out)
    with open(out, "r+b") as file:
        file.seek(offset)
        data = file.read(length)
        file.seek(offset)
        file.write(bytes(b ^ mask for b in data))
    return out


def changed_section(path, out, section, change):
    """A copy in which change(bytes) replaced a section by as many bytes, with hashes that fit."""
    shutil.copyfile(path, out)
    shutil.copymode(path, out)
    with open(out, "r+b") as file:
        file.seek(-TRAILER.size, os.SEEK_END)
        table, count, version, _, size, magic = TRAILER.unpack(file.read())
        file.seek(table)
        entries = [list(SECTION.unpack(file.read(SECTION.size))) for _ in range(count)]
        entry = next(e for e in entries if e[0].split(b"\0")[0].decode() == section)
        file.seek(entry[1])
        data = change(file.read(entry[2]))
        assert len(data) == entry[2]
        file.seek(entry[1])
        file.write(data)
        entry[3] = xxhash.xxh3_64_intdigest(data)
        packed = b"".join(SECTION.pack(*e) for e in entries)
        file.seek(table)
        file.write(packed)
        file.seek(-TRAILER.size, os.SEEK_END)
        file.write(TRAILER.pack(table, count, version, xxhash.xxh3_64_intdigest(packed), size, magic))
    return out


def miscompiled(module, kernel, scratch):
    """A module (bytes of a shared object) whose `kernel` (a pattern) subtracts where it should add.

    One opcode of each vaddps becomes vsubps: what a wrong pattern in a lowering would do. Returns (bytes, instructions changed).
    """
    with open(scratch, "wb") as file:
        file.write(module)
    listing = common.must(["/usr/lib/llvm-22/bin/llvm-objdump", "-d", "--section=.text", scratch]).text
    os.remove(scratch)
    phoff, = struct.unpack_from("<Q", module, 32)
    count, = struct.unpack_from("<H", module, 56)
    segments = [struct.unpack_from("<IIQQQQ", module, phoff + 56 * i) for i in range(count)]
    data, inside, changed = bytearray(module), False, 0
    for line in listing.splitlines():
        if symbol := re.match(r"[0-9a-f]+ <(.*)>:", line):
            inside = re.fullmatch(kernel, symbol[1]) is not None
        elif inside and (found := re.match(r"\s*([0-9a-f]+):\s+((?:[0-9a-f]{2} )+)\s*vaddps\s", line)):
            address, code = int(found[1], 16), bytes.fromhex(found[2])
            offset = next(address - s[3] + s[2] for s in segments if s[0] == 1 and s[3] <= address < s[3] + s[5])
            at = {0xC5: 2, 0xC4: 3, 0x62: 4}[code[0]]  # behind the VEX or EVEX prefix
            assert data[offset:offset + len(code)] == code and code[at] == 0x58
            data[offset + at] = 0x5C
            changed += 1
    return bytes(data), changed
