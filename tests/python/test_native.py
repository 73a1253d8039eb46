"""libmxfp4_repack.so under the reader: the same bytes as the reader by itself, without its packages."""
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

LIBRARY = os.environ.get("LOADER", "")


def why_not():
    if not LIBRARY:
        return "LOADER does not name the library"
    with open(LIBRARY, "rb") as file:
        data = file.read()
        if any(name in data for name in (b"__asan_init", b"__tsan_init", b"__ubsan_handle")):
            return "a library with sanitizers cannot be loaded into Python"
    return ""


def has_direct_reads(path):
    """Whether a file's system takes the flag."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def use(path):
    """Every blob that is opened from now on is read by the library at `path`; "": by Python."""
    os.environ["MXFP4_REPACK_LIBRARY"] = path
    native.library.cache_clear()


@unittest.skipIf(why_not(), why_not())
class Native(unittest.TestCase):
    def setUp(self):
        for method in ("none", "zstd"):
            if not os.path.isdir(f"native-{method}"):
                blob_maker.convert(blob_maker.model("native"), f"native-{method}", "TRITON",
                                   "--compress", method)
        self.addCleanup(use, "")

    def read(self, directory, library, always=True, direct=False):
        """All tensors; with `always`, the library must read them where one is given, and never Python."""
        use(library)
        with mxfp4_repack.open_blob(directory, direct=direct) as blob:
            tensors = {}
            for prefix in blob.layers:
                with blob.layer(prefix) as layer:
                    if always:
                        self.assertEqual(isinstance(layer._file, native.NativeFile), bool(library))
                    for name in layer.tensors:
                        tensors[prefix, name] = layer.numpy(name).tobytes()
                        tensors[prefix, name, 1] = layer.numpy(name, expert=1).tobytes()
            return tensors

    def test_same_bytes(self):
        for method in ("none", "zstd"):
            self.assertEqual(self.read(f"native-{method}", LIBRARY),
                             self.read(f"native-{method}", ""))

    def test_direct_reads(self):
        for method in ("none", "zstd"):
            directory = f"native-{method}"
            want = self.read(directory, "")
            for library in (LIBRARY, ""):
                self.assertTrue(self.read(directory, library, direct=True) == want)
                with mxfp4_repack.open_blob(directory) as blob, blob[0] as layer:
                    self.assertFalse(layer.direct)
                    stored = {name: layer.numpy(name, stored=True).tobytes() for name in layer.tensors}
                with mxfp4_repack.open_blob(directory, direct=True) as blob, blob[0] as layer:
                    self.assertEqual(layer.direct, bool(library) and has_direct_reads(layer.path))
                    self.assertTrue(self.streamed(layer, 1 << 18, 2) == stored)
                self.assertFalse(layer.direct)

    def test_pieces_end_where_frames_do(self):
        for method in ("none", "zstd"):
            cuts = []
            for library in (LIBRARY, ""):
                use(library)
                with mxfp4_repack.open_blob(f"native-{method}") as blob, blob.layer(0) as layer:
                    cuts.append([list(layer.pieces(name, limit)) for name in layer.tensors
                                 for limit in (7, 4096, 1 << 20)])
            self.assertEqual(*cuts)

    def test_a_cut_that_fails_ends(self):
        use(LIBRARY)
        with mxfp4_repack.open_blob("native-zstd") as blob, blob.layer(0) as layer:
            for begin, end, limit in ((0, 1, 0), (layer._file.data_size, 1 << 40, 7)):
                with self.assertRaisesRegex(mxfp4_repack.BlobError, "layer-00000.*cut: "):
                    list(layer._file.cuts(begin, end, limit))

    def test_needs_no_other_package(self):
        want = self.read("native-zstd", "")
        with mock.patch.dict(sys.modules, {"zstandard": None, "xxhash": None}):
            self.assertEqual(self.read("native-zstd", LIBRARY), want)
            use("")
            with self.assertRaisesRegex(mxfp4_repack.DependencyError, "xxhash"):
                mxfp4_repack.open_blob("native-zstd")

    def streamed(self, layer, ring_bytes, threads):
        """{name: bytes} of what comes through a ring, last tensor first."""
        names, ring = layer.tensors[::-1], np.empty(ring_bytes, "u1")
        found = {name: bytearray(layer.info(name).nbytes) for name in names}
        stream, held = layer.stream(names, ring, ring_bytes // 4, threads), 0
        try:
            for run in iter(stream.next, None):
                part = ring[run.place:run.place + run.end - run.begin]
                found[names[run.tensor]][run.begin:run.end] = part.tobytes()
                held += 1
                if held > 2:
                    stream.give_back()
                    held -= 1
        finally:
            stream.close()
        return {name: bytes(value) for name, value in found.items()}

    def test_streams(self):
        for method in ("none", "zstd"):
            for library, threads in ((LIBRARY, 1), (LIBRARY, 5), ("", 1)):
                use(library)
                with mxfp4_repack.open_blob(f"native-{method}") as blob, blob.layer(0) as layer:
                    want = {name: layer.numpy(name, stored=True).tobytes() for name in layer.tensors}
                    for ring_bytes in (4001, 1 << 18):
                        self.assertEqual(self.streamed(layer, ring_bytes, threads), want)

    def test_streams_find_flips(self):
        use(LIBRARY)
        shutil.rmtree("flipped", ignore_errors=True)
        shutil.copytree("native-zstd", "flipped")
        with mxfp4_repack.open_blob("flipped") as blob, blob.layer(0) as layer:
            path = layer.path
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 2)
                byte = file.read(1)[0]
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte ^ 16]))
            with self.assertRaisesRegex(mxfp4_repack.ChecksumError, "layer-00000"):
                self.streamed(layer, 1 << 16, 3)
            os.truncate(path, 1000)
            with self.assertRaises(mxfp4_repack.BlobError):
                self.streamed(layer, 1 << 16, 3)

    def test_to_device(self):
        try:
            from mxfp4_repack import loader
        except ImportError:
            self.skipTest("torch is not installed")
        for library in (LIBRARY, ""):
            use(library)
            with mxfp4_repack.open_blob("native-zstd") as blob, blob.layer(0) as layer:
                for name, tensor in layer.to_device("cpu").items():
                    self.assertEqual(tensor.stride(), layer.info(name).strides)
                    self.assertEqual(bytes(tensor.untyped_storage())[:layer.info(name).nbytes],
                                     layer.numpy(name, stored=True).tobytes())
        loader.release()

    def test_flips_are_found(self):
        want, draw = self.read("native-zstd", LIBRARY), random.Random(3)
        for _ in range(30):
            shutil.rmtree("flipped", ignore_errors=True)
            shutil.copytree("native-zstd", "flipped")
            path = "flipped/layer-00000.safetensors.zst"
            with open(path, "r+b") as file:
                place = draw.randrange(os.path.getsize(path))
                file.seek(place)
                byte = file.read(1)[0] ^ 1 << draw.randrange(8)
                file.seek(place)
                file.write(bytes([byte]))
            try:
                found = self.read("flipped", LIBRARY, always=False)
            except mxfp4_repack.BlobError:
                continue
            self.assertEqual(found, want)

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
                use(LIBRARY)
                with mxfp4_repack.open_blob(mixed, check="none") as blob, blob.layer(0) as layer:
                    for tensor in layer.tensors:
                        for read in (lambda: layer.numpy(tensor), lambda: layer[tensor],
                                     lambda: layer.read_into(tensor, 0, np.empty(layer.info(tensor).nbytes, "u1"))):
                            with self.subTest(method=method, tensor=tensor), \
                                    self.assertRaisesRegex(mxfp4_repack.ChecksumError, f"{tensor}: checksum differs"):
                                read()
                    with self.assertRaises(mxfp4_repack.ChecksumError):
                        self.streamed(layer, 1 << 16, 2)

    def test_truncated_and_closed(self):
        shutil.rmtree("cut", ignore_errors=True)
        shutil.copytree("native-zstd", "cut")
        use(LIBRARY)
        with mxfp4_repack.open_blob("cut") as blob:
            with blob.layer(0) as layer:
                os.truncate(layer.path, 5000)
                with self.assertRaises(mxfp4_repack.SizeError):
                    layer.numpy("w2_weight")
            with self.assertRaises(mxfp4_repack.ReadError):
                layer.numpy("w2_weight")

    def test_a_library_that_is_named_and_no_good(self):
        for path in ("/nowhere.so", sys.executable):
            use(path)
            with self.assertRaisesRegex(mxfp4_repack.DependencyError, path):
                mxfp4_repack.open_blob("native-none")


if __name__ == "__main__":
    unittest.main()
