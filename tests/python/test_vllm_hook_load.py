"""The load format mxfp4_repack, and what one start remembers for the next."""
import importlib
import os
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np

import hook_env
import layer_files
from edited_blob import edit_manifest
from hook_env import METHODS, ORACLE, PREFIX, World, copied, golden, make_blob
import test_vllm_hook_verify as verify_tests
import test_vllm_hook_skip as skip_tests

CONVERTER = "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format"
CASE = "cpu/gpt_oss_e2_h128*"


class Model:
    def __init__(self, layer):
        self.layer = layer

    def named_parameters(self):
        return [("experts." + name, p) for name, p in self.layer._parameters.items()]

    def modules(self):
        return [self.layer]

    def parameters(self):
        return iter(self.layer._parameters.values())

    def load_weights(self, weights):
        return [name for name, _ in weights]


@unittest.skipUnless(skip_tests.HAS_META_CONTEXT, "this torch has no context for the meta device")
class LoadFormat(unittest.TestCase):
    created = skip_tests.SecondStage.created

    read = None  # files that the stand-in's load_model() reads; then what came of them

    @staticmethod
    def others(files):
        from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
        return {name: tensor for name, tensor in DefaultModelLoader()._get_weights_iterator(files)}

    def load(self, world, case, extra, known=True):
        """A model of one layer, by vLLM's loader of this format over a stand-in of "auto"."""
        world.start(known=known)
        import vllm.model_executor.model_loader as loaders
        owner = self

        class Auto:
            def __init__(self, load_config):
                self.load_config = load_config

            def download_model(self, model_config):
                owner.fetched = model_config.model

            def load_model(self, vllm_config, model_config, prefix=""):
                layer = owner.created(world, case)
                owner.meta = all(p.is_meta for p in layer._parameters.values())
                owner.skipped = sys.modules[
                    "vllm.model_executor.model_loader.weight_utils"].should_skip_weight(
                        PREFIX + ".gate_up_proj_blocks", None)
                if getattr(owner, "read", None) is not None:
                    owner.read = owner.others(owner.read)
                if not owner.meta:
                    right = world.layer(case, right=True)
                    for name in list(layer._parameters):
                        layer._parameters[name] = right._parameters[name]
                    stored = hook_env.file_tensors(make_blob(case)[1])
                    layer.own_result = {
                        slot: verify_tests.Verification.as_reference(stored[slot])
                        if slot in stored else None for slot in hook_env.SLOTS}
                world.convert(case, layer)
                return Model(layer)

        loaders._LOAD_FORMAT_TO_MODEL_LOADER["auto"] = Auto
        config = SimpleNamespace(load_format="mxfp4_repack", model_loader_extra_config=extra,
                                 download_dir=None)
        loader = loaders.get_model_loader(config)
        return loader.load_model(vllm_config=world.config, model_config=world.config.model_config)

    def check_put_back(self):
        for module in (ORACLE, METHODS):
            self.assertFalse(hasattr(getattr(sys.modules[module], CONVERTER), "_mxfp4_repack"))
        method = sys.modules[METHODS].GptOssMxfp4MoEMethod
        self.assertFalse(hasattr(method.create_weights, "_mxfp4_repack"))
        utils = sys.modules["vllm.model_executor.model_loader.weight_utils"]
        self.assertFalse(hasattr(utils.should_skip_weight, "_mxfp4_repack"))

    def test_experts_come_from_the_blob_and_nothing_stays_patched(self):
        case = golden(CASE)
        model, blob = make_blob(case)
        with World(model=model) as world:
            made = self.load(world, case, {"blob": blob, "strict": True})
            self.assertTrue(self.meta and self.skipped, "raw experts were held or read")
            self.assertFalse(any(p.is_meta for _, p in made.named_parameters()))
            self.assertIn("1 layers taken", world.messages.text(0)[-1])
            self.assertEqual(world.messages.text(), [])
            self.check_put_back()

    def test_other_tensors_come_by_the_loader(self):
        """All but raw experts: those of this layer are not read, those of another are left to vLLM's iterator."""
        case = golden(CASE)
        model, blob = make_blob(case)
        random = np.random.default_rng(5)
        raw = f"{PREFIX}.gate_up_proj_blocks"
        theirs = "model.layers.7.mlp.experts.down_proj_blocks"
        stored = {"model.norm.weight": ("BF16", random.integers(0, 1 << 16, (7, 3), dtype="u2")),
                  raw: ("U8", random.integers(0, 256, (4, 4), dtype="u1")),
                  "model.layers.0.mlp.experts.activation_scale": ("F32", random.integers(0, 1 << 30, 3, dtype="u4")),
                  "lm_head.weight": ("I32", random.integers(0, 1 << 30, (300, 40), dtype="u4")),
                  theirs: ("U8", random.integers(0, 256, (9, 2), dtype="u1"))}
        mine = {name for name in stored if name not in (raw, theirs)}
        with tempfile.TemporaryDirectory(dir=hook_env.scratch.name) as folder:
            # The stand-in's iterator takes {name: tensor} where vLLM's takes paths: a mapping serves both.
            files = {os.path.join(folder, f"{number}.safetensors"): number for number in (10, 9)}
            halves = (list(stored)[:2], list(stored)[2:])
            for path, names in zip(files, halves):
                layer_files.write(path, {name: stored[name] for name in names})
            for said in (None, False, True):
                with World(model=model) as world:
                    world.config.device_config = SimpleNamespace(device="cpu")
                    world.start()
                    utils = importlib.import_module("vllm.model_executor.model_loader.weight_utils")
                    loader = importlib.import_module("vllm.model_executor.model_loader.default_loader")

                    def theirs_only(hf_weights_files, use_tqdm_on_load, local_expert_ids=None):
                        for name in (name for file in hf_weights_files for name in layer_files.read(file)[0]):
                            if not utils.should_skip_weight(name, local_expert_ids):
                                yield name, "vLLM's"

                    self.read = files
                    with mock.patch.object(loader, "safetensors_weights_iterator", theirs_only):
                        self.load(world, case, {"blob": blob, "strict": True, **({} if said is None else {"others": said})})
                    found, self.read = self.read, None
                    self.assertEqual(set(found), {*mine, theirs})
                    by_vllm = {name for name, tensor in found.items() if isinstance(tensor, str)}
                    self.assertEqual(by_vllm, {theirs} if said else set(found))
                    for name in set(found) - by_vllm:
                        self.assertEqual(hook_env.bits(found[name]).tobytes(), stored[name][1].tobytes(), name)
                    lines = [line for line in world.messages.text(0) if "other tensors" in line]
                    self.assertEqual(len(lines), 1 if said else 0)
                    self.check_put_back()

    def test_direct_reads_are_asked_for(self):
        case = golden(CASE)
        model, blob = make_blob(case)
        for extra, environment, want in (({}, {}, False), ({"direct": True}, {}, True),
                                         ({}, {"MXFP4_REPACK_DIRECT": "1"}, True),
                                         ({"direct": False}, {"MXFP4_REPACK_DIRECT": "1"}, False)):
            with World(model=model, **environment) as world:
                world.start()
                from mxfp4_repack.plugin import sources
                with mock.patch.object(sources, "open_any_blob", wraps=sources.open_any_blob) as opened:
                    self.load(world, case, {"blob": blob, "strict": True, **extra})
                self.assertEqual([call[0][3] for call in opened.call_args_list], [want])

    def test_a_blob_that_is_not_there(self):
        case = golden(CASE)
        with World(model=make_blob(case)[0]) as world:
            self.load(world, case, {"source": "blob"})
            self.assertFalse(self.meta)
            self.assertIn("1 converted by vLLM", world.messages.text(0)[-1])
            (line,) = world.messages.text()
            self.assertRegex(line, "raw experts are loaded: .*not a blob")
            self.check_put_back()
        with World(model=make_blob(case)[0]) as world:
            with self.assertRaisesRegex(RuntimeError, "not from the blob: .*not a blob"):
                self.load(world, case, {"strict": True, "source": "blob"})
            self.check_put_back()

    def test_options_that_mean_nothing(self):
        case = golden(CASE)
        model, blob = make_blob(case)
        option = "model_loader_extra_config: "
        wrong = {"blob": (True, False, 5, 1.5, [], {}, ""), "verify": ("often", True, 1, "nil", ["first"]),
                 "check": ("none of them", 0, False, {}), "strict": ("yes", 2, 1.0, [], "None"), "direct": ("on", -1, 0.0, ()),
                 "others": ("false", 7), "source": ("disk", True, 0, ["blob"]), "load_format": ("mxfp4_repack", "MXFP4_Repack", 3, True)}
        tries = [({key: value}, f"{option}{key} is|name is empty") for key, values in wrong.items() for value in values]
        for extra, text in (*tries, ({"source": "disk"}, "it can be blob, checkpoint"), ("blob", "can be an object"),
                            (["verify"], "can be an object"), (3, "can be an object")):
            with self.subTest(extra), World(model=model) as world, self.assertRaisesRegex(ValueError, text):
                self.load(world, case, extra)

    def test_a_proof_is_remembered(self):
        """Unknown code: the first start compares, the second one reads no raw experts."""
        case = golden(CASE)
        model, blob = make_blob(case)
        cache = tempfile.mkdtemp(dir=hook_env.scratch.name)
        for meta in (False, True):
            with World(model=model, XDG_CACHE_HOME=cache) as world:
                self.load(world, case, {"blob": blob}, known=False)
                self.assertEqual(self.meta, meta)
                self.assertIn("1 layers taken" if meta else "own conversion equals",
                              " ".join(world.messages.text(0)))
        (proof,) = os.listdir(os.path.join(cache, "mxfp4_repack", "proven"))
        # Nothing is known of another manifest.
        model, blob = hook_env.copied((model, blob))
        edit_manifest(blob, lambda m: m.update(source=dict(m["source"], note="other")))
        with World(model=model, XDG_CACHE_HOME=cache) as world:
            self.load(world, case, {"blob": blob}, known=False)
            self.assertFalse(self.meta)

    def test_a_method_that_converts_by_itself_keeps_its_raw_experts(self):
        case = golden(CASE)
        model, blob = make_blob(case)

        def init(self, backend, _init=None):
            self.mxfp4_backend, self.is_k3_situ_int4_gfx942 = backend, True

        with World(model=model) as world:
            world.start()
            with mock.patch.object(sys.modules[METHODS].GptOssMxfp4MoEMethod, "__init__", init):
                self.load(world, case, {"blob": blob})
            self.assertFalse(self.meta)
            self.assertIn("the method's own (is_k3_situ_int4_gfx942)", world.messages.text()[0])

    def test_a_method_that_bypasses_the_selector_alone_is_served(self):
        """Kimi-K3 on gfx950: its method names the backend itself, and calls the oracle's converter; vLLM 0.27's
        converts by itself, and keeps its raw experts."""
        case = golden(CASE)
        model, blob = make_blob(case)

        def init(self, backend, _init=None):
            self.mxfp4_backend, self.is_k3_situ_aiter = backend, True

        with World(model=model) as world:
            world.start()
            with mock.patch.object(sys.modules[METHODS].GptOssMxfp4MoEMethod, "__init__", init):
                self.load(world, case, {"blob": blob})
            self.assertTrue(self.meta)
        with World(model=model) as world:
            world.start()
            method = sys.modules[METHODS].GptOssMxfp4MoEMethod
            with mock.patch.object(method, "__init__", init), \
                    mock.patch.object(method, "_setup_kernel_k3_situ", lambda method, layer: None, create=True):
                self.load(world, case, {"blob": blob})
            self.assertFalse(self.meta)
            self.assertIn("the method's own (is_k3_situ_aiter)", world.messages.text()[0])



