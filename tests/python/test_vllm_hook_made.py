"""The load format without a blob: experts are made from the checkpoint that vLLM loads."""
import os
import re
import tempfile
import unittest
from unittest import mock

import hook_env
import layer_files
from fall_back import FallBack
from hook_env import PREFIX, World, copied, golden, make_blob
import test_vllm_hook_load as loads
import test_vllm_hook_skip as skip_tests
from test_vllm_hook_convert import versions

CASE = "cpu/gpt_oss_e2_h128*"


@unittest.skipUnless(skip_tests.HAS_META_CONTEXT, "this torch has no context for the meta device")
class Made(unittest.TestCase):
    created = skip_tests.SecondStage.created
    state = staticmethod(skip_tests.SecondStage.state)
    load = loads.LoadFormat.load
    check_put_back = loads.LoadFormat.check_put_back

    def setUp(self):
        self.enterContext = getattr(self, "enterContext", None) or self._enter
        self.enterContext(mock.patch.dict(os.environ, {"MXFP4_REPACK": hook_env.BIN}))

    _enter = FallBack._enter

    def test_experts_are_made_and_nothing_stays_patched(self):
        case = golden(CASE)
        model, _ = make_blob(case)
        with World(model=model) as world:
            made = self.load(world, case, {"strict": True})
            self.assertTrue(self.meta and self.skipped, "raw experts were held or read")
            self.assertFalse(any(p.is_meta for _, p in made.named_parameters()))
            self.assertRegex(world.messages.text(0)[-1], f"1 layers made from {model}, 0 converted by vLLM")
            self.assertEqual(world.messages.text(), [])
            self.check_put_back()

    def test_state_equals_that_from_a_blob(self):
        ran = 0
        for pattern in skip_tests.CASES:
            case = golden(pattern)
            for revision in ("seed", "newer"):
                blob = make_blob(case, revision)
                if blob is None:
                    continue
                found = []
                with self.subTest(case=case.name, revision=revision):
                    for source in ("blob", "checkpoint"):
                        with World(revision, blob=blob[1], model=blob[0], MXFP4_REPACK_SKIP_RAW="1",
                                   MXFP4_REPACK_SOURCE=source) as world, versions(revision):
                            layer = self.created(world.start(), case)
                            if not all(p.is_meta for p in layer._parameters.values()):
                                break  # a type is lacking, or the rules refuse a known defect
                            world.convert(case, layer)
                            self.assertEqual(world.messages.text(), [])
                            self.assertEqual(len(world.hook.made), int(source == "checkpoint"))
                            found.append(self.state(layer))
                    else:
                        self.assertEqual(found[0], found[1])
                        ran += 1
        self.assertGreaterEqual(ran, 18)

    def test_which_source(self):
        case = golden(CASE)
        model, blob = make_blob(case)
        other = make_blob(golden("xpu/gpt_oss*typical"))[1]
        for directory, source, want in ((blob, None, "1 layers taken"), (blob, "blob", "1 layers taken"),
                                        (blob, "checkpoint", "1 layers made"), (other, "checkpoint", "1 layers made"),
                                        (other, None, "0 layers taken from .*, 1 made from"),
                                        (other, "blob", "0 layers taken from .*, 1 converted by vLLM")):
            extra = {"blob": directory, **({"source": source} if source else {})}
            with self.subTest(source=source, want=want), World(model=model) as world:
                self.load(world, case, extra)
                self.assertEqual(self.meta, "1 converted" not in want)
                self.assertRegex(world.messages.text(20)[-1], want)
                notes = [line for line in world.messages.text() if "the blob does not fit" in line]
                self.assertEqual(len(notes), int(directory == other and source is None))

    def test_pages_show_what_is_logged(self):
        def plain(line):
            """Without the numbers, paths and facts, in which a page may differ."""
            line = re.sub(r"(not fit, so that the weights are made from the checkpoint): .*: the blob has .*, vLLM has .*",
                          r"\1: FACT", line)
            line = line.replace(" by the GPU,", ",")  # there is none here
            return re.sub(r"/[^ ,]+", "PATH", re.sub(r"[0-9.]*[0-9]", "N", line))

        case = golden(CASE)
        model, blob = make_blob(case)
        logged = set()
        for extra in ({}, {"blob": blob}, {"blob": make_blob(golden("xpu/gpt_oss*typical"))[1]}):
            with World(model=model) as world:
                self.load(world, case, extra)
                logged.update(plain(line) for line in world.messages.text(0))
        for page in ("man/guide/kubernetes.md", "scripts/python/VLLM.md"):
            with open(os.path.join(hook_env.ROOT, page), encoding="utf-8") as file:
                shown = [line.strip() for line in file if line.startswith("    mxfp4-repack: ")]
            self.assertGreaterEqual(len(shown), 2, page)
            for line in shown:
                self.assertIn(plain(line), logged, page)

    def test_a_file_that_changes_before_it_is_read(self):
        case = golden(CASE)
        for change in layer_files.CHANGES:
            model, blob = copied(make_blob(case))
            with self.subTest(change=change.__name__), World(
                    blob=blob, model=model, MXFP4_REPACK_SKIP_RAW="1", MXFP4_REPACK_SOURCE="checkpoint") as world:
                layer = self.created(world.start(), case)
                self.assertTrue(all(p.is_meta for p in layer._parameters.values()))
                change(os.path.join(model, "model.safetensors"))
                from mxfp4_repack.vllm.hook import BlobRefused
                with self.assertRaisesRegex(BlobRefused, "not made from the checkpoint, and its raw experts were not "
                                                         "loaded: .*model.safetensors"):
                    world.convert(case, layer)
                self.assertEqual(world.hook.made + world.hook.converted, [])

    def test_what_cannot_be_made_says_so_once(self):
        """Files that the library does not read; a model that is not here. Layers after the first say nothing."""
        case = golden(CASE)
        empty = tempfile.mkdtemp(dir=hook_env.scratch.name)
        for name, place, why in (("no checkpoint", empty, r"no \*.safetensors here"),
                                 ("a remote model", "s3://bucket/model", "s3://bucket/model")):
            with self.subTest(name), World(model=place) as world:
                world.start()
                from mxfp4_repack.vllm.hook import Hook
                from mxfp4_repack.vllm.live import origin_of
                from mxfp4_repack.vllm.patches import patched
                from mxfp4_repack.plugin.settings import Settings
                hook = Hook(Settings(place, source="checkpoint", skip_raw=True), origin_of(world.config))
                with patched(hook):
                    for number in range(3):
                        layer = self.created(world, case, name=PREFIX.replace("0", str(number)))
                        self.assertFalse(any(p.is_meta for p in layer._parameters.values()))
                        skip_tests.SecondStage.load_raw(world, case, layer)
                        world.convert(case, layer)
                self.assertEqual(len(hook.converted), 3)
                (line,) = world.messages.text()
                self.assertRegex(line, "raw experts are loaded: .*(%s)" % why)
                self.assertEqual(len([t for t in world.messages.text(20) if "vLLM converts it" in t]), 1)
                self.assertIn("3 converted by vLLM", world.messages.text(20)[-1])

    def test_a_model_that_is_not_here_is_fetched_before_layers_are_created(self):
        case = golden(CASE)
        model, _ = make_blob(case)
        with World(model="org/model") as world:
            world.start()
            from mxfp4_repack.plugin import checkpoint
            self.fetched = None
            with mock.patch.object(checkpoint, "model_directory", lambda origin: model if self.fetched else None):
                self.load(world, case, {})
            self.assertEqual(self.fetched, "org/model")
            self.assertTrue(self.meta)


class OneFact(FallBack):
    """What vLLM says of a layer is planned; where the plan is not what vLLM has, vLLM converts."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.dict(os.environ, {"MXFP4_REPACK": hook_env.BIN}))

    def refused(self, fact, **given):
        super().refused(fact, environment={"MXFP4_REPACK_SOURCE": "checkpoint", "MXFP4_REPACK": hook_env.BIN}, **given)

    def test_facts(self):
        for fact, layer_facts in (
                ("hidden size: the conversion has 128, vLLM has 64", {"hidden_unpadded": 64}),
                ("placement of experts", {"ids": [1, 2]}),
                ("redundant experts: the conversion has 0, vLLM has 4", {"redundant": 4}),
                ("fused shared experts: the conversion has 0, vLLM has 1", {"shared": 1}),
                ("layer: the conversion has none of this name", {"name": "model.layers.7.mlp.experts"})):
            self.refused(fact, layer_facts=layer_facts)


if __name__ == "__main__":
    unittest.main()
