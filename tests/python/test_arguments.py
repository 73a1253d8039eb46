"""What callers give that is nearly right: paths, flags' values, names of programs; and objects that are left,
copied, forked or used from another directory. Each is understood or refused by an error of this package."""
import collections
import concurrent.futures
import copy
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy as np

import blob_maker
import mxfp4_repack
from mxfp4_repack import ArgumentError, BlobError, CommandError, DependencyError, RankError

os.environ["MXFP4_REPACK"] = os.environ["BIN"]


class Pathish:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


class Text(str):
    pass


def blob(name="arguments-blob", **flags):
    """A blob of the small model, made once."""
    if not os.path.exists(name):
        mxfp4_repack.convert(blob_maker.model("arguments-model"), name, arch="sm90", **flags)
    return name


class Paths(unittest.TestCase):
    def functions(self):
        """Each function's each path: {name: function of a path}."""
        package, model, packed = mxfp4_repack, blob_maker.model("arguments-model"), blob()
        manifest = package.open_blob(packed).manifest
        return {"open_blob": package.open_blob, "find_blobs": package.find_blobs, "open_safetensors": package.open_safetensors,
                "open_checkpoint": lambda path: package.open_checkpoint(path, arch="sm90"),
                "conversion": lambda path: package.open_checkpoint(path, conversion=manifest),
                "convert": lambda path: package.convert(path, "arguments-never", arch="sm90", dry_run=True),
                "convert to": lambda path: package.convert(model, path, arch="sm90", dry_run=True),
                "explain": lambda path: package.explain(path or "", arch="sm90"), "verify": package.verify,
                "against": lambda path: package.verify(packed, against=path or ""), "inspect": package.inspect,
                "diff": lambda path: package.diff(path, packed), "diff with": lambda path: package.diff(packed, path),
                "unpack": lambda path: package.unpack(path, "arguments-never"), "unpack to": lambda path: package.unpack(packed, path),
                "finalize": package.finalize, "fits": lambda path: package.fits(path, arch="sm80")}

    def test_what_is_no_path(self):
        """A null character cut a path short, and an empty one was the current directory's blob."""
        wrong = (None, 3, 1.5, [], {}, bytearray(b"x"), "", b"", Pathish(""), "x\0y", blob() + "\0x", b"x\0y", "\ud800x", Pathish("a\0b"))
        for name, function in self.functions().items():
            for path in wrong:
                with self.subTest(name, path=path), self.assertRaises(ArgumentError):
                    function(path)
        here = os.getcwd()
        os.chdir(blob())
        try:
            for path in ("", b""):
                with self.assertRaisesRegex(ArgumentError, "path: the path is empty"):
                    mxfp4_repack.open_blob(path)
        finally:
            os.chdir(here)

    def test_what_is_a_path(self):
        name = blob()
        for path in (name, os.fsencode(name), pathlib.Path(name), Pathish(name), Pathish(os.fsencode(name)), Text(name), np.str_(name)):
            with self.subTest(repr(path)):
                self.assertIs(type(mxfp4_repack.open_blob(path).root), str)
                self.assertEqual(mxfp4_repack.inspect(path).kind, "blob")
        config = os.path.join(blob_maker.model("arguments-model"), "config.json")
        for path in (config, os.fsencode(config), pathlib.Path(config), Pathish(config)):
            self.assertEqual(mxfp4_repack.explain("arguments-model", arch="sm90", model_config=path).backend, "TRITON")

    def test_names_that_are_no_text(self):
        """JSON has no place for them: `output` is the path that was given."""
        model, out, back = b"model\xff", b"out\xfe-\xc3\xa4", b"back\xff"
        shutil.copytree(blob_maker.model("arguments-model"), os.fsdecode(model), dirs_exist_ok=True)
        made = mxfp4_repack.convert(model, out, arch="sm90", force=True)
        self.assertEqual(os.fsencode(made.output), out)
        shutil.rmtree(back, ignore_errors=True)
        self.assertEqual(os.fsencode(mxfp4_repack.unpack(made.output, back).output), back)
        with mxfp4_repack.open_blob(made.output) as packed, mxfp4_repack.open_checkpoint(model, arch="sm90") as live:
            self.assertTrue(np.array_equal(packed[0]["w2_weight"], live[0]["w2_weight"]))
        self.assertTrue(mxfp4_repack.verify(made.output, against=model).holds)

    def test_another_directory_later(self):
        """A relative path means what it meant when it was opened, though another file has that name elsewhere."""
        model, packed = blob_maker.model("arguments-model"), blob("arguments-plain", compress="none")
        with mxfp4_repack.open_checkpoint(model, arch="sm90") as live:
            want = live[0].numpy("w13_weight")
        opened = [mxfp4_repack.open_blob(packed, check="none"), mxfp4_repack.open_blob(packed), mxfp4_repack.open_checkpoint(model, arch="sm90")]
        stored = mxfp4_repack.open_safetensors(os.path.join(model, "model.safetensors"))
        here = os.getcwd()
        for other in (False, True):
            elsewhere = f"arguments-elsewhere-{other}"
            os.makedirs(elsewhere, exist_ok=True)
            if other:  # the same names and sizes, and other weights
                blob_maker.layer_files.make_gpt_oss(os.path.join(elsewhere, model), 2, 4, 128, 128, seed=9)
                mxfp4_repack.convert(os.path.join(elsewhere, model), os.path.join(elsewhere, packed), arch="sm90", compress="none")
            os.chdir(elsewhere)
            try:
                for source in opened:
                    for expert in range(4):  # parts of plain files have no checksum
                        self.assertTrue(np.array_equal(source[0].numpy("w13_weight", expert), want[expert]), source)
                self.assertGreater(stored.numpy(stored.tensors[0]).size, 0)
            finally:
                os.chdir(here)


