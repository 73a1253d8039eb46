"""Manifests and seek tables that contradict the files, though their checksums hold. What else a manifest or a header may
say: test_mutants."""
import dataclasses
import random
import shutil
import unittest

import mxfp4_repack as reader
from edited_blob import edit_manifest
from damaged import Damaged


class LyingBlobs(Damaged):
    def manifest(self, kind, text, change):
        """A change of the manifest, with a right seal."""
        shutil.rmtree("zstd")
        shutil.copytree("made-zstd", "zstd")
        edit_manifest("zstd", change)
        self.refuse(kind, "zstd", text)

    def tensor(self, kind, text, index=0, **members):
        """A change of a tensor of the first layer: its own members, or those of its storage."""
        def change(manifest):
            tensor = manifest["layers"][0]["tensors"][index]
            for key, value in members.items():
                (tensor if key in tensor else tensor["storage"])[key] = value
        self.manifest(kind, text, change)

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



if __name__ == "__main__":
    unittest.main()
