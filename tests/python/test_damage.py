"""Whatever is wrong with a blob ends in a named exception, never in wrong or missing bytes."""
import os
import random
import shutil
import unittest

import numpy as np

import mxfp4_repack as reader
from edited_blob import edit_manifest
from damaged import FIRST, PLAIN, ZSTD, Damaged, edit, read_all


class DamagedFiles(Damaged):
    def test_no_blob(self):
        self.refuse(reader.NotABlobError, "nowhere", "not a blob")
        os.remove("zstd/mxfp4_repack.json")
        self.refuse(reader.NotABlobError, "zstd", "not finished")
        os.mkdir("zstd/mxfp4_repack.json")
        self.refuse(reader.FormatError, "zstd", "directory")

    def test_unfinished_rank(self):
        os.makedirs("unfinished/rank-00-of-02", exist_ok=True)
        with self.assertRaisesRegex(reader.NotABlobError, "did not finish"):
            reader.open_blob("unfinished", rank=0)
        os.makedirs("unfinished/rank-00-of-04")
        with self.assertRaisesRegex(reader.RankError, "different sets"):
            reader.open_blob("unfinished", rank=0)
        shutil.rmtree("unfinished")

    def test_missing_layer_file(self):
        os.remove(f"zstd/{ZSTD}")
        for check in ("none", "sizes", "checksums"):
            self.refuse(reader.NotFoundError, "zstd", f"{ZSTD}: missing", check)

    def test_missing_things(self):
        with reader.open_blob("zstd") as blob:
            with self.assertRaisesRegex(reader.NotFoundError, "no such layer"):
                blob.layer("model.layers.9.mlp.experts")
            with blob.layer(FIRST) as layer:
                with self.assertRaisesRegex(reader.NotFoundError, "no such tensor"):
                    layer.numpy("w1_weight")
                for expert in (-1, 4):
                    with self.assertRaisesRegex(reader.NotFoundError, f"expert {expert} of 4"):
                        layer.numpy("w13_weight", expert=expert)
                with self.assertRaises(reader.SizeError):
                    layer.read_into("w2_bias", 1, np.empty(layer.info("w2_bias").nbytes, "u1"))
            with self.assertRaises(reader.ReadError):
                layer.numpy("w13_weight")  # closed
        with self.assertRaises(ValueError):
            reader.open_blob("zstd", check="checksum")

    def test_truncated_and_grown_files(self):
        for directory, name in (("none", PLAIN), ("zstd", ZSTD)):
            path = f"{directory}/{name}"
            size = os.path.getsize(path)
            for wrong in (size + 1, size - 1, size // 2, 1, 0):
                os.truncate(path, wrong)
                for check in ("none", "sizes", "checksums"):
                    self.refuse(reader.SizeError, directory, f"{wrong} bytes, {size} in", check)

    def test_truncated_file_with_a_lying_manifest(self):
        for directory, name, kinds in (
                ("none", PLAIN, (reader.SizeError, reader.FormatError)),
                ("zstd", ZSTD, (reader.SizeError, reader.FormatError, reader.MismatchError))):
            path = f"{directory}/{name}"
            size = os.path.getsize(path)
            for wrong in (size - 1, size - 9, size // 2, 4096, 20, 9, 8, 1, 0):
                os.truncate(path, wrong)
                edit_manifest(directory, lambda m: m["layers"][0].update(size=wrong))
                with self.assertRaises(kinds, msg=f"{name} {wrong}"):
                    read_all(directory)

    def test_truncated_while_it_is_read(self):
        for directory, name in (("none", PLAIN), ("zstd", ZSTD)):
            with reader.open_blob(directory) as blob, blob.layer(FIRST) as layer:
                os.truncate(f"{directory}/{name}", 5000)
                with self.assertRaisesRegex(reader.SizeError, "became shorter while it was read"):
                    for tensor in layer.tensors:
                        layer.numpy(tensor)

    # flipped bits

    def flips(self, directory, name, check, places, harmless=0):
        """Each is refused, but for at most `harmless` ones that change no tensor."""
        want, path = read_all(directory), f"{directory}/{name}"
        size = os.path.getsize(path)
        source = random.Random(2026)
        for at in places(size, source):
            bit = 1 << source.randrange(8)

            def flip(data):
                return data[:at] + bytes([data[at] ^ bit]) + data[at + 1:]

            edit(path, flip)
            try:
                self.assertEqual(read_all(directory, check), want)
                harmless -= 1
                self.assertGreaterEqual(harmless, 0, f"bit {bit:#x} of byte {at} of {path}")
            except reader.BlobError:
                pass
            edit(path, flip)
        self.assertEqual(read_all(directory, check), want)

    @staticmethod
    def everywhere(size, source):
        ends = [source.randrange(min(size, 5000)) for _ in range(60)]
        return ends + [size - 1 - at // 20 for at in ends] + [source.randrange(size)
                                                              for _ in range(60)]

    def test_flips(self):
        # Without the file's checksum the seek table's sizes and checksums and the frames cover each other, but for a
        # bit of a frame header that means nothing.
        for directory, name, check, harmless in (("none", PLAIN, "checksums", 0), ("zstd", ZSTD, "checksums", 0), ("zstd", ZSTD, "none", 2),
                                                 ("none", PLAIN, "none", 0), ("zstd", "mxfp4_repack.json", "none", 0)):
            with self.subTest(name, check=check):
                self.flips(directory, name, check, self.everywhere, harmless)

    def test_verify_names_the_tensor(self):
        with reader.open_blob("none") as blob, blob.layer(FIRST) as layer:
            layer.check_file()
            layer.check_tensors()
            at = os.path.getsize(layer.path) - 1
            edit(layer.path, lambda data: data[:at] + bytes([data[at] ^ 1]))
        with reader.open_blob("none") as blob, blob.layer(FIRST) as layer:
            with self.assertRaisesRegex(reader.ChecksumError, f"{FIRST}.{layer.tensors[-1]}"):
                layer.check_tensors()
            with self.assertRaises(reader.ChecksumError):
                blob.verify()

    # what is neither a file nor text

    def test_fifos_do_not_hang(self):
        for name in (ZSTD, "mxfp4_repack.json"):
            os.unlink(f"zstd/{name}")
            os.mkfifo(f"zstd/{name}")
            self.refuse(reader.SizeError if name == ZSTD else reader.FormatError, "zstd")
            shutil.rmtree("zstd")
            shutil.copytree("made-zstd", "zstd")


if __name__ == "__main__":
    unittest.main()