class Flags(unittest.TestCase):
    def plan(self, **flags):
        return mxfp4_repack.convert(blob_maker.model("arguments-model"), "arguments-never", dry_run=True, **{"arch": "sm90", **flags})

    def test_values_as_words(self):
        from mxfp4_repack.commands import _words
        for flags, words in (({"env": {"A": True, "B": 0, "C": False}}, ["--env=A=1", "--env=B=0", "--env=C=0"]),
                             ({"env": {"A=1"}}, ["--env=A=1"]), ({"layers": range(2)}, ["--layers=0,1"]),
                             ({"target": Pathish(b"t")}, ["--target=t"]), ({"libs": {"a": "1", "b": "2"}}, ["--libs=a==1,b==2"]),
                             ({"tp_size": {}}, ["--tp-size="]), ({"env": {}}, [])):
            self.assertEqual(_words(flags), words)

    def test_versions_of_packages(self):
        """A mapping's versions reach the program and the library."""
        with self.assertRaisesRegex(CommandError, "triton_kernels 3.9: .* was not tested with it"):
            self.plan(libs={"triton_kernels": "3.9"})
        model = blob_maker.model("arguments-model")
        with mxfp4_repack.open_checkpoint(model, arch="sm90", libs={"triton_kernels": "3.5.1"}) as made:
            self.assertEqual(made.manifest["asked"]["libs"], ["triton_kernels==3.5.1"])
        for refused in (self.plan, lambda **flags: mxfp4_repack.open_checkpoint(model, arch="sm90", **flags)):
            with self.assertRaises(ArgumentError):
                refused(libs={"triton_kernels": None})

    def test_what_no_program_can_be_given(self):
        for flags in ({"arch": "sm90\0"}, {"arch": "\ud800"}, {"env": {"A": None}}, {"env": {None: 1}}, {"layers": [0, None]},
                      {"env": {"A": "1\0"}}, {"target": "x\0"}, {"": True}, {"": "x"}, {"tp_size=2": True}, {"--force": True},
                      {"help": True}, {"Arch": "x"}, {"progress": 5}, {"progress": "auto"}):
            with self.subTest(flags), self.assertRaises(ArgumentError):
                self.plan(**flags)
        for words in ((None,), (5,), (b"revisions",), ("--help",), ("layouts", "-h"), ("layouts", 5), ("knobs", "x\0")):
            with self.subTest(words), self.assertRaises(ArgumentError):
                mxfp4_repack.list(*words)
        self.assertFalse(os.path.exists("arguments-never"))

    def test_conversions(self):
        """The rank that is asked for is the conversion's, or it is refused."""
        model = blob_maker.model("arguments-model")
        parts = blob("arguments-parts", tp_size=2)
        manifests = [dict(mxfp4_repack.open_blob(parts, rank=rank).manifest) for rank in range(2)]
        for rank, asked in ((0, 1), (1, 0), (0, 2), (1, -1)):
            with self.assertRaisesRegex(RankError, f"rank: the conversion is of rank {rank} of 2, not {asked}"):
                mxfp4_repack.open_checkpoint(model, rank=asked, conversion=manifests[rank])
        for manifest in (manifests[1], types.MappingProxyType(manifests[1]), collections.UserDict(manifests[1])):
            self.assertEqual(mxfp4_repack.open_checkpoint(model, rank=1, conversion=manifest, arch=None, resume=False).rank, 1)
        circle = {}
        circle["again"] = circle
        for conversion in ("{}", b"{}", [], 1, pathlib.Path(parts), circle, {"a": {1}}, {"a": np.int64(1)}, {"a": b"x"}):
            with self.subTest(conversion), self.assertRaisesRegex(ArgumentError, "conversion: "):
                mxfp4_repack.open_checkpoint(model, conversion=conversion)


