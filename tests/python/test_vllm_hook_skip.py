"""MXFP4_REPACK_SKIP_RAW of the vLLM plug-in: raw experts of covered layers are neither read nor held."""
import contextlib
import json
import os
import shutil
import tempfile
import unittest
from types import SimpleNamespace

import hook_env
import layer_files
from edited_blob import edit_manifest
from hook_env import PREFIX, SLOTS, World, bits, copied, golden, make_blob, torch
from test_vllm_hook_convert import versions
import test_vllm_hook_damage as damage_tests

CASES = ("emulation/gpt_oss*typical", "xpu/gpt_oss*typical", "cpu/gpt_oss_e2_h128*",
         "flashinfer_cutlass_mxfp4_bf16/*", "flashinfer_trtllm_mxfp4_bf16/gpt_oss*",
         "flashinfer_trtllm_mxfp4_bf16/generic*", "marlin/gpt_oss*", "aiter_mxfp4_bf16/gpt_oss*",
         "deepgemm_mxfp4/gpt_oss*", "triton/gpt_oss_sm90*e3*", "triton/gpt_oss_sm120*",
         "triton/generic_sm90*", "triton_unfused/gpt_oss_sm80*")
HAS_META_CONTEXT = hasattr(torch.device, "__enter__")


def checkpoint_names(prefix):
    """Raw tensors of a layer under all names that loaders know, and others beside them."""
    raw = ["%s.%d.%s.%s" % (prefix, k, m, p) for k in (0, 17)
           for m in ("w1", "w2", "w3", "gate_proj", "up_proj", "down_proj")
           for p in ("weight", "weight_packed", "scale", "weight_scale", "bias")]
    raw += ["%s.%s%s" % (prefix, m, p) for m in ("gate_up_proj", "down_proj")
            for p in ("_blocks", "_scales", "_bias", ".weight", ".weight_scale", ".bias")]
    raw += ["%s.%s_%s" % (prefix, m, p) for m in ("w13", "w2")
            for p in ("weight", "weight_scale", "bias")]
    parent = prefix.rsplit(".", 1)[0]
    kept = [prefix + ".0.down_proj.input_scale", prefix + ".w13_input_scale",
            prefix + ".gate_up_proj.input_scale", parent + ".shared_experts.gate_proj.weight",
            parent + ".router.weight", parent + ".router.bias", parent + ".gate.weight",
            prefix + ".0.gate_proj.weight_scale_2", prefix + "x.0.gate_proj.weight",
            "model.embed_tokens.weight", "mtp.0.ffn.experts.0.w1.weight", prefix]
    return raw, kept


