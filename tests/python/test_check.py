"""mxfp4-repack-check: its screen and exit status, in an environment that says that it has an engine."""
import json
import os
import re
import shutil
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
        engine = {"sglang": "0.5.23"} if os.path.isdir(os.path.join(self.folder, "site", "sglang-0.5.23.dist-info")) else {"vllm": "0.33.0"}
        with open(probe, "w") as file:
            file.write("print(%r)" % json.dumps({"platform": "cuda", "arch": "sm90", **engine}))
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
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = self.check("openai/gpt-oss-20b")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("hf download openai/gpt-oss-20b", done.stderr)

    def install_sglang(self):
        self.install("sglang", "0.5.23")
        self.install("mxfp4_repack", "0", "[sglang.srt.plugins]\nmxfp4_repack = mxfp4_repack.sglang:register\n")

    def test_sglang_is_turned_on_by_variables(self):
        self.install_sglang()
        done = self.check(self.model)
        self.assertEqual((done.returncode, self.used(done)["used"]), (1, "the engine's own conversion: MXFP4_REPACK_BLOB is not set"))
        done = self.check(self.model, MXFP4_REPACK_BLOB="none", MXFP4_REPACK_SOURCE="checkpoint")
        self.assertRegex(self.used(done)["used"], "^the checkpoint: TRITON, ")
        self.assertNotIn("blob", self.used(done))
        done = self.check(self.model, "--moe-runner-backend", "deep_gemm", MXFP4_REPACK_BLOB="none", MXFP4_REPACK_SOURCE="checkpoint")
        self.assertEqual((done.returncode, self.used(done)["used"]),
                         (1, "the engine's own conversion: the plug-in leaves DEEPGEMM_MXFP4 to it"))

    def test_a_blob_that_variables_name_is_all_that_they_allow(self):
        for install in (self.install_both, self.install_sglang):
            install()
            self.convert("--arch", "sm100")
            done = self.check(self.model, MXFP4_REPACK_BLOB=self.model + "-mxfp4_repack")
            self.assertEqual((done.returncode, self.used(done)["used"]), (1, "the engine's own conversion: the blob does not fit"))
            done = self.check(self.model, MXFP4_REPACK_BLOB=self.model)
            self.assertEqual((done.returncode, self.used(done)["used"]), (1, "the engine's own conversion: there is no such blob"))
            shutil.rmtree(os.path.join(self.folder, "site"))
            shutil.rmtree(self.model + "-mxfp4_repack")

    def test_the_blob_of_the_load_format(self):
        self.install_both()
        self.convert("--arch", "sm90")
        os.rename(self.model + "-mxfp4_repack", self.model + "-packed")
        self.assertRegex(self.used(self.check(self.model))["used"], "^the checkpoint: ")
        self.assertEqual(self.used(self.check(self.model, f"--blob={self.model}-packed"))["used"], "the blob")
        self.assertEqual(self.check(self.model, "--blob", self.model + "-packed", "--tp-size", "2").returncode, 1)


if __name__ == "__main__":
    unittest.main()