class Programs(unittest.TestCase):
    def test_what_cannot_be_run(self):
        for program in ("/nowhere/x", os.getcwd(), "/dev/null", " "):
            with mock.patch.dict(os.environ, MXFP4_REPACK=program), self.assertRaisesRegex(DependencyError, "cannot be run: "):
                mxfp4_repack.inspect("x")
            done = subprocess.run([sys.executable, "-m", "mxfp4_repack", "--version"], capture_output=True, text=True,
                                  env={**os.environ, "MXFP4_REPACK": program})
            self.assertEqual((done.returncode, done.stderr.count("\n")), (6, 1), done.stderr)
            self.assertIn("cannot be run: ", done.stderr)

    def test_a_command_that_names_itself(self):
        """MXFP4_REPACK with what `which mxfp4-repack` says in a virtual environment: main() became itself for ever."""
        script = os.path.abspath("mxfp4-repack")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\nfrom mxfp4_repack.program import main\nmain()\n")
        os.chmod(script, 0o755)
        found = os.path.dirname(os.path.realpath(os.environ["BIN"]))
        for command in ([script], [sys.executable, "-m", "mxfp4_repack"]):
            for path, code in (("/nowhere", 6), (found, 0)):
                done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60,
                                      env={**os.environ, "MXFP4_REPACK": script, "PATH": path})
                self.assertEqual(done.returncode, code, done.stderr)
        with mock.patch.dict(os.environ, MXFP4_REPACK=script, PATH="/nowhere"), self.assertRaisesRegex(CommandError, "neither in this package"):
            mxfp4_repack.inspect("x")


def fails(number):
    return mxfp4_repack.open_blob("arguments-nowhere") if number else mxfp4_repack.inspect("arguments-nowhere")


class Objects(unittest.TestCase):
    def test_errors_go_to_another_process(self):
        """One that cannot be made again ends a pool of processes, or hangs it."""
        kinds = [getattr(mxfp4_repack, name) for name in mxfp4_repack.__all__ if name.endswith("Error")]
        self.assertGreater(len(kinds), 9)
        for kind in kinds:
            error = kind("convert", "why", 3, "input", "file", "key", "hint") if kind is CommandError else kind("file", "key", "what")
            error.note = "mine"
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                self.assertEqual((type(other), str(other), vars(other)), (kind, str(error), vars(error)))
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            for number, kind in ((1, mxfp4_repack.NotABlobError), (0, CommandError), (1, mxfp4_repack.NotABlobError)):
                with self.assertRaises(kind):
                    pool.submit(fails, number).result(timeout=60)



if __name__ == "__main__":
    unittest.main()
