"""open_safetensors(): a file's tensors as they are, of every type and order, and files that are none or change."""
import os
import unittest

import numpy as np

import layer_files
import mxfp4_repack
from mxfp4_repack.tensors import DTYPES, STORED_DTYPES


def drawn(seed):
    """{name: (safetensors type, array)} of every type, in a shuffled order, empty ones and scalars among them."""
    random = np.random.default_rng(seed)
    kinds = [*DTYPES.items(), *STORED_DTYPES.items()]
    shapes = ((), (0,), (3, 0), (1,), (5, 7, 3), (4099,), (1 << 12, 300))
    found = {}
    for number in random.permutation(len(kinds) * 2):
        dtype, (kind, _) = kinds[number % len(kinds)]
        width = np.dtype(kind).itemsize
        shape = shapes[random.integers(len(shapes))]
        raw = random.integers(0, 2 if dtype == "BOOL" else 256, int(np.prod(shape)) * width, dtype="u1")
        found[f"part.{number}.x"] = dtype, np.frombuffer(raw.tobytes(), kind).reshape(shape)
    return found


class Stored(unittest.TestCase):
    def test_every_type(self):
        for seed in range(4):
            tensors = drawn(seed)
            layer_files.write("some.safetensors", tensors, {"format": "pt"})
            with mxfp4_repack.open_safetensors("some.safetensors") as file:
                offsets = [file.info(name).offset for name in file]
                self.assertEqual(offsets, sorted(offsets))
                self.assertEqual(set(file), set(tensors))
                for name, (dtype, array) in tensors.items():
                    info = file.info(name)
                    self.assertEqual((info.file_dtype, info.shape, info.nbytes), (dtype, array.shape, array.nbytes))
                    self.assertEqual(file.numpy(name).tobytes(), array.tobytes(), name)
                with self.assertRaises(mxfp4_repack.NotFoundError):
                    file.info("part.99.x")
                with self.assertRaisesRegex(mxfp4_repack.BlobError, "no checksum"):
                    file.check_file()

    def test_files_that_change(self):
        tensors = {"a": ("U8", np.arange(1 << 16, dtype="u4").view("u1")), "b": ("U8", np.ones(9, "u1"))}
        for change, words in ((lambda: os.truncate("it.safetensors", 2000), "became shorter|changed while it was read"),
                              (lambda: os.truncate("it.safetensors", 1 << 19), "changed while it was read"),
                              (lambda: os.replace("other.safetensors", "it.safetensors"), "changed while it was read")):
            for read_before in (False, True):
                layer_files.write("it.safetensors", tensors)
                layer_files.write("other.safetensors", tensors)
                os.utime("other.safetensors", ns=(1, 1))
                with mxfp4_repack.open_safetensors("it.safetensors") as file:
                    if read_before:
                        file.numpy("b")
                    change()
                    with self.assertRaisesRegex(mxfp4_repack.BlobError, f"it.safetensors: .*({words})"):
                        file.numpy("a")

    def test_no_files_of_tensors(self):
        layer_files.write("short.safetensors", {"a": ("U8", np.zeros(999, "u1"))})
        os.truncate("short.safetensors", 500)
        with open("text.safetensors", "w") as file:
            file.write("not a header at all")
        os.makedirs("a-folder", exist_ok=True)
        for path, words in (("not-there", "No such file"), ("a-folder", "is a directory"), ("text.safetensors", "header"),
                            ("short.safetensors", "holds only")):
            with self.assertRaisesRegex(mxfp4_repack.BlobError, f"{path}.*: .*{words}"):
                mxfp4_repack.open_safetensors(path)