class Packed(unittest.TestCase):
    def test_only_its_own_method_is_overridden(self):
        with World() as world:
            world.register()
            import vllm.model_executor.layers.quantization as quantization
            packed = quantization.get_quantization_config("mxfp4_repack")
            for method in ("mxfp4", "fp8", None):
                self.assertIsNone(packed.override_quantization_method(
                    {"quant_method": method}, None, hf_config=None))
            self.assertNotIn("MXFP4_REPACK_BLOB", os.environ)

    def test_the_checkpoints_method_and_the_blob(self):
        with World() as world, mock.patch.dict(os.environ):
            world.register()
            import vllm.model_executor.layers.quantization as quantization
            packed = quantization.get_quantization_config("mxfp4_repack")
            from mxfp4_repack.plugin.names import IN_THE_MODEL
            # What config.json says of its own place is not believed.
            elsewhere = SimpleNamespace(name_or_path=hook_env.scratch.name)
            config = {"quant_method": "mxfp4_repack", "mxfp4_repack_quant_method": "mxfp4"}
            self.assertEqual(packed.override_quantization_method(
                config, None, hf_config=elsewhere), "mxfp4")
            self.assertEqual(config, {"quant_method": "mxfp4"})
            self.assertEqual(os.environ["MXFP4_REPACK_BLOB"], IN_THE_MODEL)
            self.assertEqual(os.environ["MXFP4_REPACK_PACKED"], "1")
            self.assertEqual(os.environ["MXFP4_REPACK_SKIP_RAW"], "1")
            with self.assertRaisesRegex(ValueError, "is missing"):
                packed.override_quantization_method({"quant_method": "mxfp4_repack"}, None)
            config = {"quant_method": "mxfp4_repack"}  # of a checkpoint that names none
            self.assertEqual(packed.override_quantization_method(
                config, "mxfp4", hf_config=elsewhere), "mxfp4")

    def test_the_blob_is_that_of_the_model_that_vllm_was_given(self):
        """Not of the directory that config.json names; and without a directory nothing is converted."""
        from mxfp4_repack.plugin.names import IN_THE_MODEL
        case = golden(CASE)
        _, blob = copied(make_blob(case))
        model = os.path.join(os.path.dirname(blob), "whole")
        os.makedirs(model)
        os.rename(blob, os.path.join(model, "mxfp4_repack"))
        environment = {"MXFP4_REPACK_PACKED": "1", "MXFP4_REPACK_SOURCE": "trust"}
        with World(blob=IN_THE_MODEL, model=model, **environment) as world:
            world.start().convert(case)
            self.assertEqual(world.hook.taken, [hook_env.PREFIX])
        with World(blob=IN_THE_MODEL, model="s3://bucket/model", **environment) as world:
            world.start()
            from mxfp4_repack.vllm.hook import BlobRefused
            with self.assertRaisesRegex(BlobRefused, "raw experts were not loaded: checkpoint: .*s3://bucket/model"):
                world.convert(case)


if __name__ == "__main__":
    unittest.main()
