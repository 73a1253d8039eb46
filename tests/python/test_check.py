"""mxfp4-repack-check: its screen and exit status, in an environment that says that it has an engine."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import blob_maker
import layer_files

ROOT = os.environ["SOURCE_DIR"]


class Check(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.model = os.path.join(self.folder, "model")
        layer_files.make_gpt_oss(self.model, 1, 2, 64, 64)

    def install(self, name, version, points=""):
        folder = os.path.join(self.folder, "site", f"{name}-{version}.dist-info")
        os.makedirs(folder)
        for file, text in (("METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"), ("entry_points.txt", points)):
            with open(os.path.join(folder, file), "w") as out:
                out.write(text)

    def install_both(self):
        self.install("vllm", "0.33.0")
        self.install("mxfp4_repack", "0", "[vllm.general_plugins]\nmxfp4_repack = mxfp4_repack.vllm:register\n")

    def check(self, *words, **variables):
        # A machine of the facts given, whatever this one is.
        probe = os.path.join(self.folder, "probe")
        with open(probe, "w") as file:
            file.write("print(%r)" % json.dumps({"platform": "cuda", "arch": "sm90", "vllm": "0.33.0"}))
        code = ("import sys; from mxfp4_repack import check; check.probe_script = lambda: %r; sys.exit(check.main(sys.argv[1:]))" % probe)
        environment = {**os.environ, "MXFP4_REPACK": blob_maker.BIN, "PYTHONPATH": os.pathsep.join(
            (os.path.join(self.folder, "site"), os.path.join(ROOT, "scripts", "python"))), **variables}
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment)

    def used(self, done):
        self.assertEqual(done.stderr, "")
        return {row[:9].strip(): row[10:] for row in done.stdout.splitlines()}

    def convert(self, *flags):
        subprocess.run([blob_maker.BIN, "convert", self.model, "-o", self.model + "-mxfp4_repack", *flags, "-q"], check=True)

    def test_nothing_is_installed(self):
        done = self.check()
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
        self.assertRegex(done.stderr, "^mxfp4-repack-check: vLLM: neither it nor SGLang is installed for /")

    def test_the_screen_of_the_page(self):
        self.install_both()
        self.convert("--arch", "sm90")
        lines = self.check(self.model, "--tp-size", "2").stdout.replace(self.model, "gpt-oss-120b").splitlines()
        with open(os.path.join(ROOT, "scripts", "python", "VLLM.md"), encoding="utf-8") as file:
            shown = re.search(r"((?:    .*\n){3}    used  .*\n)", file.read()).group(1).replace("\n    ", "\n").strip().split("\n")
        self.assertEqual(len(shown), 4)
        self.assertLessEqual(set(shown), set(lines))

    def test_the_checkpoint(self):
        self.install_both()
        done = self.check(self.model)
        rows = self.used(done)
        self.assertEqual((done.returncode, rows["engine"], rows["plug-in"], rows["machine"]), (0, "vLLM 0.33.0", "found", "cuda sm90"))
        self.assertRegex(rows["used"], "^the checkpoint: TRITON, layout triton/")

    def test_a_blob_that_fits_and_one_that_does_not(self):
        self.install_both()
        self.convert("--arch", "sm90")
        done = self.check(self.model)
        self.assertEqual((done.returncode, self.used(done)["used"]), (0, "the blob"))
        done = self.check(self.model, "--tp-size", "2")
        self.assertIn("does not fit vllm-0.33.0\n          2 ranks there", done.stdout)
        self.assertRegex(self.used(done)["used"], "^the checkpoint: ")

    def test_the_plug_in_is_not_there(self):
        self.install("vllm", "0.33.0")
        done = self.check(self.model)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not installed", self.used(done)["plug-in"])

    def test_the_plug_in_is_left_out(self):
        self.install_both()
        done = self.check(self.model, VLLM_PLUGINS="other")
        self.assertEqual((done.returncode, self.used(done)["plug-in"]), (1, "not loaded: VLLM_PLUGINS is set without mxfp4_repack"))

    def test_wrong_words(self):
        self.install_both()
        self.assertEqual(self.check("--tp-size", "2").returncode, 2)
        done = self.check(self.model, "--tp-size", "x")
        self.assertEqual((done.returncode, done.stdout), (6, ""))


if __name__ == "__main__":
    unittest.main()
