"""convert(), explain() and verify(): the program as functions."""
import os
import subprocess
import sys
import unittest
from unittest import mock

import blob_maker
import mxfp4_repack
from mxfp4_repack import ArgumentError, CommandError, DependencyError

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
        plan = mxfp4_repack.convert(self.model, "commands-never", arch="sm80", dry_run=True, knob={"params_dtype": "float16"},
                                    no_lib=["flashinfer", "deep_gemm"], rank=None, resume=False)
        self.assertTrue(plan.dry_run)
        self.assertFalse(plan.complete)
        self.assertIsNone(plan.stored_bytes)
        self.assertEqual(plan.backend, "MARLIN")
        self.assertFalse(os.path.exists("commands-never"))
        with self.assertRaises(ArgumentError):
            mxfp4_repack.convert(self.model, "commands-never", json=True)

    def test_program_is_missing(self):
        with mock.patch.dict(os.environ, {"MXFP4_REPACK": "", "PATH": "/nonexistent"}):
            with self.assertRaisesRegex(mxfp4_repack.DependencyError, "^mxfp4-repack: the program is neither"):
                mxfp4_repack.explain()

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

    def test_a_program_that_says_nothing(self):
        with mock.patch.dict(os.environ, MXFP4_REPACK="/bin/false"), self.assertRaises(CommandError) as caught:
            mxfp4_repack.verify("x")
        self.assertEqual((caught.exception.exit_code, caught.exception.kind), (1, ""))

    def test_without_a_program(self):
        with mock.patch.dict(os.environ, MXFP4_REPACK="", PATH="/nowhere"), \
                mock.patch("mxfp4_repack.program.__file__", "/nowhere/program.py"), self.assertRaises(DependencyError) as caught:
            mxfp4_repack.verify("x")
        self.assertRegex(str(caught.exception), "^mxfp4-repack: the program is neither in this package nor in PATH")

    def test_a_callback_that_raises_stops_the_conversion(self):
        def stop(share):
            raise KeyboardInterrupt

        with mock.patch("mxfp4_repack.commands._SECONDS_BETWEEN_CALLS", "0.000001"), self.assertRaises(KeyboardInterrupt):
            mxfp4_repack.convert(self.model, "commands-stopped", arch="sm90", progress=stop)
        made = mxfp4_repack.convert(self.model, "commands-stopped", arch="sm90", resume=True)
        self.assertTrue(made.complete)

    def test_nothing_is_imported_before_its_use(self):
        code = "import sys, mxfp4_repack; sys.exit('mxfp4_repack.commands' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