@unittest.skipUnless(HAS_META_CONTEXT, "this torch has no context for the meta device")
class SecondStage(unittest.TestCase):
    def setUp(self):
        patch = versions("seed")
        patch.start()
        self.addCleanup(patch.stop)

    def world(self, made, revision="seed", **environment):
        environment.setdefault("MXFP4_REPACK_SKIP_RAW", "1")
        return World(revision, blob=made[1], model=made[0], **environment)

    def created(self, world, case, method=None, name=PREFIX, **facts):
        """A layer as vLLM creates it, through the method's create_weights."""
        from vllm.standin import FusedMoE
        experts, hidden, inner = case.sizes
        arch = case.facts.get("arch")
        world.set_machine(case.facts["platform"], arch if arch not in ("any", "xpu") else "")
        facts.setdefault("has_bias", "w13_bias" in case.ins)
        facts.setdefault("device", hook_env.DEVICE)
        layer = FusedMoE(name, experts, hidden, inner, **facts)
        layer.quant_method = method or world.method(case)
        with torch.device(hook_env.DEVICE) if HAS_META_CONTEXT else contextlib.nullcontext():
            layer.quant_method.create_weights(
                layer=layer, num_experts=experts, hidden_size=hidden,
                intermediate_size_per_partition=inner, params_dtype=torch.bfloat16,
                weight_loader="loader")
        return layer

    @staticmethod
    def state(layer):
        """All that a converted layer holds, as bytes."""
        found = {}
        for slot, value in zip(SLOTS, layer.quant_method.values):
            if value is not None and hasattr(value, "weight_scale"):
                value = value.weight_scale
            if value is not None and hasattr(value, "storage") and hasattr(value.storage, "layout"):
                found[slot + " layout"] = (type(value.storage.layout).__name__,
                                           vars(value.storage.layout), value.shape)
                value = value.storage.data
            found[slot] = None if value is None else (
                str(value.dtype), list(value.shape), list(value.stride()), bits(value).tobytes())
        return found

    def test_final_state_equals_that_with_raw_experts(self):
        ran = 0
        for pattern in CASES:
            case = golden(pattern)
            for revision in ("seed", "newer"):
                made = make_blob(case, revision)
                if made is None:
                    continue
                with self.subTest(case=case.name, revision=revision):
                    with World(revision, blob=made[1], model=made[0]) as world:
                        with versions(revision):
                            first = self.state(world.start().convert(case))
                        if world.hook.converted:  # a type is lacking
                            continue
                    with self.world(made, revision) as world, versions(revision):
                        layer = self.created(world.start(), case)
                        for name, parameter in layer._parameters.items():
                            self.assertTrue(parameter.is_meta, name)
                            self.assertEqual(parameter.weight_loader, "loader")
                        world.convert(case, layer)
                        self.assertEqual(world.messages.text(), [])
                        self.assertEqual(world.hook.taken, [PREFIX])
                        self.assertEqual(self.state(layer), first)
                        for name, parameter in layer._parameters.items():
                            self.assertFalse(parameter.is_meta, name + " has no data")
                        ran += 1
        self.assertGreaterEqual(ran, 20)

    def test_raw_tensors_are_not_read(self):
        case = golden("cpu/gpt_oss_e2_h128*")
        raw, kept = checkpoint_names(PREFIX)
        other, _ = checkpoint_names("model.layers.1.mlp.experts")
        with self.world(make_blob(case)) as world:
            world.start()
            from vllm.model_executor.model_loader import weight_utils
            from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
            checkpoint = dict.fromkeys(raw + kept + other)
            layer = self.created(world, case)
            for eager in (False, True):
                weight_utils.read.clear()
                loader = DefaultModelLoader()
                loader.eager = eager
                names = [name for name, _ in loader._get_weights_iterator(checkpoint)]
                self.assertEqual(names, kept + other)
                self.assertEqual(weight_utils.read, list(checkpoint) if eager else kept + other)
            # The original's answers are kept.
            self.assertTrue(weight_utils.should_skip_weight("x.experts.99.w1.weight", {1}))
            self.assertFalse(weight_utils.should_skip_weight("x.experts.9.w1.weight", None))
            # After the first conversion all is read again: a reload.
            world.convert(case, layer)
            self.assertFalse(any(world.hook.skips(name) for name in raw))

    def test_end_of_a_load(self):
        """A line with both counts, once, and no threads or buffers are kept."""
        case = golden("cpu/gpt_oss_e2_h128*")
        with self.world(make_blob(case), MXFP4_REPACK_SKIP_RAW="0") as world:
            world.start()
            names = [PREFIX, PREFIX.replace("0", "1")]
            layers = [self.created(world, case, name=name) for name in names]
            for count, layer in enumerate(layers):
                self.load_raw(world, case, layer)
                world.convert(case, layer)
                lines = [line for line in world.messages.text(0) if "layers taken" in line]
                self.assertEqual(len(lines), count)
            self.assertRegex(lines[0], "1 layers taken from .*, 1 converted by vLLM")
            from mxfp4_repack import loader
            self.assertEqual(loader._loaders, {})
            world.convert(case, layers[0])  # a reload says nothing more
            self.assertEqual(len([t for t in world.messages.text(0) if "layers taken" in t]), 1)

    @staticmethod
    def load_raw(world, case, layer):
        """What a loader does: the raw tensors, with the blob's scales, whatever the rest."""
        for slot, parameter in world.layer(case)._parameters.items():
            layer._parameters[slot].data.copy_(parameter.data)

    def test_nothing_is_skipped_unless_asked(self):
        case = golden("cpu/gpt_oss_e2_h128*")
        made = make_blob(case)
        with World(blob=made[1], model=made[0]) as world:
            layer = self.created(world.start(), case)
            self.assertFalse(any(p.is_meta for p in layer._parameters.values()))
            from vllm.model_executor.model_loader import weight_utils
            self.assertFalse(hasattr(weight_utils.should_skip_weight, "_mxfp4_repack"))
            self.assertFalse(world.hook.skips(PREFIX + ".0.w1.weight"))

    # --- layers that are not covered are loaded as ever ---

    def uncovered(self, fact, case=None, made=None, set_up=None, method=None, known=True,
                  **environment):
        case = case or golden("cpu/gpt_oss_e2_h128*")
        with self.subTest(fact=fact), self.world(made or make_blob(case), **environment) as world:
            world.start(known=known)
            facts = set_up(world) if set_up else {}
            layer = self.created(world, case, method=method and method(world), **(facts or {}))
            for name, parameter in layer._parameters.items():
                self.assertFalse(parameter.is_meta, name)
                self.assertEqual(parameter.weight_loader, "loader")
            self.assertFalse(world.hook.skips(PREFIX + ".0.w1.weight"))
            (line,) = world.messages.text()
            self.assertRegex(line, "raw experts are loaded: .*" + fact)

    def test_what_keeps_the_raw_experts(self):
        def config(path, value):
            def set_up(world):
                owner, names = world.config, path.split(".")
                for name in names[:-1]:
                    if not hasattr(owner, name):
                        setattr(owner, name, SimpleNamespace())
                    owner = getattr(owner, name)
                setattr(owner, names[-1], value)
            return set_up

        self.uncovered("tensor parallel", set_up=lambda w: {"tp": (0, 2)})
        self.uncovered("placement of experts", set_up=lambda w: {"ids": [1, 2]})
        self.uncovered("hidden size", set_up=lambda w: {"hidden_unpadded": 64})
        self.uncovered("w13_bias: the blob has bfloat16, vLLM has none",
                       set_up=lambda w: {"has_bias": False})
        self.uncovered("offloaded", set_up=config("cache_config.cpu_offload_gb", 4))
        self.uncovered("offloaded", set_up=config("offload_config.uva.cpu_offload_gb", 4))
        self.uncovered("offloaded", set_up=config("offload_config.prefetch.offload_group_size", 2))
        self.uncovered("enable_eplb", set_up=config("parallel_config.enable_eplb", True))
        self.uncovered("enable_elastic_ep",
                       set_up=config("parallel_config.enable_elastic_ep", True))
        self.uncovered("load format", set_up=config("load_config.load_format", "dummy"))
        self.uncovered("compare", known=False)
        self.uncovered("compare", MXFP4_REPACK_VERIFY="all")
        self.uncovered("code of no known revision", known=False, MXFP4_REPACK_VERIFY="none")

    def test_files_that_keep_the_raw_experts(self):
        case = golden("cpu/gpt_oss_e2_h128*")
        model, blob = copied(make_blob(case))
        for name in os.listdir(blob):
            if name.startswith("layer-"):
                os.truncate(os.path.join(blob, name), 5000)
        self.uncovered("bytes", made=(model, blob))
        model, blob = copied(make_blob(case))
        for name in os.listdir(blob):
            if name.startswith("layer-"):
                damage_tests.Damage.flip(os.path.join(blob, name), 40)
        self.uncovered("Error: ", made=(model, blob))
        model, blob = copied(make_blob(case))
        os.remove(os.path.join(model, "model.safetensors"))
        self.uncovered("no such file", made=(model, blob))

    def test_static_input_scales_keep_the_raw_experts(self):
        """They are loaded into parameters that create_weights makes, with a value of their own."""
        case = golden("aiter_mxfp4_fp8/*")

        def method(world):
            made = world.method(case)
            made.static_input_scales = True
            return made

        for slot in ("w13_bias", "w2_bias"):
            case.types["in." + slot] = "F32"
            case.ins[slot] = case.ins[slot].astype("f4")
        case.name += "-f32"
        self.uncovered("it has w13_input_scale, w2_input_scale", case=case, method=method)

    # --- nothing to fall back to ---

    def test_failure_after_loading_is_an_error(self):
        case = golden("cpu/gpt_oss_e2_h128*")
        model, blob = copied(make_blob(case))
        with self.world((model, blob)) as world:
            layer = self.created(world.start(), case)
            for name in os.listdir(blob):
                if name.startswith("layer-"):
                    os.truncate(os.path.join(blob, name), 5000)
            with self.assertRaisesRegex(RuntimeError, "raw experts were not loaded: SizeError"):
                world.convert(case, layer)

    def test_change_after_loading_is_an_error(self):
        case = golden("triton/gpt_oss_sm90*e3*")
        with self.world(make_blob(case)) as world:
            layer = self.created(world.start(), case)
            import vllm.model_executor.layers.quantization.utils.mxfp4_utils as utils
            utils.SCALES_IN_FOURS = True
            with self.assertRaisesRegex(RuntimeError, "shape before the layout"):
                world.convert(case, layer)

    def test_reload_converts_what_was_loaded(self):
        case = golden("emulation/gpt_oss*typical")
        with self.world(make_blob(case)) as world:
            layer = self.created(world.start(), case)
            world.convert(case, layer)
            for slot in SLOTS:
                parameter = layer._parameters[slot]
                setattr(layer, slot, torch.nn.Parameter(torch.zeros(
                    *parameter.shape, dtype=parameter.dtype, device=hook_env.DEVICE),
                    requires_grad=False))
            world.convert(case, layer)
            self.assertEqual(world.hook.taken, [PREFIX])
            self.assertEqual(set(bits(layer.w13_weight).tobytes()), {0})

    def test_blob_beside_raw_experts(self):
        """A folder of that name does not mean that raw experts are missing."""
        case = golden("cpu/gpt_oss_e2_h128*")
        model, blob = copied(make_blob(case))
        shutil.move(blob, os.path.join(model, "mxfp4_repack"))
        index = os.path.join(model, "model.safetensors.index.json")
        for names in ((PREFIX + ".gate_up_proj_blocks",), ("model.layers.0.ffn.experts.3.w1.weight",), None,
                      layer_files.read(os.path.join(model, "model.safetensors"))[0]):
            if names is not None:
                with open(index, "w") as file:
                    json.dump({"weight_map": dict.fromkeys(names, "model.safetensors")}, file)
            elif os.path.exists(index):
                os.remove(index)
            from mxfp4_repack.plugin import checkpoint
            checkpoint.lacks_raw_experts.cache_clear()
            self.assertFalse(checkpoint.lacks_raw_experts(model))
            if names is not None and len(names) == 1:
                continue  # an index of other tensors than the file's: there is nothing to compare
            with self.world((model, model), MXFP4_REPACK_SKIP_RAW="0") as world:
                world.start().convert(case, hidden_unpadded=64)
                self.assertEqual(world.hook.converted, [PREFIX])
                world.convert(case, name=PREFIX)
                self.assertEqual(world.hook.taken, [PREFIX])

    def test_model_directory_without_raw_experts(self):
        """convert --include-rest: covered, served, and never converted from nothing."""
        case = golden("cpu/gpt_oss_e2_h128*")
        base = tempfile.mkdtemp(dir=hook_env.scratch.name)
        shutil.copytree(make_blob(case)[1], os.path.join(base, "mxfp4_repack"))
        with open(os.path.join(base, "rest-00001.safetensors"), "wb") as file:
            file.write(b"rest")
        with open(os.path.join(base, "model.safetensors.index.json"), "w") as file:
            json.dump({"weight_map": {"model.embed_tokens.weight": "rest-00001.safetensors"}}, file)
        edit_manifest(os.path.join(base, "mxfp4_repack"), lambda m: m.update(
            rest=[{"file": "rest-00001.safetensors", "size": 4, "xxh3_128": "0" * 32}]))
        with self.world((base, base)) as world:
            layer = self.created(world.start(), case)
            self.assertTrue(layer.w13_weight.is_meta)
            world.convert(case, layer)
            self.assertEqual(world.hook.taken, [PREFIX])
        # Where nothing is skipped the parameters hold zeros, and are not compared with anything.
        with self.world((base, base), MXFP4_REPACK_SKIP_RAW="0") as world:
            world.convert(case, self.created(world.start(), case))
            self.assertEqual(world.hook.taken, [PREFIX])
        for change, fact in (({"hidden_unpadded": 64}, "hidden size"), ({}, "verification")):
            with self.world((base, base), MXFP4_REPACK_SKIP_RAW="0",
                            MXFP4_REPACK_VERIFY=None if change else "first") as world:
                layer = self.created(world.start(), case, **change)
                with self.assertRaisesRegex(RuntimeError, "were not loaded: " + fact):
                    world.convert(case, layer)
        os.truncate(os.path.join(base, "rest-00001.safetensors"), 3)
        with self.world((base, base), MXFP4_REPACK_SKIP_RAW="0") as world:
            layer = self.created(world.start(), case)
            with self.assertRaisesRegex(RuntimeError, "rest-00001.safetensors of 4 bytes"):
                world.convert(case, layer)


@unittest.skipIf(HAS_META_CONTEXT, "this torch has it")
class OldTorch(unittest.TestCase):
    def test_nothing_is_skipped(self):
        case = golden("emulation/gpt_oss*typical")
        made = make_blob(case)
        with World(blob=made[1], model=made[0], MXFP4_REPACK_SKIP_RAW="1") as world:
            layer = SecondStage.created(self, world.start(), case)
            self.assertFalse(any(p.is_meta for p in layer._parameters.values()))
            self.assertIn("torch: the blob has 2.0 or newer", world.messages.text()[0])


if __name__ == "__main__":
    unittest.main()
