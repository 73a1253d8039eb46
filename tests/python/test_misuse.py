"""What blobs and layers answer to, and that every misuse ends in a BlobError."""
import os
import subprocess
import sys
import unittest

import numpy as np

import mxfp4_repack as reader
from damaged import whole


class Interface(unittest.TestCase):
    """Nothing here changes the blobs."""

    @classmethod
    def setUpClass(cls):
        for method in ("none", "zstd"):
            whole(method)

    def test_layers_by_place(self):
        with reader.open_blob("made-none") as blob:
            for wrong in (42, -3):
                with self.assertRaisesRegex(reader.NotFoundError, f"layer {wrong}: of 2 layers"):
                    blob.layer(wrong)
            with blob.layer(-1) as layer:
                self.assertEqual(layer.prefix, blob.layers[-1])
                self.assertIn("w13_weight", repr(layer))
            self.assertIn("2 layers, rank 0 of 1", repr(blob))

    def test_blob_and_layer_as_collections(self):
        with reader.open_blob(os.fsencode("made-none")) as blob:
            self.assertEqual((len(blob), list(blob)), (2, list(blob.layers)))
            self.assertIn(blob.layers[1], blob)
            with blob[blob.layers[1]] as by_name, blob[1] as layer:
                self.assertEqual(by_name.prefix, layer.prefix)
                self.assertEqual((len(layer), list(layer)), (len(layer.tensors), list(layer.tensors)))
                self.assertIn("w13_weight", layer)
                self.assertTrue(np.array_equal(layer["w13_weight"], layer.numpy("w13_weight")))
        self.assertRegex(reader.__version__, r"^\d+\.\d+\.\d+$")
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(reader.__file__), "py.typed")))

    def test_every_misuse_is_a_blob_error(self):
        with reader.open_blob("made-none") as blob, blob[0] as layer:
            out = np.empty(4, "u1")
            tries = {
                "blob[1.5]: layer": lambda: blob[1.5], "[True]: layer": lambda: blob[True],
                "[slice]: layer": lambda: blob[0:1], "[None]: layer": lambda: blob[None],
                "[bytes]: layer": lambda: blob.layer(b"x"), "[list]: layer": lambda: blob.layer([]),
                "file_of: 3: no such layer": lambda: blob.file_of(3),
                "entry: None: no such layer": lambda: blob.entry(None),
                "infos: \\[\\]: no such layer": lambda: blob.infos([]),
                "tensor: no such tensor": lambda: layer[0], "info: no such tensor": lambda: layer.info([]),
                "numpy: expert: '0'": lambda: layer.numpy("w13_weight", "0"),
                "numpy: expert: 1.5": lambda: layer.numpy("w13_weight", 1.5),
                "read: begin": lambda: layer.read_into("w13_weight", "0", out),
                "read: out": lambda: layer.read_into("w13_weight", 0, b"1234"),
                "dtype: out": lambda: layer.read_into("w13_weight", 0, np.empty(1, "f4")),
                "threads: threads: -1": lambda: layer.read_into("w13_weight", 0, out, -1),
                "open: path: None": lambda: reader.open_blob(None),
                "number: path: 42": lambda: reader.open_blob(42),
                "null: null character": lambda: reader.open_blob("a\0b"),
                "find: path": lambda: reader.find_blobs([]),
                "check: None": lambda: reader.open_blob("made-none", check=None),
                "direct: 1": lambda: reader.open_blob("made-none", direct=1),
                "rank: '0'": lambda: reader.open_blob("made-none", rank="0"),
                "list: rank": lambda: reader.open_blob("made-none", rank=[]),
            }
            for text, attempt in tries.items():
                with self.subTest(text), self.assertRaisesRegex(reader.BlobError, text.split(": ", 1)[1]):
                    attempt()

    def test_closed_blob(self):
        blob = reader.open_blob("made-none")
        layer = blob[0]
        blob.close()
        self.assertGreater(layer.numpy("w13_weight").size, 0)
        with self.assertRaisesRegex(reader.ReadError, "is closed"):
            blob.layer(0)
        layer.close()

    def test_missing_packages(self):
        for module, use, text in (
                ("torch", "blob[0].torch('w13_weight')", "needs the package torch"),
                ("torch", "blob[0].to_device('cpu')", "needs the package torch"),
                ("torch", "m.tensor_view(blob[0].info('w13_weight'), None)", "needs the package torch"),
        ):
            code = (f"import sys; sys.modules[{module!r}] = None\nimport mxfp4_repack as m\n"
                    "from mxfp4_repack.errors import BlobError\ntry:\n"
                    f"    blob = m.open_blob('made-none')\n    {use}\n"
                    "except BlobError as error:\n    print(type(error).__name__, error)\n")
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            with self.subTest(use):
                self.assertRegex(done.stdout, f"^DependencyError .*{text}", done.stderr)


if __name__ == "__main__":
    unittest.main()
