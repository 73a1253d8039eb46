"""The program as functions, and the commands that belong to the package."""
import os
import pydoc
import re
import shutil
import subprocess
import sys
import unittest
from unittest import mock

import blob_maker
import mxfp4_repack
from mxfp4_repack import ArgumentError, CommandError

os.environ["MXFP4_REPACK"] = os.environ["BIN"]


class Commands(unittest.TestCase):
    def setUp(self):
        self.model = blob_maker.model("commands-model")

    def test_convert_and_verify(self):
        shares = []
        with mock.patch("mxfp4_repack.commands._SECONDS_BETWEEN_CALLS", "0.000001"):
            made = mxfp4_repack.convert(self.model, "commands-out", arch="sm90", tp_size=2, force=True, progress=shares.append)
        self.assertEqual((made.output, made.complete, made.num_ranks, made.num_layer_files), ("commands-out", True, 2, 4))
        self.assertEqual(made.backend, "TRITON")
        self.assertEqual(made.stored_bytes, made.document["stored_bytes"])
        self.assertEqual(shares, sorted(shares))
        self.assertEqual(shares[-1], 1.0)
        self.assertGreater(len(shares), 1)
        with mxfp4_repack.open_blob(made.output, rank=1) as blob:
            self.assertEqual(len(blob), 2)
        held = mxfp4_repack.verify("commands-out", against=self.model)
        self.assertTrue(held.holds)
        self.assertEqual((held.findings, held.num_ranks), ((), 2))

    def test_a_difference_is_an_answer(self):
        mxfp4_repack.convert(self.model, "commands-bad", arch="sm90", compress="none", force=True)
        with open("commands-bad/layer-00001.safetensors", "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        found = mxfp4_repack.verify("commands-bad")
        self.assertFalse(found.holds)
        self.assertIn("layer-00001.safetensors", found.findings[0])

    def test_flags(self):
        plan = mxfp4_repack.convert(self.model, "commands-never", arch="sm80", dry_run=True, knob={"params_dtype": "bfloat16"},
                                    no_lib=["flashinfer", "deep_gemm"], rank=None, resume=False)
        self.assertTrue(plan.dry_run)
        self.assertFalse(plan.complete)
        self.assertNotIn("stored_bytes", plan)
        with self.assertRaises(AttributeError):
            plan.stored_bytes
        self.assertEqual(plan.backend, "MARLIN")
        self.assertFalse(os.path.exists("commands-never"))
        with self.assertRaises(ArgumentError):
            mxfp4_repack.convert(self.model, "commands-never", json=True)

    def test_help_has_every_keyword(self):
        fixed = {"output", "json", "progress", "color", "quiet", "help", "help-all"}  # arguments, and what a function answers
        for name in ("convert", "diff", "explain", "finalize", "fits", "inspect", "list", "unpack", "verify"):
            said = subprocess.run([os.environ["BIN"], name, "--help-all"], capture_output=True, text=True, check=True).stdout
            flags = set(re.findall(r"(?m)^  (?:-\w, )?--([a-z0-9-]+)", said)) - fixed
            shown = set(re.findall(r"(?m)^ +(?:-\w, )?--([a-z0-9-]+)", pydoc.plain(pydoc.render_doc(getattr(mxfp4_repack, name)))))
            self.assertEqual(shown, flags, name)
            self.assertTrue(flags or name == "diff")
        script = "import mxfp4_repack, pydoc; print(pydoc.render_doc(mxfp4_repack.convert))"
        without = subprocess.run([sys.executable, "-c", script], env={**os.environ, "MXFP4_REPACK": "/no/program"}, capture_output=True, text=True)
        self.assertIn("Repacks the experts", without.stdout, without.stderr)
        self.assertNotIn("--arch", without.stdout)

    def test_paths_and_values_that_begin_with_a_dash(self):
        """None of them is read as a flag."""
        for name in ("--force", "-o", "--", "-", "--help", "--dry-run", "-j2"):
            with self.subTest(name):
                shutil.rmtree(name, ignore_errors=True)
                shutil.copytree(self.model, name)
                made = mxfp4_repack.convert(name, "-out" + name, arch="sm90", force=True)
                self.assertEqual((made.complete, made.dry_run), (True, False))
                self.assertTrue(os.path.exists(os.path.join("-out" + name, "mxfp4_repack.json")))
                self.assertTrue(mxfp4_repack.verify("-out" + name, against=os.path.join(os.curdir, name)).holds)
                self.assertEqual(mxfp4_repack.explain(name, arch="sm90").backend, "TRITON")
                self.assertTrue(mxfp4_repack.verify("-out" + name, against=name).holds)
                for flags in (dict(arch=name), dict(revision=name), dict(target=name), dict(env={"A": name}, arch=name)):
                    with self.assertRaises(CommandError) as caught:
                        mxfp4_repack.explain(self.model, **flags)
                    self.assertIn(caught.exception.exit_code, (2, 3))

    def test_inspect_diff_unpack_and_list(self):
        mxfp4_repack.convert(self.model, "commands-one", arch="sm90", force=True)
        mxfp4_repack.convert(self.model, "commands-two", arch="sm80", force=True)
        found = mxfp4_repack.inspect(self.model, arch="sm90", tp_size=2)
        self.assertEqual((found.kind, len(found.ranks)), ("safetensors", 1))
        self.assertEqual(found.document["target"]["num_ranks"], 2)
        found = mxfp4_repack.inspect("commands-one", layer=0)
        self.assertEqual((found.kind, found.ranks[0]["backend"]), ("blob", "TRITON"))
        self.assertTrue(mxfp4_repack.diff("commands-one", "commands-one").same)
        other = mxfp4_repack.diff("commands-one", "commands-two")
        self.assertFalse(other.same)
        self.assertIn("what", other.difference)
        shutil.rmtree("commands-back", ignore_errors=True)
        back = mxfp4_repack.unpack("commands-one", "commands-back")
        self.assertEqual((back.output, back.num_layer_files), ("commands-back", 2))
        rows = mxfp4_repack.list("revisions")
        self.assertIn("vllm-0.28.0", [row["revision"] for row in rows])
        self.assertTrue(mxfp4_repack.list("backends", revision="vllm-0.28.0"))
        with self.assertRaises(CommandError):
            mxfp4_repack.list("nothing")

    def test_finalize(self):
        for part in range(2):
            made = mxfp4_repack.convert(self.model, "commands-parts", arch="sm90", shard=f"{part}/2", resume=True)
            self.assertFalse(made.complete)
            if part == 0:
                with self.assertRaisesRegex(CommandError, "1 of 2 shards"):
                    mxfp4_repack.finalize("commands-parts")
        whole = mxfp4_repack.finalize("commands-parts")
        self.assertEqual((whole.complete, whole.findings, whole.num_layer_files), (True, (), 2))
        self.assertTrue(mxfp4_repack.verify("commands-parts", against=self.model).holds)

    def test_fits_and_a_blob_as_a_checkpoint(self):
        mxfp4_repack.convert(self.model, "commands-fit", arch="sm90", force=True)
        own = mxfp4_repack.inspect("commands-fit").ranks[0]["revision"]
        self.assertEqual(mxfp4_repack.fits("commands-fit", revision=own).fits, True)
        other = mxfp4_repack.fits("commands-fit", arch="B200")
        self.assertIs(other.fits, False)
        self.assertTrue(other.reasons and other.differs)
        self.assertIsNone(mxfp4_repack.fits("commands-fit", revision="99.0.0").fits)
        again = mxfp4_repack.convert("commands-fit", "commands-from-blob", arch="sm90", force=True)
        self.assertTrue(again.complete)
        self.assertTrue(mxfp4_repack.diff("commands-fit", "commands-from-blob").same)
        shutil.rmtree("commands-published", ignore_errors=True)
        self.assertTrue(mxfp4_repack.unpack("commands-fit", "commands-published", as_published=True).as_published)
        self.assertTrue(mxfp4_repack.verify("commands-fit", against="commands-published").holds)

    def test_as_a_module(self):
        """python -m mxfp4_repack is the program."""
        for words, code in ((["--version"], 0), (["explain", "--arch", "sm9"], 2), (["verify", "no-such-blob"], 3)):
            runs = [subprocess.run(command + words, capture_output=True, text=True) for command in (
                [sys.executable, "-m", "mxfp4_repack"], [os.environ["BIN"]])]
            self.assertEqual([(run.returncode, run.stdout, run.stderr) for run in runs], 2 * [(code, runs[1].stdout, runs[1].stderr)])

    def test_a_reader_that_goes_away(self):
        """`| head -1` of a command's help ends it without a traceback."""
        root = os.path.join(os.environ["SOURCE_DIR"], "scripts")
        for command in (f"{root}/probe-target --help", f"{root}/probe-target", "-m mxfp4_repack.check --help", "-m mxfp4_repack --help"):
            done = subprocess.run(["bash", "-c", f"{sys.executable} -u {command} | true"], capture_output=True, text=True)
            self.assertNotIn("Traceback", done.stderr, command)
            self.assertNotIn("BrokenPipe", done.stderr, command)

    def test_explain(self):
        answer = mxfp4_repack.explain(self.model, arch="sm90", revision="vllm-2026-05-18")
        self.assertEqual((answer.backend, answer.layout, answer.refusal), ("TRITON", "triton/hopper", None))
        self.assertIn("TRITON", answer.answer)
        self.assertTrue(answer.trace[-1][2])
        refused = mxfp4_repack.explain(arch="sm90", moe_backend="aiter")
        self.assertIsNone(refused.backend)
        self.assertTrue(refused.refusal)

    def test_refusals(self):
        for arguments, kind, code in ((dict(arch="sm9"), "usage", 2), (dict(arch="sm90", no_such_flag=True), "usage", 2),
                                      (dict(arch="sm90", moe_backend="aiter"), "unsupported", 4)):
            with self.subTest(arguments), self.assertRaises(CommandError) as caught:
                mxfp4_repack.convert(self.model, "commands-refused", **arguments)
            self.assertEqual((caught.exception.kind, caught.exception.exit_code), (kind, code))
        with self.assertRaises(CommandError) as caught:
            mxfp4_repack.verify("no-such-blob")
        self.assertEqual(caught.exception.kind, "input")
        self.assertIn("no-such-blob", str(caught.exception))
        with self.assertRaises(CommandError):
            mxfp4_repack.explain("no-such-model", arch="sm90")

    def test_a_callback_that_raises_stops_the_conversion(self):
        def stop(share):
            raise KeyboardInterrupt

        with mock.patch("mxfp4_repack.commands._SECONDS_BETWEEN_CALLS", "0.000001"), self.assertRaises(KeyboardInterrupt):
            mxfp4_repack.convert(self.model, "commands-stopped", arch="sm90", progress=stop)
        made = mxfp4_repack.convert(self.model, "commands-stopped", arch="sm90", resume=True)
        self.assertTrue(made.complete)


if __name__ == "__main__":
    unittest.main()
