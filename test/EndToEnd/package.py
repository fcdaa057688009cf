"""Reads and damages packages (runtime/include/llmc/package.h), independently of the runtime's own reader."""
import json
import os
import shutil
import struct

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
