"""mxfp4-repack-check, apart from the questions that need vLLM: tests/engines asks those of releases."""
import json
import sys
import tempfile
import types
import unittest
from unittest import mock

import blob_maker
from mxfp4_repack.vllm import ask, check, sample

FACTS = {"platform": "cuda", "arch": "sm100", "libs": ["flashinfer", "triton_kernels"], "env": {}}
RELEASE = "vllm-0.28.0"


class Echo:
    """Stands in for vLLM's selectors: answers what the program answers, but for one backend's name."""

    def __init__(self, asked, lie=None):
        answers = check.Program(blob_maker.BIN, RELEASE).decide(asked)
        self.answers = {json.dumps(case): answer for case, answer in zip(asked, answers)}
        self.lie = lie

    def decide(self, case):
        answer = dict(self.answers[json.dumps(case)])
        trace = answer.pop("trace", [])
        if case["moe_backend"] == "absent":
            return {"absent": "absent"}
        if case["moe_backend"] == self.lie:
            answer["backend"] = "OTHER"
        return {"expect": answer, "trace": trace}


class Decisions(unittest.TestCase):
    def setUp(self):
        self.program = check.Program(blob_maker.BIN, RELEASE)
        self.asked = list(check.cases(FACTS, ("auto", "marlin", "absent"), "gpt_oss"))

    def test_every_selector_and_name_is_asked(self):
        self.assertEqual({case["selector"] for case in self.asked}, set(ask.SELECTORS))
        self.assertEqual({case["moe_backend"] for case in self.asked}, {"auto", "marlin", "absent"})

    def test_equal_answers(self):
        report = []
        same, differing, chosen = check.check_decisions(Echo(self.asked), self.program, self.asked, report)
        absent = sum(case["moe_backend"] == "absent" for case in self.asked)
        self.assertEqual((same, differing, report), (len(self.asked) - absent, 0, []))
        self.assertIn("MARLIN", chosen)

    def test_a_difference_is_counted_and_reported(self):
        report = []
        lying = Echo(self.asked, lie="marlin")
        _, differing, _ = check.check_decisions(lying, self.program, self.asked, report)
        self.assertEqual(differing, sum(case["moe_backend"] == "marlin" for case in self.asked))
        self.assertIn("differs in backend", report[0])

    def test_the_revision(self):
        chosen, why = check.choose_revision(blob_maker.BIN, None, "0.28.0+cu130")
        self.assertEqual((chosen, why), (RELEASE, "the release that is installed"))
        chosen, why = check.choose_revision(blob_maker.BIN, None, "0.99.0")
        self.assertIn("vllm-0.99.0 is not", why)
        self.assertEqual(check.choose_revision(blob_maker.BIN, "vllm-0.27.0", "0.28.0")[0], "vllm-0.27.0")


class Processor(unittest.TestCase):
    def test_what_the_cpu_backend_asks_for(self):
        for machine, amx, bf16, arch in (("x86_64", True, True, "x86_64-amx"), ("x86_64", False, True, "x86_64-avx512"),
                                         ("AMD64", False, False, "x86_noamx"), ("aarch64", False, False, "aarch64")):
            cpu = types.SimpleNamespace(_is_amx_tile_supported=lambda: amx, _is_avx512_bf16_supported=lambda: bf16)
            with mock.patch.dict(sys.modules, torch=types.SimpleNamespace(cpu=cpu)), mock.patch("platform.machine", lambda: machine):
                self.assertEqual(check.processor(), arch)


class Bytes(unittest.TestCase):
    def test_the_program_packs_what_releases_made(self):
        with open(f"{blob_maker.TESTDATA}/engines/layouts.json", encoding="utf-8") as file:
            rows = json.load(file)["executed"]
        for backend in ("MARLIN", "TRITON", "FLASHINFER_TRTLLM_MXFP4_BF16"):
            row = next(row for row in rows if row["backend"] == backend and "0.28.0" in row["releases"])
            with self.subTest(backend), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(sample.packed(blob_maker.BIN, folder, row, RELEASE), row["out"])
                refused = sample.packed(blob_maker.BIN, folder, {**row, "H": 96}, "vllm-nowhere")
                self.assertIn("unknown revision", refused)


if __name__ == "__main__":
    unittest.main()
