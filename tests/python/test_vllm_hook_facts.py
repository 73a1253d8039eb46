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

    # --- rank, experts, slice ---

    def test_wrong_tensor_parallel_rank(self):
        self.refused("rank 1 of 2: .*the blob is rank 0 of 1, not 1", layer_facts={"tp": (1, 2)})

    def test_wrong_number_of_ranks(self):
        self.refused("tensor parallel rank and size: the blob has .0, 1., vLLM has .0, 2.",
                     layer_facts={"tp": (0, 2)})

    def test_tensor_parallel_blob_for_expert_parallel_ranks(self):
        self.refused("expert parallel rank and size", layer_facts={"ep": (0, 2)})

    def test_rank_that_is_not_there(self):
        model, blob = copied(make_blob(golden(CASE)))
        for name in os.listdir(blob):
            target = os.path.join(blob, "rank-00-of-02")
            os.makedirs(target, exist_ok=True)
            shutil.move(os.path.join(blob, name), target)
        self.refused("rank", (model, blob), layer_facts={"tp": (1, 2)})

    def test_rank_directory_of_another_rank(self):
        model, blob = copied(make_blob(golden(CASE)))
        inner = os.path.join(blob, "rank-01-of-02")
        names = os.listdir(blob)
        os.mkdir(inner)
        for name in names:
            shutil.move(os.path.join(blob, name), inner)
        self.refused("rank", (model, blob), layer_facts={"tp": (1, 2)})

    def test_expert_range(self):
        def change(manifest):
            manifest["rank"].update(ep_rank=1, ep_size=2, rank=1, num_ranks=2, experts=[0, 1])

        model, blob = copied(make_blob(golden(CASE)))
        edit_both(blob, change)
        self.refused("placement of experts: the blob has \\[0, 1\\], vLLM has \\[2, 3\\]",
                     (model, blob), layer_facts={"ep": (1, 2), "ids": [2, 3]})

    def test_placement(self):
        def change(manifest):
            manifest["rank"].update(ep_rank=0, ep_size=2, experts=[0, 2], num_ranks=2)

        model, blob = copied(make_blob(golden(CASE)))
        edit_both(blob, change)
        self.refused("placement of experts: the blob has \\[0, 2\\], vLLM has \\[0, 1\\]",
                     (model, blob), layer_facts={"ep": (0, 2), "ids": [0, 1]})

    def test_expert_map_without_a_manager(self):
        """As a tensor from global to local numbers."""
        case = golden(CASE)

        def on_layer(world, layer):
            layer.expert_map_manager = None
            layer._expert_map = hook_env.to_torch(
                hook_env.numpy.array([-1, 0, -1, 1], "i4"), torch.int32)

        self.on_layer = on_layer
        self.refused("placement of experts: the blob has \\[0, 1\\], vLLM has \\[1, 3\\]",
                     case=case)

    def test_slice_of_the_intermediate_size(self):
        def change(manifest):
            manifest["rank"]["intermediate_range"] = [32, 96]

        model, blob = copied(make_blob(golden(CASE)))
        edit_both(blob, change)
        self.refused("slice of the intermediate size: the blob has \\[32, 96\\], "
                     "vLLM has \\[0, 64\\]", (model, blob))

    def test_redundant_experts(self):
        self.refused("redundant experts: the blob has 0, vLLM has 4", layer_facts={"redundant": 4})

    def test_fused_shared_experts(self):
        self.refused("fused shared experts: the blob has 0, vLLM has 1", layer_facts={"shared": 1})

    # --- sizes and types ---

    def test_number_of_experts(self):
        case = golden(CASE)
        for slot in case.ins:
            case.ins[slot] = case.ins[slot][:1]
        self.refused("number of local experts", make_blob(golden(CASE)), case=case)

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

    def test_hidden_size_before_padding(self):
        self.refused("hidden size: the blob has 128, vLLM has 96",
                     layer_facts={"hidden_unpadded": 96})

    def test_intermediate_size_before_padding(self):
        self.refused("slice of the intermediate size", layer_facts={"inner_unpadded": 32})

    def test_no_bias(self):
        case = golden(CASE)
        del case.ins["w13_bias"], case.ins["w2_bias"]
        self.refused("w13_bias: the blob has bfloat16, vLLM has none", make_blob(golden(CASE)),
                     case=case)

    def test_one_bias_alone(self):
        for slot in ("w13_bias", "w2_bias"):
            case = golden(CASE)
            del case.ins[slot]
            self.refused(slot + ": the blob has bfloat16, vLLM has none", make_blob(golden(CASE)),
                         case=case)

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

    def test_bias_of_another_type(self):
        case = golden(CASE)
        for slot in ("w13_bias", "w2_bias"):
            case.ins[slot] = case.ins[slot].astype("f4")
            case.types["in." + slot] = "F32"
        self.refused("w13_bias: the blob has bfloat16, vLLM has float32", make_blob(golden(CASE)),
                     case=case, set_up=lambda w: None)

    def test_input_scales(self):
        def on_layer(world, layer):
            layer.w13_input_scale = layer.w2_input_scale = 1.0

        self.on_layer = on_layer
        self.refused("input scales: the blob has False, vLLM has True")

    def test_params_dtype(self):
        self.refused("params dtype: the blob has bfloat16, vLLM has float16",
                     layer_facts={"params_dtype": torch.float16})

    def test_marlin_input_dtype(self):
        case = golden(MARLIN)
        self.refused("VLLM_MARLIN_INPUT_DTYPE: the blob has none, vLLM has fp8", case=case,
                     environment={"VLLM_MARLIN_INPUT_DTYPE": "fp8"})

    # --- what vLLM chose, and which vLLM ---

    def test_backend(self):
        def on_layer(world, layer):
            layer.quant_method.mxfp4_backend = layer.quant_method.mxfp4_backend.__class__["MARLIN"]

        self.on_layer = on_layer
        self.refused("backend: the blob has CPU, vLLM has MARLIN")

    def test_loaded_layout(self):
        model, blob = copied(make_blob(golden(CASE)))
        edit_both(blob, lambda m: m.update(layout="loaded"))
        self.refused("w13_bias. F32 .* the layout has .*w13_bias. BF16", (model, blob))

    def test_backend_that_is_not_known(self):
        def on_layer(world, layer):
            layer.quant_method.mxfp4_backend = SimpleNamespace(name="FLASHINFER_MOE_EP_CUTEDSL")

        self.on_layer = on_layer
        self.refused("FLASHINFER_MOE_EP_CUTEDSL, whose conversion does more")

    def test_family(self):
        case = golden(CASE)

        def on_layer(world, layer):
            layer.quant_method = world.method(case, "Mxfp4MoEMethod")

        self.on_layer = on_layer
        self.refused("family: the blob has gpt_oss, vLLM has generic")

    def test_method_class(self):
        case = golden(CASE)

        def on_layer(world, layer):
            import vllm.model_executor.layers.quantization.online.mxfp4 as online
            layer.quant_method = online.Mxfp4OnlineMoEMethod(layer.quant_method.mxfp4_backend)

        self.on_layer = on_layer
        self.refused("method class: .* vLLM has Mxfp4OnlineMoEMethod", case=case)

    def test_architecture(self):
        model, blob = copied(make_blob(golden(CASE)))
        edit_both(blob, lambda m: m["target"].update(arch="aarch64"))
        self.refused("architecture: the blob has aarch64, vLLM has x86_64", (model, blob))

    def test_kinds_of_x86(self):
        """AMX or not decides what vLLM chooses, and no byte."""
        for arch in ("x86_64", "x86_64-amx", "x86_64-avx512"):
            case = golden(CASE)
            case.facts["arch"], case.name = arch, f"{case.name}-{arch}"
            model, blob = make_blob(case)
            with self.subTest(arch), World(blob=blob, model=model) as world:
                world.start().convert(case)
                self.assertEqual(len(world.hook.taken), 1, world.messages.text())

    def test_platform(self):
        model, blob = copied(make_blob(golden(CASE)))
        edit_both(blob, lambda m: m["target"].update(platform="xpu", arch=""))
        self.refused("platform: the blob has xpu, vLLM has cpu", (model, blob))

    def test_gpu_architecture(self):
        case = golden(TRITON)
        made = make_blob(case)
        case.facts["arch"] = "sm100"
        self.refused("architecture: the blob has sm90, vLLM has sm100", made, case=case)

    def test_revision(self):
        model, blob = copied(make_blob(golden(CASE)))
        edit_both(blob, lambda m: m.update(revision="vllm-2026-08-17"))
        self.refused("code of vLLM's converters: the blob has vllm-2026-08-17, vLLM has "
                     "vllm-2026-05-18", (model, blob),
                     environment={"MXFP4_REPACK_VERIFY": "none"})

    def test_blob_of_another_engine(self):
        """Whose rules vLLM's code cannot be known by: without a proof by the first layer it is refused."""
        case = golden("flashinfer_trtllm_mxfp4_mxfp8/gpt_oss*")
        with mock.patch.dict(hook_env.REVISIONS, sglang="sglang-0.5.23"):
            made = make_blob(case, "sglang")
        self.refused("code of vLLM's converters: the blob has sglang-0.5.23, vLLM has "
                     "vllm-2026-05-18", made, case=case,
                     environment={"MXFP4_REPACK_VERIFY": "none"})

    def test_unknown_code_of_vllm(self):
        self.refused("code of no known revision", known=False,
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

    # --- where the weights come from ---

    def test_load_formats(self):
        for name in ("dummy", "sharded_state", "tensorizer", "a_new_one"):
            def set_up(world, name=name):
                world.config.load_config.load_format = name

            self.refused("load format: .* vLLM has " + name, set_up=set_up)

    def test_no_configuration(self):
        def set_up(world):
            import vllm.config
            vllm.config.current = None

        self.refused("configuration", set_up=set_up)

    def test_checkpoint_of_another_size(self):
        model, blob = copied(make_blob(golden(CASE)))
        with open(os.path.join(model, "model.safetensors"), "ab") as file:
            file.write(b"\0")
        self.refused("checkpoint: the blob has model.safetensors of", (model, blob))

    def test_checkpoint_is_elsewhere(self):
        self.refused("no such file", (hook_env.scratch.name, make_blob(golden(CASE))[1]))

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

    def test_checkpoint_is_no_directory(self):
        self.refused("no directory here", ("someone/a-model", make_blob(golden(CASE))[1]))

    def test_other_checkpoint_of_the_same_size(self):
        """The raw scales themselves tell."""
        case = golden(CASE)
        case.ins["w13_weight_scale"] = case.ins["w13_weight_scale"] ^ 2
        self.refused("checkpoint, by w13_weight_scale", make_blob(golden(CASE)), case=case)
        self.refused("checkpoint, by w13_weight_scale", make_blob(golden(CASE)), case=case,
                     environment={"MXFP4_REPACK_SOURCE": "trust"})


if __name__ == "__main__":
    unittest.main()
