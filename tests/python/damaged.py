"""Blobs to damage, and what reading them has to end in."""
import os
import shutil
import unittest

import blob_maker
import mxfp4_repack as reader

PLAIN, ZSTD = "layer-00000.safetensors", "layer-00000.safetensors.zst"
FIRST = "model.layers.0.mlp.experts"


def read_all(directory, check="none"):
    """Every tensor of every layer, as bytes."""
    tensors = {}
    with reader.open_blob(directory, check=check) as blob:
        for prefix in blob.layers:
            with blob.layer(prefix) as layer:
                for name in layer.tensors:
                    tensors[f"{prefix}.{name}"] = layer.numpy(name).tobytes()
    return tensors


def edit(path, change):
    """Replaces the bytes of a file by change(bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(change(data))


def whole(method):
    """A blob that stays as it was made; `method` is one of --compress."""
    made = f"made-{method}"
    if not os.path.isdir(made):
        blob_maker.convert(blob_maker.model("small"), made, "TRITON", "--compress", method)
    return made


class Damaged(unittest.TestCase):
    """Each test damages a copy of its own."""

    def setUp(self):
        for method in ("none", "zstd"):
            shutil.rmtree(method, ignore_errors=True)
            shutil.copytree(whole(method), method)

    def refuse(self, kind, directory, text="", check="none"):
        """Reading all of it raises exactly `kind`, worded `<file>: <key>: <what>`."""
        with self.assertRaisesRegex(reader.BlobError, text) as caught:
            read_all(directory, check)
        error = caught.exception
        self.assertIs(type(error), kind, error)
        self.assertTrue(str(error).startswith(f"{error.file}: "), error)
        self.assertIn(directory, error.file)
        self.assertTrue(str(error).endswith(f": {error.what}"), error)

    # files
