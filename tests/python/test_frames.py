"""Valid layer files that convert never writes: other cuts of tensors into frames, other kinds of blocks, other forms
of a frame's header, as container(5) allows them, for blobs with every feature of a manifest. Program, library and
witness read all of them as the same tensors. MXFP4_FRAMES: how many blobs (8), drawn by MXFP4_SEED (1)."""
import filecmp
import glob
import json
import os
import random
import shutil
import struct
import subprocess
import unittest

import numpy as np
import xxhash
import zstandard

import blob_maker
import mxfp4_repack as reader
import witness

MAGIC = struct.pack("<I", 0xFD2FB528)
MOST_IN_BLOCK = 128 << 10


def blocks(data, most, drawn):
    """(kind, size, bytes) of raw blocks and runs, some of them empty, that give `data`."""
    found, at = [], 0
    while at < len(data) or not found:
        size = min(len(data) - at, drawn.choice((0, 1, 7, 1000, most // 3 + 1, most)), most)
        part = data[at:at + size]
        if part and drawn.random() < 0.5:  # as far as one byte repeats
            run = len(part) - len(part.lstrip(part[:1]))
            found.append((1, run, part[:1]))
            at += run
        else:
            found.append((0, size, part))
            at += size
    if drawn.random() < 0.2:
        found.append((0, 0, b""))
    return found


def own_frame(data, drawn):
    """Of blocks that are not compressed, with any header that states the size and has a checksum."""
    single = drawn.random() < 0.5
    widths = [(flag, form) for flag, form, least, most in (
        (0, "<B", 0, 255), (1, "<H", 256, 65791), (2, "<I", 0, 1 << 32), (3, "<Q", 0, 1 << 40))
        if least <= len(data) <= most and (single or flag > 0)]
    flag, form = drawn.choice(widths)
    header = bytes([flag << 6 | single << 5 | 4])
    most = min(MOST_IN_BLOCK, max(len(data), 1))
    if not single:
        exponent, mantissa = drawn.randrange(12), drawn.randrange(8)
        window = (1 << 10 + exponent) // 8 * (8 + mantissa)
        header += bytes([exponent << 3 | mantissa])
        most = min(MOST_IN_BLOCK, window)
    out = MAGIC + header + struct.pack(form, len(data) - 256 if flag == 1 else len(data))
    parts = blocks(data, most, drawn)
    for number, (kind, size, content) in enumerate(parts):
        out += (size << 3 | kind << 1 | (number == len(parts) - 1)).to_bytes(3, "little") + content
    return out + struct.pack("<I", xxhash.xxh64(data).intdigest() & 0xFFFFFFFF)


def frame(data, drawn):
    if drawn.random() < 0.4:
        level = drawn.choice((-5, 1, 3, 9, 19))
        return zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True).compress(data)
    return own_frame(data, drawn)


def cut(data, drawn):
    """Consecutive parts of any size."""
    if drawn.random() < 0.3:
        return [data] if data else []
    marks = sorted({0, len(data), *(drawn.randrange(len(data) + 1) for _ in range(drawn.randrange(12)))})
    return [data[a:b] for a, b in zip(marks, marks[1:])]


def layer_file(pieces, drawn):
    """`pieces`: the header, and each tensor."""
    encoded, table = b"", b""
    for number, piece in enumerate(pieces):
        for part in [piece] if number == 0 else cut(piece, drawn):
            made = frame(part, drawn)
            encoded += made
            table += struct.pack("<III", len(made), len(part), xxhash.xxh64(part).intdigest() & 0xFFFFFFFF)
    count = len(table) // 12
    return encoded + struct.pack("<II", 0x184D2A5E, len(table) + 9) + table + struct.pack("<IBI", count, 0x80, 0x8F92EAB1)


def rewrite(out, plain, drawn):
    """Gives each layer file of all ranks other frames; `plain`: the same blobs without compression."""
    for directory in witness.blobs_at(out):
        rewrite_rank(directory, os.path.join(plain, os.path.relpath(directory, out)), drawn)


def rewrite_rank(directory, plain, drawn):
    path = os.path.join(directory, reader.MANIFEST_NAME)
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    manifest.pop("manifest_xxh3_128")
    for layer in manifest["layers"]:
        with open(os.path.join(plain, layer["file"][:-len(".zst")]), "rb") as file:
            data = file.read()
        start = 8 + int.from_bytes(data[:8], "little")
        pieces = [data[:start]]
        for tensor in layer["tensors"]:
            size = witness.layer.tensor_bytes(tensor)
            pieces.append(data[start:start + size])
            start += size
        made = layer_file(pieces, drawn)
        with open(os.path.join(directory, layer["file"]), "wb") as file:
            file.write(made)
        layer["size"], layer["xxh3_128"] = len(made), xxhash.xxh3_128(made).hexdigest()
    with open(path, "w", encoding="utf-8") as file:
        file.write(blob_maker.sealed(manifest))


def tensors(out):
    """What the library gives of all ranks, each tensor compared with its manifest."""
    found = {}
    for directory in witness.blobs_at(out):
        with reader.open_blob(directory, check="checksums") as blob:
            blob.verify()
            for number in blob.layers:
                with blob.layer(number) as layer:
                    for name in layer.tensors:
                        found[os.path.relpath(directory, out), number, name] = np.array(layer.numpy(name, stored=True))
    return found


def files_of(out):
    return sorted(os.path.relpath(path, out) for path in glob.glob(f"{out}/**", recursive=True) if os.path.isfile(path))


# Flags of convert, whose manifests have between them every member: ranks, storage of objects, padding, a kernel
# library, another engine's names of parameters, chosen layers, no layout.
CONVERSIONS = (
    ("--backend", "MARLIN", "--arch", "sm80"),
    ("--backend", "TRITON", "--arch", "sm90", "--tp-size", "2"),
    ("--arch", "sm90", "--tp-size", "2", "--enable-expert-parallel"),
    ("--arch", "sm90", "--engine", "sglang"),
    ("--arch", "gfx950"),
    ("--arch", "sm90", "--emit", "loaded"),
    ("--arch", "sm100", "--layers", "1"),
    ("--arch", "sm90", "--backend", "HUMMING"),
)


class Frames(unittest.TestCase):
    def check(self, model, drawn):
        rewrite("other", "plain", drawn)
        done = subprocess.run([blob_maker.BIN, "verify", "other", "--against", model, "-q"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        for directory in witness.blobs_at("other"):
            witness.judge(directory)
        found, want = tensors("other"), tensors("blob")
        self.assertEqual(found.keys(), want.keys())
        for key, values in want.items():
            self.assertTrue(np.array_equal(found[key], values), key)
        blob_maker.run("unpack", "blob", "-o", "loaded")
        blob_maker.run("unpack", "other", "-o", "back")
        self.assertEqual(files_of("back"), files_of("loaded"))
        for name in files_of("loaded"):
            self.assertTrue(filecmp.cmp(f"loaded/{name}", f"back/{name}", shallow=False), name)

    def test_any_valid_frames_are_read_alike(self):
        model = blob_maker.model("framed")
        seed = int(os.environ.get("MXFP4_SEED", "1"))
        for draw in range(int(os.environ.get("MXFP4_FRAMES", "8"))):
            flags = CONVERSIONS[draw % len(CONVERSIONS)]
            with self.subTest(seed=seed, draw=draw, flags=flags):
                for name in ("blob", "plain", "other", "loaded", "back"):
                    shutil.rmtree(name, ignore_errors=True)
                blob_maker.run("convert", model, "-o", "blob", *flags)
                blob_maker.run("convert", model, "-o", "plain", *flags, "--compress", "none")
                shutil.copytree("blob", "other")
                self.check(model, random.Random(f"{seed} {draw}"))


if __name__ == "__main__":
    unittest.main()
