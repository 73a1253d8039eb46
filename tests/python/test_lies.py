"""Manifests and seek tables that contradict the files, though their checksums hold. What else a manifest or a header may
say: test_mutants."""
import dataclasses
import os
import random
import shutil
import struct
import unittest

import mxfp4_repack as reader
from blob_maker import reseal
from damaged import FIRST, ZSTD, Damaged, edit, read_all


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
