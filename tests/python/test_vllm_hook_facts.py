"""Each fact that differs ends in vLLM's own conversion, untouched, and in one clear line."""
import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

import hook_env
from edited_blob import edit_both
from fall_back import CASE, FallBack
from hook_env import World, copied, golden, make_blob, torch

TRITON = "triton/gpt_oss_sm90_e3*"
MARLIN = "marlin/gpt_oss*"


class Facts(FallBack):
    def test_control_this_case_is_taken(self):
        for pattern in (CASE, MARLIN):
            case = golden(pattern)
            made = make_blob(case)
            with World(blob=made[1], model=made[0]) as world:
                world.start().convert(case)
                lacks = pattern is MARLIN and not hasattr(torch, "float8_e8m0fnu")
                self.assertEqual(len(world.hook.taken), 0 if lacks else 1)

    def test_facts_of_a_layer(self):
        for fact, layer_facts in (
                ("rank 1 of 2: .*the blob is rank 0 of 1, not 1", {"tp": (1, 2)}),
                ("tensor parallel rank and size: the blob has .0, 1., vLLM has .0, 2.", {"tp": (0, 2)}),
                ("expert parallel rank and size", {"ep": (0, 2)}),
                ("redundant experts: the blob has 0, vLLM has 4", {"redundant": 4}),
                ("fused shared experts: the blob has 0, vLLM has 1", {"shared": 1}),
                ("hidden size: the blob has 128, vLLM has 96", {"hidden_unpadded": 96}),
                ("slice of the intermediate size", {"inner_unpadded": 32}),
                ("params dtype: the blob has bfloat16, vLLM has float16", {"params_dtype": torch.float16})):
            self.refused(fact, layer_facts=layer_facts)

    def test_facts_of_a_manifest(self):
        """What a blob says that vLLM does not have."""
        def rank(ranks, **recipe):
            return lambda manifest: [manifest["rank"].update(ranks), manifest["recipes"][0].update(recipe)]

        def machine(**facts):
            return lambda manifest: [manifest["target"].update(facts), manifest["asked"].update(arch=facts["arch"])]

        for fact, change, given in (
                (r"placement of experts: the blob has \[0, 1\], vLLM has \[2, 3\]", rank({"ep_rank": 1, "ep_size": 2, "rank": 1, "num_ranks": 2}, experts=[0, 1]),
                 {"layer_facts": {"ep": (1, 2), "ids": [2, 3]}}),
                (r"placement of experts: the blob has \[0, 2\], vLLM has \[0, 1\]", rank({"ep_rank": 0, "ep_size": 2, "num_ranks": 2}, experts=[0, 2]),
                 {"layer_facts": {"ep": (0, 2), "ids": [0, 1]}}),
                (r"slice of the intermediate size: the blob has \[32, 96\], vLLM has \[0, 64\]", rank({}, intermediate_begin=32, intermediate_end=96), {}),
                ("w13_bias. F32 .* the layout has .*w13_bias. BF16", lambda m: m.update(layout="loaded"), {}),
                ("architecture: the blob has aarch64, vLLM has x86_64", machine(arch="aarch64"), {}),
                ("platform: the blob has xpu, vLLM has cpu", machine(platform="xpu", arch=""), {}),
                ("code of vLLM's converters: the blob has vllm-2026-08-17, vLLM has vllm-2026-05-18", lambda m: m.update(revision="vllm-2026-08-17"),
                 {"environment": {"MXFP4_REPACK_VERIFY": "none"}})):
            model, blob = copied(make_blob(golden(CASE)))
            edit_both(blob, change)
            self.refused(fact, (model, blob), **given)

    def test_what_vllm_has_on_the_layer(self):
        case = golden(CASE)

        def online(world, layer):
            import vllm.model_executor.layers.quantization.online.mxfp4 as online
            layer.quant_method = online.Mxfp4OnlineMoEMethod(layer.quant_method.mxfp4_backend)

        def expert_map(world, layer):  # from global to local numbers, without a manager
            layer.expert_map_manager = None
            layer._expert_map = hook_env.to_torch(hook_env.numpy.array([-1, 0, -1, 1], "i4"), torch.int32)

        for fact, self.on_layer in (
                (r"placement of experts: the blob has \[0, 1\], vLLM has \[1, 3\]", expert_map),
                ("input scales: the blob has False, vLLM has True", lambda world, layer: vars(layer).update(w13_input_scale=1.0, w2_input_scale=1.0)),
                ("backend: the blob has CPU, vLLM has MARLIN", lambda world, layer: setattr(
                    layer.quant_method, "mxfp4_backend", layer.quant_method.mxfp4_backend.__class__["MARLIN"])),
                ("FLASHINFER_MOE_EP_CUTEDSL, whose conversion does more", lambda world, layer: setattr(
                    layer.quant_method, "mxfp4_backend", SimpleNamespace(name="FLASHINFER_MOE_EP_CUTEDSL"))),
                ("family: the blob has gpt_oss, vLLM has generic", lambda world, layer: setattr(
                    layer, "quant_method", world.method(case, "Mxfp4MoEMethod"))),
                ("method class: .* vLLM has Mxfp4OnlineMoEMethod", online)):
            self.refused(fact, case=case)

    def test_raw_tensors(self):
        def all_of(change):
            case = golden(CASE)
            for slot in list(case.ins):
                change(case, slot)
            return case

        def without(*slots):
            return all_of(lambda case, slot: case.ins.pop(slot) if slot in slots else None)

        def as_f4(case, slot):
            if slot.endswith("bias"):
                case.ins[slot], case.types["in." + slot] = case.ins[slot].astype("f4"), "F32"

        for fact, case in (("number of local experts", all_of(lambda case, slot: case.ins.update({slot: case.ins[slot][:1]}))),
                           ("w13_bias: the blob has bfloat16, vLLM has none", without("w13_bias", "w2_bias")),
                           ("w2_bias: the blob has bfloat16, vLLM has none", without("w2_bias")),
                           ("w13_bias: the blob has bfloat16, vLLM has float32", all_of(as_f4))):
            self.refused(fact, make_blob(golden(CASE)), case=case)

    def test_machine_and_code(self):
        self.refused("VLLM_MARLIN_INPUT_DTYPE: the blob has none, vLLM has fp8", case=golden(MARLIN), environment={"VLLM_MARLIN_INPUT_DTYPE": "fp8"})
        case = golden(TRITON)
        made = make_blob(case)
        case.facts["arch"] = "sm100"
        self.refused("architecture: the blob has sm90, vLLM has sm100", made, case=case)
        self.refused("code of no known revision", known=False, environment={"MXFP4_REPACK_VERIFY": "none"})

    def test_where_the_weights_come_from(self):
        def load_format(name):
            return lambda world: setattr(world.config.load_config, "load_format", name)

        def no_configuration(world):
            import vllm.config
            vllm.config.current = None

        for fact, set_up in (("load format: .* vLLM has dummy", load_format("dummy")), ("load format: .* vLLM has a_new_one", load_format("a_new_one")),
                             ("configuration", no_configuration)):
            self.refused(fact, set_up=set_up)
        for fact, model in (("no such file", hook_env.scratch.name), ("no directory here", "someone/a-model")):
            self.refused(fact, (model, make_blob(golden(CASE))[1]))

    def test_rank_that_is_not_there(self):
        model, blob = copied(make_blob(golden(CASE)))
        for name in os.listdir(blob):
            target = os.path.join(blob, "rank-00-of-02")
            os.makedirs(target, exist_ok=True)
            shutil.move(os.path.join(blob, name), target)
        self.refused("rank", (model, blob), layer_facts={"tp": (1, 2)})

    def test_padded_sizes(self):
        for slot, shape in (("w13_weight", (2, 128, 80)), ("w2_weight", (2, 128, 48)),
                            ("w13_weight_scale", (2, 128, 8)), ("w2_weight_scale", (2, 96, 2))):
            case = golden(CASE)
            was = str(case.ins[slot].shape)

            def on_layer(world, layer, slot=slot, shape=shape):
                layer._parameters[slot] = torch.nn.Parameter(
                    torch.zeros(*shape, dtype=torch.uint8), requires_grad=False)

            self.on_layer = on_layer
            self.refused(re.escape("padded shape of %s: the blob has %s, vLLM has %s" %
                                   (slot, was, shape)))

    def test_activation(self):
        """situ has layouts of its own, one more with FP8 activations."""
        case = golden("aiter_mxfp4_bf16/gpt_oss*")
        case.family = "generic"
        with mock.patch("importlib.metadata.version", lambda name: "0.1.19"):
            self.refused("activation: the blob has another, vLLM has situ", case=case,
                         revision="newer", layer_facts={"activation": "situ"})
            model, blob = copied(make_blob(case, "newer"))
            edit_both(blob, lambda m: m.update(layout="aiter/bf16-situ"))
            self.refused("activation: the blob has situ, vLLM has another", (model, blob),
                         case=case, revision="newer", layer_facts={"activation": "silu"})
            self.refused("activation: the blob has situ, vLLM has situ with a8w4", (model, blob),
                         case=case, revision="newer", layer_facts={"activation": "situ"},
                         environment={"VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4": "1"})
            # Releases from 0.31 on have one variable, and do not look at the switch.
            envs = SimpleNamespace(VLLM_ROCM_USE_AITER_MOE_SITUV2="a8w4")
            newer = {"case": case, "revision": "newer", "layer_facts": {"activation": "situ"},
                     "set_up": lambda world: sys.modules.update({"vllm.envs": envs})}
            self.refused("activation: the blob has situ, vLLM has situ with a8w4", (model, blob),
                         **newer)
            edit_both(blob, lambda m: m.update(layout="aiter/bf16-situ-a8w4"))
            envs.VLLM_ROCM_USE_AITER_MOE_SITUV2 = "auto"
            self.refused("activation: the blob has situ with a8w4, vLLM has situ", (model, blob),
                         environment={"VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4": "1"}, **newer)

    def test_gate_and_up(self):
        """vLLM 0.32 and later keep them apart where a switch says so."""
        case = golden("aiter_mxfp4_bf16/gpt_oss*")
        case.family = "generic"

        def on_layer(world, layer):
            layer.moe_config.use_mxfp4_w4a4_dsv4 = True

        self.on_layer = on_layer
        with mock.patch("importlib.metadata.version", lambda name: "0.1.19"):
            self.refused("gate and up: the blob has mixed, vLLM has apart", case=case,
                         revision="newer", layer_facts={"activation": "silu"})

    def test_kinds_of_x86(self):
        """AMX or not decides what vLLM chooses, and no byte."""
        for arch in ("x86_64", "x86_64-amx", "x86_64-avx512"):
            case = golden(CASE)
            case.facts["arch"], case.name = arch, f"{case.name}-{arch}"
            model, blob = make_blob(case)
            with self.subTest(arch), World(blob=blob, model=model) as world:
                world.start().convert(case)
                self.assertEqual(len(world.hook.taken), 1, world.messages.text())

    def test_blob_of_another_engine(self):
        """Whose rules vLLM's code cannot be known by: without a proof by the first layer it is refused."""
        case = golden("flashinfer_trtllm_mxfp4_mxfp8/gpt_oss*")
        with mock.patch.dict(hook_env.REVISIONS, sglang="sglang-0.5.23"):
            made = make_blob(case, "sglang")
        self.refused("code of vLLM's converters: the blob has sglang-0.5.23, vLLM has "
                     "vllm-2026-05-18", made, case=case,
                     environment={"MXFP4_REPACK_VERIFY": "none"})

    def test_kernel_library(self):
        case = golden("flashinfer_cutlass_mxfp4_bf16/*")
        with mock.patch("importlib.metadata.version", lambda name: "0.7.0"):
            self.refused("version of flashinfer: the blob has 0.6.11.post2, 0.6.12, 0.6.13, 0.6.14 "
                         "or 0.6.16.post3, vLLM has 0.7.0",
                         case=case)

    def test_kernel_library_is_unknown(self):
        def version(name):
            import importlib.metadata
            raise importlib.metadata.PackageNotFoundError(name)

        with mock.patch("importlib.metadata.version", version):
            self.refused("version of flashinfer: .*none that could be found",
                         case=golden("flashinfer_cutlass_mxfp4_bf16/*"))

    def test_model_with_a_blob_of_its_own(self):
        """A directory of --include-rest, and another blob named: nothing there can be converted."""
        case = golden(CASE)
        model = tempfile.mkdtemp(dir=hook_env.scratch.name)
        os.mkdir(os.path.join(model, "mxfp4_repack"))
        with open(os.path.join(model, "model.safetensors.index.json"), "w") as file:
            json.dump({"weight_map": {}}, file)
        with World(blob=make_blob(case)[1], model=model) as world:
            world.start()
            with self.assertRaisesRegex(RuntimeError, "checkpoint: .* which has another blob"):
                world.convert(case)

    def test_checkpoint_of_another_size(self):
        model, blob = copied(make_blob(golden(CASE)))
        with open(os.path.join(model, "model.safetensors"), "ab") as file:
            file.write(b"\0")
        self.refused("checkpoint: the blob has model.safetensors of", (model, blob))

    def test_other_checkpoint_of_the_same_size(self):
        """The raw scales themselves tell."""
        case = golden(CASE)
        case.ins["w13_weight_scale"] = case.ins["w13_weight_scale"] ^ 2
        self.refused("checkpoint, by w13_weight_scale", make_blob(golden(CASE)), case=case)
        self.refused("checkpoint, by w13_weight_scale", make_blob(golden(CASE)), case=case,
                     environment={"MXFP4_REPACK_SOURCE": "trust"})


if __name__ == "__main__":
    unittest.main()
