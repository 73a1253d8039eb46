"""The library under the reader: parts, streams, direct reads, and what it finds."""
import glob
import os
import random
import shutil
import sys
import unittest
from unittest import mock

import numpy as np

import blob_maker
import layer_files
import mxfp4_repack
from mxfp4_repack import native

def has_direct_reads(path):
    """Whether a file's system takes the flag."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def use(path):
    """Every blob that is opened from now on is read by the library at `path`."""
    os.environ["MXFP4_REPACK_LIBRARY"] = path
    native.library.cache_clear()


class Native(unittest.TestCase):
    def setUp(self):
        for method in ("none", "zstd"):
            if not os.path.isdir(f"native-{method}"):
                blob_maker.convert(blob_maker.model("native"), f"native-{method}", "TRITON",
                                   "--compress", method)
        self.addCleanup(use, os.environ["MXFP4_REPACK_LIBRARY"])

    def read(self, directory, direct=False):
        """All tensors and one expert of each."""
        with mxfp4_repack.open_blob(directory, direct=direct) as blob:
            tensors = {}
            for prefix in blob.layers:
                with blob.layer(prefix) as layer:
                    for name in layer.tensors:
                        tensors[prefix, name] = layer.numpy(name, stored=True).tobytes()
                        tensors[prefix, name, 1] = layer.numpy(name, expert=1, stored=True).tobytes()
            return tensors

    def of_files(self):
        """The same of the plain blob's files, read by another reader."""
        tensors = {}
        for path in sorted(glob.glob("native-none/layer-*.safetensors")):
            for full_name, array in layer_files.read(path)[0].items():
                prefix, _, name = full_name.rpartition(".")
                tensors[prefix, name] = array.tobytes()
                tensors[prefix, name, 1] = array[1].tobytes()
        return tensors

    def test_same_bytes(self):
        for method in ("none", "zstd"):
            self.assertEqual(self.read(f"native-{method}"), self.of_files())

    def test_direct_reads(self):
        want = self.of_files()
        for method in ("none", "zstd"):
            directory = f"native-{method}"
            self.assertTrue(self.read(directory, direct=True) == want)
            with mxfp4_repack.open_blob(directory) as blob, blob[0] as layer:
                self.assertFalse(layer.direct)
                stored = {name: layer.numpy(name, stored=True).tobytes() for name in layer.tensors}
            with mxfp4_repack.open_blob(directory, direct=True) as blob, blob[0] as layer:
                self.assertEqual(layer.direct, has_direct_reads(layer.path))
                self.assertTrue({name: layer.numpy(name, stored=True).tobytes() for name in layer.tensors} == stored)
            self.assertFalse(layer.direct)

    def test_layers_are_opened_when_they_are_used(self):
        """A layer whose neighbour is missing or damaged is read, and the neighbour is named when it is asked for."""
        for damage in (os.remove, lambda path: os.truncate(path, 100)):
            shutil.rmtree("lazy", ignore_errors=True)
            shutil.copytree("native-none", "lazy")
            damage("lazy/layer-00001.safetensors")
            with mxfp4_repack.open_blob("lazy", check="none") as blob:
                with blob[0] as layer:
                    self.assertEqual(layer.numpy("w2_bias", stored=True).tobytes(),
                                     self.of_files()[layer.prefix, "w2_bias"])
                with self.assertRaisesRegex(mxfp4_repack.BlobError, "^lazy/layer-00001.safetensors: "):
                    blob.layer(1)

    def test_flips_are_found(self):
        for method in ("none", "zstd"):
            shutil.rmtree("flipped", ignore_errors=True)
            shutil.copytree(f"native-{method}", "flipped")
            with mxfp4_repack.open_blob("flipped") as blob, blob.layer(0) as layer:
                path = layer.path
                with open(path, "r+b") as file:
                    file.seek(os.path.getsize(path) // 2)
                    byte = file.read(1)[0]
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte ^ 16]))
                with self.assertRaisesRegex(mxfp4_repack.ChecksumError, "layer-00000"):
                    layer.check_tensors()
                os.truncate(path, 1000)
                with self.assertRaises(mxfp4_repack.SizeError):
                    layer.check_tensors()

    def test_a_layer_of_another_model(self):
        """The manifest is honest, and the file is whole: only the checksums of its tensors differ."""
        draw = random.Random(47)
        for method in ("none", "zstd"):
            for attempt in range(3):
                seeds = draw.sample(range(1000), 2)
                for seed in seeds:
                    shutil.rmtree(f"model-{seed}", ignore_errors=True)
                    layer_files.make_gpt_oss(f"model-{seed}", 1, 2, 128, 128, seed=seed)
                    blob_maker.convert(f"model-{seed}", f"blob-{seed}", "MARLIN", "--compress", method)
                mixed, other = (f"blob-{seed}" for seed in seeds)
                (name,) = (n for n in os.listdir(mixed) if n.startswith("layer-"))
                shutil.copy(f"{other}/{name}", mixed)
                with mxfp4_repack.open_blob(mixed, check="none") as blob, blob.layer(0) as layer:
                    for tensor in layer.tensors:
                        for read in (lambda: layer.numpy(tensor), lambda: layer[tensor],
                                     lambda: layer.read_into(tensor, 0, np.empty(layer.info(tensor).nbytes, "u1"))):
                            with self.subTest(method=method, tensor=tensor), \
                                    self.assertRaisesRegex(mxfp4_repack.ChecksumError, f"{tensor}: checksum differs"):
                                read()
                    with self.assertRaises(mxfp4_repack.ChecksumError):
                        layer.check_tensors()

    def test_a_library_that_is_no_good(self):
        for path in ("/nowhere.so", sys.executable, os.path.abspath("native-none/mxfp4_repack.json")):
            use(path)
            with self.assertRaisesRegex(mxfp4_repack.DependencyError, f"^{path}: is not libmxfp4_repack.so.0"):
                mxfp4_repack.open_blob("native-none")

    def test_without_a_library(self):
        use("")
        with mock.patch.object(native, "_NAME", "libmxfp4_nowhere.so.0"), self.assertRaisesRegex(
                mxfp4_repack.DependencyError, "neither in this package nor on this system"):
            mxfp4_repack.open_blob("native-none")


if __name__ == "__main__":
    unittest.main()
