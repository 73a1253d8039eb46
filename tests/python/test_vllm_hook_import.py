"""How the vLLM plug-in gets into a process: order, repetition, what it must not load or break."""
import os
import subprocess
import sys
import textwrap
import unittest
from unittest import mock

import hook_env
from hook_env import METHODS, ORACLE, QUARK, World, golden, make_blob

NAMES = ("convert_gpt_oss_weight_to_mxfp4_moe_kernel_format",
         "convert_weight_to_mxfp4_moe_kernel_format")
LOADERS = "vllm.model_executor.model_loader"
QUANTIZATION = "vllm.model_executor.layers.quantization"
ONLINE = "vllm.model_executor.layers.quantization.online.mxfp4"


def load(name):
    return __import__(name, fromlist=["x"])


def finders():
    return [finder for finder in sys.meta_path if type(finder).__name__ == "AfterImport"]


def is_wrapper(function):
    return hasattr(function, "_mxfp4_repack")


class Order(unittest.TestCase):
    maxDiff = None

    def check_patched(self):
        oracle, methods, quark = load(ORACLE), load(METHODS), load(QUARK)
        for name in NAMES:
            wrapper = getattr(oracle, name)
            self.assertTrue(is_wrapper(wrapper))
            self.assertFalse(is_wrapper(wrapper.__wrapped__), "wrapped twice")
            self.assertEqual(wrapper.__name__, name)
            self.assertIs(getattr(methods, name), wrapper)
        self.assertIs(getattr(quark, NAMES[0]), getattr(oracle, NAMES[0]))
        for kind in (methods.GptOssMxfp4MoEMethod, methods.Mxfp4MoEMethod,
                     quark.QuarkOCP_MX_MoEMethod):
            self.assertTrue(is_wrapper(kind.create_weights))
            self.assertFalse(is_wrapper(kind.create_weights.__wrapped__))

    def test_registered_before_vllm_imports(self):
        for first in (ORACLE, METHODS, QUARK):
            with self.subTest(first=first), World(blob="/nowhere") as world:
                world.register()
                self.assertNotIn(ORACLE, sys.modules)
                load(first)
                self.check_patched()

    def test_registered_after_vllm_imported(self):
        for last in (ORACLE, METHODS, QUARK):
            with self.subTest(last=last), World(blob="/nowhere") as world:
                load(last)
                world.register()
                self.check_patched()

    def test_three_times_patches_once(self):
        for before in (False, True):
            with self.subTest(before=before), World(blob="/nowhere") as world:
                if before:
                    load(QUARK)
                for _ in range(3):
                    world.register()
                self.check_patched()
                self.assertLessEqual(len(finders()), 2)

    def test_both_orders_take_the_layer(self):
        case = golden("emulation/gpt_oss*typical")
        made = make_blob(case)
        for before in (False, True):
            with self.subTest(before=before), World(blob=made[1], model=made[0]) as world:
                if before:
                    load(QUARK)
                world.start().convert(case)
                self.assertEqual(len(world.hook.taken), 1)

    def test_a_vllm_without_the_converters(self):
        with World(blob="/nowhere") as world:
            oracle = load(ORACLE)
            del oracle.convert_weight_to_mxfp4_moe_kernel_format
            world.register()
            self.assertTrue(is_wrapper(getattr(oracle, NAMES[0])))
            self.assertIn("this vLLM is not known", world.messages.text()[0])


