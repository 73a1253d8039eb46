"""Manifests, headers and seek tables that contradict the files, though their checksums hold."""
import dataclasses
import json
import os
import random
import shutil
import struct
import unittest

import mxfp4_repack as reader
from blob_maker import reseal
from damaged import FIRST, PLAIN, ZSTD, Damaged, edit, read_all


class LyingBlobs(Damaged):
    def manifest(self, kind, text, change):
        """A change of the manifest, with a right seal."""
        shutil.rmtree("zstd")
        shutil.copytree("made-zstd", "zstd")
        reseal("zstd", change)
        self.refuse(kind, "zstd", text)

    def tensor(self, kind, text, index=0, **members):
        """A change of a tensor of the first layer: its own members, or those of its storage."""
        def change(manifest):
            tensor = manifest["layers"][0]["tensors"][index]
            for key, value in members.items():
                (tensor if key in tensor else tensor["storage"])[key] = value
            if "torch_dtype" in members:  # in its place
                tensor["storage"] = {**members, **tensor["storage"]}
        self.manifest(kind, text, change)

    def test_seal_of_an_unchanged_manifest(self):
        before = read_all("zstd")
        reseal("zstd", lambda m: None)
        texts = []
        for directory in ("zstd", "made-zstd"):
            with open(f"{directory}/mxfp4_repack.json", "rb") as file:
                texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(read_all("zstd", "checksums"), before)

    def test_manifests_that_are_none(self):
        def first(key, value):
            return lambda m: m["layers"][0].update({key: value})
        bad = reader.FormatError
        self.manifest(bad, "format: expected", lambda m: m.update(format="other"))
        self.manifest(bad, "format_version: 2 is not", lambda m: m.update(format_version=2))
        self.manifest(bad, "format_version: ", lambda m: m.update(format_version=True))
        self.manifest(bad, "layers: ", lambda m: m.update(layers={}))
        self.manifest(bad, r"layers\[0\]: ", lambda m: m.update(layers=[1]))
        self.manifest(bad, "is there twice", lambda m: m["layers"].append(m["layers"][0]))
        self.manifest(bad, "rank: rank 5 of 1", lambda m: m["rank"].update(rank=5))
        self.manifest(bad, "target: ", lambda m: m.pop("target"))
        for name in ("", "../x", "a/b", ".x", "x\0y"):
            self.manifest(bad, "expected a plain file name", first("file", name))
        self.manifest(bad, "size: ", first("size", -1))
        self.manifest(bad, "size: ", first("size", 1.5))
        self.manifest(bad, "xxh3_128: ", first("xxh3_128", None))
        self.manifest(bad, 'xxh3_128: "../x", expected 32 hexadecimal digits', first("xxh3_128", "../x"))
        self.manifest(bad, 'layer 0 is in "layer-00007.safetensors"', first("file", "layer-00007.safetensors"))
        with open("zstd/mxfp4_repack.json", "wb") as file:
            text = b'{"format": ' + b"[" * 100000
            seal = reader.xxh3_128(text).encode()
            file.write(text + b',\n  "manifest_xxh3_128": "' + seal + b'"\n}\n')
        self.refuse(bad, "zstd", "mxfp4_repack.json: ")

    def test_lying_tensors(self):
        bad = reader.FormatError
        self.tensor(bad, "does not begin with", name="other.w13_weight")
        self.tensor(bad, "dtype: unknown value 'U9'", dtype="U9")
        self.tensor(bad, "dtype: U16 is not known", dtype="U16", shape=[4, 256, 32])
        self.tensor(bad, "9 dimensions", shape=[1] * 9)
        self.tensor(bad, "shape", shape=[-4, 64, 128])
        self.tensor(bad, "mxfp4_repack.json: ", shape=[1 << 40, 1 << 40])
        self.tensor(bad, "torch_dtype: float32 cannot view U8", torch_dtype="float32")
        self.tensor(bad, "torch_dtype: save cannot view U8", torch_dtype="save")
        self.tensor(bad, "does not lie in", storage_strides=[1 << 40, 1, 128])
        self.tensor(bad, "does not lie in", storage_shape=[4, 256, 128])
        self.tensor(bad, "does not lie in", storage_shape=[4, 128])
        self.tensor(bad, "storage_strides", storage_strides=[-1, 1, 1])
        self.tensor(bad, "slack_bytes", slack_bytes=1 << 40)
        self.tensor(reader.MismatchError, "w13_weight: differs from the manifest", shape=[8, 64, 256])
        self.tensor(reader.MismatchError, "w13_other: differs from the manifest", name=f"{FIRST}.w13_other")

    def test_attributes_of_tensors(self):
        """A manifest names only attributes that layouts have, whatever else a tensor has."""
        draw = random.Random(7)
        wild = ["real", "requires_grad", "__setstate__", "numpy", "cuda", "view", "__class__", "data", "dtype", "grad",
                "is_shuffled ", "Is_shuffled", "", "a b", "is_shuffled\0", "__class__ = 1"]
        for name in wild:
            flags = draw.sample(["is_shuffled", name], 2) if draw.random() < 0.5 else [name]
            self.tensor(reader.FormatError, "flags: ", flags=flags)
        info = self.info(flags=("is_shuffled",))
        for change in (dict(flags=("real",)), dict(flags=("data",)), dict(torch_dtype="save"), dict(torch_dtype="")):
            with self.subTest(**change), self.assertRaises((reader.FormatError, reader.DependencyError)):
                reader.tensor_view(dataclasses.replace(info, **change), None)

    @staticmethod
    def info(**storage):
        from mxfp4_repack.tensors import tensor_info
        tensor = {"name": "a.b", "dtype": "U8", "shape": [4, 8], "xxh3_128": "0" * 32, "storage": storage}
        return tensor_info("mxfp4_repack.json", tensor, "a", 0)

    def test_sizes_that_no_array_has(self):
        """Products below 2^60 and strides below 2^63 bytes: numpy never sees what it cannot count."""
        import numpy
        draw = random.Random(8)
        accepted = 0
        for _ in range(3000):
            shape = [draw.choice((0, 1, 2, 4, 8, 1 << 31, 1 << 59, 1 << 60, 1 << 61, (1 << 62) - 1)) for _ in range(draw.randrange(5))]
            strides = [draw.choice((0, 0, 1, 2, 8, 1 << 59, 1 << 61, (1 << 63) - 1)) for _ in shape]
            try:
                info = self.info(storage_shape=shape, storage_strides=strides)
            except reader.FormatError:
                continue
            array = numpy.lib.stride_tricks.as_strided(numpy.zeros(32, "u1"), info.shape, info.strides)
            self.assertEqual(array.shape, tuple(shape))
            accepted += 1
        self.assertGreater(accepted, 100)
        for storage in (dict(storage_shape=[1], storage_strides=[1 << 63]), dict(storage_shape=[1 << 61], storage_strides=[0]),
                        dict(storage_shape=[0, 1 << 61, 1 << 61], storage_strides=[0, 0, 0])):
            with self.subTest(**storage), self.assertRaises(reader.FormatError):
                self.info(**storage)

    def test_manifest_of_another_blob(self):
        bad = reader.MismatchError
        self.manifest(bad, "differs from the manifest", lambda m: m["layers"][0]["tensors"].pop())
        for change in (lambda m: m.update(revision="other"), lambda m: m.update(layout="marlin"),
                       lambda m: m["target"].update(arch="sm80"),
                       lambda m: m["target"].update(family="generic")):
            self.manifest(bad, "__metadata__: differs from the manifest", change)
        self.manifest(reader.FormatError, "layer 0 is in",
                      lambda m: m.update(compression={"method": "none"}))
        # layer 1's file in the place of layer 0's
        shutil.copy("made-zstd/layer-00001.safetensors.zst", f"zstd/{ZSTD}")
        shutil.copy("made-zstd/mxfp4_repack.json", "zstd/mxfp4_repack.json")
        reseal("zstd", lambda m: m["layers"][0].update(size=m["layers"][1]["size"]))
        self.refuse(bad, "zstd", f"{FIRST}.w13_weight: differs from the manifest")

    # what the files say

    def header(self, kind, text, change):
        """A change of the uncompressed file's header, its length kept; the manifest stays."""
        def rewrite(data):
            length = int.from_bytes(data[:8], "little")
            header = change(json.loads(data[8:8 + length]))
            header = header if isinstance(header, bytes) else json.dumps(
                header, separators=(",", ":")).encode()
            assert len(header) <= length
            return data[:8] + header.ljust(length) + data[8 + length:]
        shutil.copy(f"made-none/{PLAIN}", f"none/{PLAIN}")
        edit(f"none/{PLAIN}", rewrite)
        self.refuse(kind, "none", text)

    def test_lying_headers(self):
        def tensor(**members):
            return lambda header: {**header, f"{FIRST}.w2_weight": {
                **header[f"{FIRST}.w2_weight"], **members}}
        for members in ({"shape": [1 << 62]}, {"dtype": "F64"}, {"data_offsets": [0, 1 << 62]},
                        {"data_offsets": [32768, 32767]}, {"data_offsets": None}):
            self.header(reader.FormatError, "w2_weight: ", tensor(**members))
        self.header(reader.MismatchError, "w2_weight: differs from the manifest", tensor(dtype="I8"))
        self.header(reader.FormatError, "header: not JSON|header is not JSON", lambda header: b"{")
        self.header(reader.FormatError, "unknown key|twice|expected", lambda header: b'{"a": 1, "a": 2}')
        self.header(reader.FormatError, "begin with a JSON object", lambda header: b"[]")
        self.header(reader.FormatError, "not UTF-8|begin with a JSON object", lambda header: b"\xff{}")
        self.header(reader.FormatError, "__metadata__", lambda header: {**header, "__metadata__": None})
        self.header(reader.FormatError, "x: expected an object",
                    lambda header: {"x": 1, **{key: value for key, value in header.items()
                                               if key != "__metadata__"}})
        for length in (0, 1, 100_000_001, (1 << 64) - 1, (1 << 63)):
            shutil.copy(f"made-none/{PLAIN}", f"none/{PLAIN}")
            edit(f"none/{PLAIN}", lambda data: length.to_bytes(8, "little") + data[8:])
            with self.assertRaises((reader.SizeError, reader.FormatError), msg=length):
                read_all("none")

    def table(self, change):
        """A change of the seek table's rows [encoded, decoded, checksum] and of the frames."""
        def rewrite(data):
            count = struct.unpack("<I", data[-9:-5])[0]
            start = len(data) - 17 - 12 * count
            rows = [list(row) for row in struct.iter_unpack("<III", data[start + 8:-9])]
            rows, frames = change(rows, data[:start])
            packed = b"".join(struct.pack("<III", *row) for row in rows)
            return (frames + struct.pack("<II", 0x184D2A5E, len(packed) + 9) + packed
                    + struct.pack("<IBI", len(rows), 0x80, 0x8F92EAB1))
        shutil.copy(f"made-zstd/{ZSTD}", f"zstd/{ZSTD}")
        edit(f"zstd/{ZSTD}", rewrite)
        reseal("zstd", lambda m: m["layers"][0].update(size=os.path.getsize(f"zstd/{ZSTD}")))

    def test_lying_seek_tables(self):
        def row(index, column, value):
            def change(rows, frames):
                rows[index][column] = value(rows[index][column]) & 0xFFFFFFFF
                return rows, frames
            return change

        def merge(rows, frames):  # two frames as one: one-shot decoders give the first only
            rows[1:3] = [[rows[1][0] + rows[2][0], rows[1][1] + rows[2][1], rows[2][2]]]
            return rows, frames

        def shift(rows, frames):  # the bytes of one frame counted to the next
            rows[1][0] -= 10
            rows[2][0] += 10
            return rows, frames

        def move(rows, frames):
            rows[1][1] -= 1
            rows[2][1] += 1
            return rows, frames

        for kinds, change in (
                ((reader.FormatError,), row(1, 1, lambda size: 1 << 31)),
                ((reader.FormatError,), row(1, 1, lambda size: 0)),
                ((reader.FormatError,), row(1, 1, lambda size: size + 1)),
                ((reader.FormatError,), row(-1, 1, lambda size: size - 1)),
                ((reader.FormatError,), row(1, 0, lambda size: size + 1)),
                ((reader.FormatError,), row(1, 0, lambda size: 0)),
                ((reader.ChecksumError,), row(1, 2, lambda checksum: checksum ^ 1)),
                ((reader.FormatError, reader.ChecksumError, reader.SizeError),
                 row(0, 1, lambda size: size + 1)),
                ((reader.ChecksumError, reader.FormatError), merge),
                ((reader.ChecksumError, reader.FormatError), shift),
                ((reader.ChecksumError, reader.FormatError), move),
                ((reader.FormatError,), lambda rows, frames: (rows[:-1], frames)),
                ((reader.FormatError,), lambda rows, frames: ([], frames)),
                ((reader.FormatError,), lambda rows, frames: (rows[:-1], frames[:-rows[-1][0]]))):
            self.table(change)
            with self.assertRaises(kinds):
                read_all("zstd")
        self.table(lambda rows, frames: (rows, frames))
        self.assertEqual(read_all("zstd"), read_all("made-zstd"))


if __name__ == "__main__":
    unittest.main()
