"""Whatever is wrong with a blob ends in a named exception, never in wrong or missing bytes."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import unittest

import numpy as np

import blob_maker
import mxfp4_repack as reader
from blob_maker import reseal

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


class Damaged(unittest.TestCase):
    """Each test damages a copy of its own."""

    def setUp(self):
        for method in ("none", "zstd"):
            made = f"made-{method}"
            if not os.path.isdir(made):
                blob_maker.convert(blob_maker.model("small"), made, "TRITON", "--compress", method)
            shutil.rmtree(method, ignore_errors=True)
            shutil.copytree(made, method)

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

    def test_no_blob(self):
        self.refuse(reader.NotABlobError, "nowhere", "not a blob")
        os.remove("zstd/mxfp4_repack.json")
        self.refuse(reader.NotABlobError, "zstd", "not finished")
        os.mkdir("zstd/mxfp4_repack.json")
        self.refuse(reader.ReadError, "zstd", "directory")

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

    def test_unreadable_layer_file(self):
        size = os.path.getsize(f"none/{PLAIN}")
        os.remove(f"none/{PLAIN}")
        os.mkdir(f"none/{PLAIN}")
        reseal("none", lambda m: m["layers"][0].update(size=os.stat(f"none/{PLAIN}").st_size))
        self.refuse(reader.ReadError, "none", "directory")
        self.assertGreater(size, 0)

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
                ("none", PLAIN, (reader.SizeError,)),
                ("zstd", ZSTD, (reader.SizeError, reader.FormatError))):
            path = f"{directory}/{name}"
            size = os.path.getsize(path)
            for wrong in (size - 1, size - 9, size // 2, 4096, 20, 9, 8, 1, 0):
                os.truncate(path, wrong)
                reseal(directory, lambda m: m["layers"][0].update(size=wrong))
                with self.assertRaises(kinds, msg=f"{name} {wrong}"):
                    read_all(directory)

    def test_truncated_while_it_is_read(self):
        for directory, name in (("none", PLAIN), ("zstd", ZSTD)):
            with reader.open_blob(directory) as blob, blob.layer(FIRST) as layer:
                os.truncate(f"{directory}/{name}", 5000)
                with self.assertRaisesRegex(reader.SizeError, "ends at byte 5000"):
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

    def test_flips_in_a_plain_file(self):
        self.flips("none", PLAIN, "checksums", self.everywhere)

    def test_flips_in_a_compressed_file(self):
        self.flips("zstd", ZSTD, "checksums", self.everywhere)

    def test_flips_in_frames_without_the_files_checksum(self):
        # The seek table's sizes and checksums, and the frames, all hold each other; a frame header
        # has one bit that means nothing.
        self.flips("zstd", ZSTD, "none", self.everywhere, harmless=2)

    def test_flips_in_the_manifest(self):
        self.flips("zstd", "mxfp4_repack.json", "none", self.everywhere)

    def test_kinds_of_flips(self):
        def flip(at):
            return lambda data: data[:at % len(data)] + bytes([data[at] ^ 1]) + data[
                at % len(data) + 1:]

        edit(f"none/{PLAIN}", flip(-1))
        self.refuse(reader.ChecksumError, "none", "differs from the manifest", "checksums")
        edit(f"zstd/{ZSTD}", flip(-1))
        self.refuse(reader.FormatError, "zstd", "seek table")
        edit(f"zstd/{ZSTD}", flip(-1))
        edit(f"zstd/{ZSTD}", flip(6))
        self.refuse(reader.ChecksumError, "zstd", "frame 0")
        edit("zstd/mxfp4_repack.json", flip(300))
        self.refuse(reader.ChecksumError, "zstd", "changed after it was written")
        edit("none/mxfp4_repack.json", lambda data: data[:-10])
        self.refuse(reader.ChecksumError, "none")
        edit("none/mxfp4_repack.json", lambda data: data[:300])
        self.refuse(reader.FormatError, "none", "manifest_xxh3_128: missing")

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

    # what the manifest says

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
        self.manifest(bad, "format_version: expected int", lambda m: m.update(format_version=True))
        self.manifest(bad, "layers: expected list", lambda m: m.update(layers={}))
        self.manifest(bad, r"layers\[0\]: expected", lambda m: m.update(layers=[1]))
        self.manifest(bad, "appears twice", lambda m: m["layers"].append(m["layers"][0]))
        self.manifest(bad, "rank: 5 of 1", lambda m: m["rank"].update(rank=5))
        self.manifest(bad, "target: expected object", lambda m: m.pop("target"))
        for name in ("", "../x", "a/b", ".x", "x\0y"):
            self.manifest(bad, "expected a plain file name", first("file", name))
        self.manifest(bad, "size: -1 is no size", first("size", -1))
        self.manifest(bad, "size: expected int", first("size", 1.5))
        self.manifest(bad, "xxh3_128: expected str", first("xxh3_128", None))
        self.manifest(bad, "is not that of layer 0", first("file", "layer-00007.safetensors"))
        with open("zstd/mxfp4_repack.json", "wb") as file:
            text = b'{"format": ' + b"[" * 100000
            seal = reader.xxh3_128(text).encode()
            file.write(text + b',\n  "manifest_xxh3_128": "' + seal + b'"\n}\n')
        self.refuse(bad, "zstd", "not JSON")

    def test_lying_tensors(self):
        bad = reader.FormatError
        self.tensor(bad, "does not begin with", name="other.w13_weight")
        self.tensor(bad, "dtype: U9 is not known", dtype="U9")
        self.tensor(bad, "sizes", shape=[1] * 9)
        self.tensor(bad, "shape: expected a list of int", shape=[-4, 64, 128])
        self.tensor(bad, "too large", shape=[1 << 40, 1 << 40])
        self.tensor(bad, "torch_dtype: float32 cannot view U8", torch_dtype="float32")
        self.tensor(bad, "torch_dtype: save cannot view U8", torch_dtype="save")
        self.tensor(bad, "does not lie in", storage_strides=[1 << 40, 1, 128])
        self.tensor(bad, "does not lie in", storage_shape=[4, 256, 128])
        self.tensor(bad, "does not lie in", storage_shape=[4, 128])
        self.tensor(bad, "storage_strides", storage_strides=[-1, 1, 1])
        self.tensor(bad, "slack_bytes", slack_bytes=1 << 40)
        self.tensor(bad, "flags", flags=["__class__ = 1"])
        self.tensor(reader.SizeError, "the tensors take", shape=[8, 64, 256])
        self.tensor(reader.MismatchError, "differs from the manifest", name=f"{FIRST}.w13_other")

    def test_manifest_of_another_blob(self):
        bad = reader.MismatchError
        self.manifest(reader.SizeError, "the tensors take",
                      lambda m: m["layers"][0]["tensors"].pop())
        for change in (lambda m: m.update(revision="other"), lambda m: m.update(layout="marlin"),
                       lambda m: m["target"].update(arch="sm80"),
                       lambda m: m["target"].update(family="generic")):
            self.manifest(bad, "__metadata__: differs from the manifest", change)
        self.manifest(reader.FormatError, "is not that of layer 0",
                      lambda m: m.update(compression={"method": "none"}))
        # layer 1's file in the place of layer 0's
        shutil.copy("made-zstd/layer-00001.safetensors.zst", f"zstd/{ZSTD}")
        shutil.copy("made-zstd/mxfp4_repack.json", "zstd/mxfp4_repack.json")
        reseal("zstd", lambda m: m["layers"][0].update(size=m["layers"][1]["size"]))
        self.refuse(bad, "zstd", "__metadata__: differs from the manifest")

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
            self.header(reader.MismatchError, "w2_weight: differs from the manifest", tensor(**members))
        self.header(reader.FormatError, "header: not JSON", lambda header: b"{")
        self.header(reader.FormatError, "twice", lambda header: b'{"a": 1, "a": 2}')
        self.header(reader.FormatError, "header: expected a JSON object", lambda header: b"[]")
        self.header(reader.FormatError, "header: not JSON", lambda header: b"\xff{}")
        self.header(reader.MismatchError, "__metadata__", lambda header: {**header,
                                                                          "__metadata__": None})
        self.header(reader.MismatchError, "__metadata__: differs from the manifest",
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
                ((reader.SizeError,), row(1, 1, lambda size: size + 1)),
                ((reader.SizeError,), row(-1, 1, lambda size: size - 1)),
                ((reader.FormatError,), row(1, 0, lambda size: size + 1)),
                ((reader.FormatError,), row(1, 0, lambda size: 0)),
                ((reader.ChecksumError,), row(1, 2, lambda checksum: checksum ^ 1)),
                ((reader.FormatError, reader.ChecksumError, reader.SizeError),
                 row(0, 1, lambda size: size + 1)),
                ((reader.ChecksumError,), merge),
                ((reader.ChecksumError, reader.FormatError), shift),
                ((reader.ChecksumError,), move),
                ((reader.FormatError,), lambda rows, frames: (rows[:-1], frames)),
                ((reader.FormatError,), lambda rows, frames: ([], frames)),
                ((reader.SizeError,), lambda rows, frames: (rows[:-1], frames[:-rows[-1][0]]))):
            self.table(change)
            with self.assertRaises(kinds):
                read_all("zstd")
        self.table(lambda rows, frames: (rows, frames))
        self.assertEqual(read_all("zstd"), read_all("made-zstd"))


    # what is no file, no text, no layer

    def test_fifos_do_not_hang(self):
        for name in (ZSTD, "mxfp4_repack.json"):
            os.unlink(f"zstd/{name}")
            os.mkfifo(f"zstd/{name}")
            self.refuse(reader.SizeError if name == ZSTD else reader.ReadError, "zstd")
            shutil.rmtree("zstd")
            shutil.copytree("made-zstd", "zstd")

    def test_half_of_a_surrogate_pair(self):
        reseal("zstd", lambda m: m.update(revision="REV"))
        edit("zstd/mxfp4_repack.json", lambda data: data.replace(b"REV", b"\\ud800"))
        with open("zstd/mxfp4_repack.json", "rb") as file:
            text = file.read()
        body = text[:text.rindex(b',\n  "manifest_xxh3_128"')]
        seal = reader.xxh3_128(body).encode()
        edit("zstd/mxfp4_repack.json",
             lambda _: body + b',\n  "manifest_xxh3_128": "' + seal + b'"\n}\n')
        self.refuse(reader.FormatError, "zstd", "not JSON: .*surrogates not allowed")

    def test_layers_by_place(self):
        with reader.open_blob("none") as blob:
            for wrong in (42, -3):
                with self.assertRaisesRegex(reader.NotFoundError, f"layer {wrong}: of 2 layers"):
                    blob.layer(wrong)
            with blob.layer(-1) as layer:
                self.assertEqual(layer.prefix, blob.layers[-1])
                self.assertIn("w13_weight", repr(layer))
            self.assertIn("2 layers, rank 0 of 1", repr(blob))

    def test_blob_and_layer_as_collections(self):
        with reader.open_blob(os.fsencode("none")) as blob:
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
        with reader.open_blob("none") as blob, blob[0] as layer:
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
                "pieces: limit: 0": lambda: list(layer.pieces("w13_weight", 0)),
                "below: limit: -5": lambda: list(layer.pieces("w13_weight", -5)),
                "before: byte -3": lambda: list(layer.pieces("w13_weight", 10, -3)),
                "open: path: None": lambda: reader.open_blob(None),
                "number: path: 42": lambda: reader.open_blob(42),
                "null: null character": lambda: reader.open_blob("a\0b"),
                "find: path": lambda: reader.find_blobs([]),
                "check: None": lambda: reader.open_blob("none", check=None),
                "rank: '0'": lambda: reader.open_blob("none", rank="0"),
                "list: rank": lambda: reader.open_blob("none", rank=[]),
            }
            for text, attempt in tries.items():
                with self.subTest(text), self.assertRaisesRegex(reader.BlobError, text.split(": ", 1)[1]):
                    attempt()

    def test_missing_packages(self):
        for module, use, text in (
                ("torch", "blob[0].torch('w13_weight')", "needs the package torch"),
                ("torch", "blob[0].to_device('cpu')", "needs the package torch"),
                ("torch", "m.tensor_view(blob[0].info('w13_weight'), None)", "needs the package torch"),
                ("zstandard", "m.open_blob('zstd').layer(0)", "needs .* the package zstandard"),
                ("xxhash", "m.open_blob", "need the package xxhash"),
        ):
            code = (f"import sys; sys.modules[{module!r}] = None\nimport mxfp4_repack as m\n"
                    "from mxfp4_repack.errors import BlobError\ntry:\n"
                    f"    blob = m.open_blob('none')\n    {use}\n"
                    "except BlobError as error:\n    print(type(error).__name__, error)\n")
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            with self.subTest(use):
                self.assertRegex(done.stdout, f"^DependencyError .*{text}", done.stderr)


if __name__ == "__main__":
    unittest.main()