class Off(unittest.TestCase):
    def unpatched(self, world):
        world.register()
        oracle = load(ORACLE)
        self.assertFalse(any(is_wrapper(getattr(oracle, name)) for name in NAMES))
        self.assertLessEqual(len(finders()), 1)
        load(LOADERS), load(QUANTIZATION)
        self.assertEqual(finders(), [])

    def test_without_the_variable_nothing_happens(self):
        with World() as world:
            self.unpatched(world)
            self.assertEqual(world.messages.records, [])

    def test_a_value_that_cannot_be_meant(self):
        for name, value in (("VERIFY", "frist"), ("CHECK", "crc"), ("STRICT", "yes"),
                            ("SKIP_RAW", "2"), ("SOURCE", "no"), ("DIRECT", "true")):
            with self.subTest(name=name), World(
                    blob="/nowhere", **{"MXFP4_REPACK_" + name: value}) as world:
                self.unpatched(world)
                (line,) = world.messages.text()
                self.assertIn("MXFP4_REPACK_%s is '%s'" % (name, value), line)

    def test_settings(self):
        from mxfp4_repack.plugin.settings import Settings
        read = Settings.from_environment
        self.assertIsNone(read({}))
        self.assertIsNone(read({"MXFP4_REPACK_BLOB": ""}))
        self.assertEqual(read({"MXFP4_REPACK_BLOB": "/b"}),
                         ("/b", None, "sizes", False, False, "blob", True, False, False, None, "", False))
        self.assertEqual(read({"MXFP4_REPACK_BLOB": "/b", "MXFP4_REPACK_VERIFY": "ALL",
                               "MXFP4_REPACK_CHECK": "checksums", "MXFP4_REPACK_STRICT": "1",
                               "MXFP4_REPACK_SKIP_RAW": "1", "MXFP4_REPACK_SOURCE": "trust",
                               "MXFP4_REPACK_DIRECT": "1", "MXFP4_REPACK_PACKED": "1",
                               "MXFP4_REPACK_PASS": "gpu"}),
                         ("/b", "all", "checksums", True, True, "blob", True, True, True, None, "gpu", True))
        for said, source in (("blob", "blob"), ("checkpoint", "checkpoint"), ("trust", "either"), ("", "either")):
            found = read({"MXFP4_REPACK_BLOB": "/b", "MXFP4_REPACK_SOURCE": said}, "either")
            self.assertEqual((found.source, found.trust_source), (source, said == "trust"))
        self.assertEqual(read({"MXFP4_REPACK_BLOB": "model:"}).blob, "model:")
        self.assertTrue(os.path.isabs(read({"MXFP4_REPACK_BLOB": "b"}).blob))

    def test_never_raises(self):
        with World(blob="/nowhere") as world:
            from mxfp4_repack import vllm as plugin
            with mock.patch.object(plugin, "AfterImport", side_effect=OSError("x")):
                world.register()
            self.assertIn("the plug-in is off", world.messages.text()[0])

    def test_hook_that_cannot_be_imported(self):
        """Then vLLM is as it was."""
        with World(blob="/nowhere") as world, \
                mock.patch.dict(sys.modules, {"mxfp4_repack.vllm.hook": None}):
            world.register()
            oracle = load(ORACLE)
            self.assertFalse(is_wrapper(getattr(oracle, NAMES[0])))
            self.assertIn("stays as it is", world.messages.text()[0])


class Lean(unittest.TestCase):
    def test_a_process_that_only_parses_arguments(self):
        """register() loads neither torch, triton, numpy, vLLM nor the reader."""
        code = textwrap.dedent("""
            import sys
            before = set(sys.modules)
            from mxfp4_repack import vllm as plugin
            plugin.register()
            heavy = {"torch", "triton", "triton_kernels", "numpy", "xxhash", "vllm",
                     "mxfp4_repack.blob", "mxfp4_repack.plugin.checkpoint", "mxfp4_repack.plugin.facts",
                     "mxfp4_repack.plugin.hook", "mxfp4_repack.plugin.sources",
                     "mxfp4_repack.vllm.converter_code", "mxfp4_repack.vllm.facts",
                     "mxfp4_repack.vllm.hook", "mxfp4_repack.vllm.live"}
            print(sorted(heavy & (set(sys.modules) - before)))
        """)
        environment = dict(os.environ, MXFP4_REPACK_BLOB="/nowhere", PYTHONPATH=os.pathsep.join(
            [os.path.join(hook_env.ROOT, "scripts", "python")]))
        done = subprocess.run([sys.executable, "-c", code], env=environment, text=True,
                              stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.strip(), "[]")


if __name__ == "__main__":
    unittest.main()
