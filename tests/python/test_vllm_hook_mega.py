"""Mega MoE of vLLM 0.33.0 and later, which has the kernel's layout from the beginning: the plug-in fills the parameters of its layers once the model is
loaded, after a first start that compared. The class is a stand-in, written here; the blob is the program's."""
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from types import SimpleNamespace

import hook_env
import test_frontier
from hook_env import World, bits, copied, damage, torch
from test_vllm_hook_convert import versions

MEGA = "vllm.model_executor.layers.fused_moe.deep_gemm_mega_moe"
WEIGHT_UTILS = "vllm.model_executor.model_loader.weight_utils"
NAME, RAW = "model.layers.0.ffn.experts", "layers.0.ffn.experts.0.w1.weight"
CASE = {"seed": 3, "E": 4, "H": 256, "I": 128}


def copy_of(tensor):
    """A copy that lies as the tensor does: scales have their columns side by side."""
    if tensor.stride()[-1] == 1:
        return tensor.contiguous().clone()
    return tensor.transpose(-1, -2).contiguous().clone().transpose(-1, -2)


class DeepGemmMegaMoEExperts(torch.nn.Module):
    """The layer with parameters as the blob of one rank holds them; what vLLM's loader would write is `right`."""

    right = {}

    def __init__(self, vllm_config, *, num_experts, num_local_experts, experts_start_idx, top_k, hidden_size, intermediate_size, activation, weight_format,
                 shared_experts=None, num_logical_experts=None, fast_math=True, prefix=""):
        super().__init__()
        self.prefix, self.num_experts, self.num_local_experts, self.experts_start_idx = prefix, num_experts, num_local_experts, experts_start_idx
        self.num_logical_experts = num_experts if num_logical_experts is None else num_logical_experts
        self.hidden_size, self.intermediate_size, self.activation, self.weight_format = hidden_size, intermediate_size, activation, weight_format
        for name, tensor in self.right.items():
            self.register_parameter(name, torch.nn.Parameter(copy_of(tensor).zero_(), requires_grad=False))

    def named_parameters(self):
        return list(self._parameters.items())

    def parameters(self):
        return iter(self._parameters.values())

    def modules(self):
        return [self]


class Mega(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hook_env.need_program()
        folder = tempfile.mkdtemp(dir=hook_env.scratch.name)
        cls.made = test_frontier.deepseek_v4(os.path.join(folder, "model"), CASE), os.path.join(folder, "blob")
        subprocess.run([hook_env.BIN, "convert", cls.made[0], "-o", cls.made[1], "-q", "--compress", "none", *test_frontier.MEGA, "--tp-size", "1",
                        "--revision", "0.33.0"], check=True)

    def setUp(self):
        patch = versions("newer")
        patch.start()
        self.addCleanup(patch.stop)
        self.world = self.enter(World("newer", model=self.made[0])).start()
        self.world.set_machine("cuda", "sm100")
        self.right = self.blob_tensors(self.made[1])

    def enter(self, context):
        found = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return found

    @staticmethod
    def blob_tensors(directory):
        from mxfp4_repack import open_blob
        with open_blob(directory) as blob, blob.layer(0) as layer:
            return {name: copy_of(layer.torch(name)) for name in layer}

    def load(self, made, loads=None, before_finish=lambda: None, **facts):
        """One load of a model that is these experts. `loads`: what vLLM's loader writes where it reads the raw tensors."""
        from mxfp4_repack.plugin.live import Origin
        from mxfp4_repack.plugin.settings import Settings
        from mxfp4_repack.vllm.hook import Hook
        from mxfp4_repack.vllm.patches import patched
        self.world.messages.records.clear()
        hook = Hook(Settings(made[1], source="blob", skip_raw=True), Origin(made[0], load_format="auto"))
        module = sys.modules[MEGA] = types.ModuleType(MEGA)
        module.DeepGemmMegaMoEExperts = type("DeepGemmMegaMoEExperts", (DeepGemmMegaMoEExperts,), {
            "__init__": lambda self, *args, **kwargs: DeepGemmMegaMoEExperts.__init__(self, *args, **kwargs), "right": self.right})
        words = {"num_experts": CASE["E"], "num_local_experts": CASE["E"], "experts_start_idx": 0, "top_k": 1, "hidden_size": CASE["H"],
                 "intermediate_size": CASE["I"], "activation": SimpleNamespace(name="swiglu"), "weight_format": SimpleNamespace(name="mxfp4"), "prefix": NAME}
        with patched(hook):
            experts = module.DeepGemmMegaMoEExperts(None, **{**words, **facts})
            self.places = [parameter.data_ptr() for parameter in experts.parameters()]
            self.skipped = sys.modules[WEIGHT_UTILS].should_skip_weight(RAW, None)
        for name, tensor in {} if self.skipped else (loads or self.right).items():
            getattr(experts, name).copy_(tensor)
        before_finish()
        try:
            hook.finish(experts)
        finally:
            hook.sources.close()
        return experts

    def said(self):
        return "\n".join(self.world.messages.text(0))

    def expect(self, experts, tensors):
        self.assertEqual({name: bits(getattr(experts, name)).tolist() for name in tensors}, {name: bits(tensor).tolist() for name, tensor in tensors.items()})
        self.assertEqual([parameter.data_ptr() for parameter in experts.parameters()], self.places, "a parameter lies elsewhere")

    def wrong(self):
        """What another loader would write."""
        other = {name: copy_of(tensor) for name, tensor in self.right.items()}
        damage(other["w2_weight"])
        return other

    def proved(self, made):
        self.load(made)
        self.assertFalse(self.skipped)

    def test_the_first_start_compares_and_the_next_takes(self):
        experts = self.load(self.made)
        self.assertFalse(self.skipped, "raw tensors were left out before a comparison")
        self.assertIn("what vLLM loads equals", self.said())
        self.expect(experts, self.right)
        experts = self.load(self.made)
        self.assertTrue(self.skipped, "raw tensors were read")
        self.assertRegex(self.said(), f"1 layers taken from {self.made[1]}, 0 converted")
        self.expect(experts, self.right)

    def test_another_result_is_kept_and_not_proved(self):
        for _ in range(2):
            experts = self.load(self.made, loads=self.wrong())
            self.assertFalse(self.skipped)
            self.assertRegex(self.said(), "is not what vLLM loads: w2_weight.*; it is not used")
            self.expect(experts, self.wrong())

    def test_what_the_blob_is_not_of(self):
        self.proved(self.made)
        facts = {"redundant experts": {"num_experts": 5, "num_local_experts": 5, "num_logical_experts": 4},
                 "expert parallel rank": {"num_experts": 8}, "hidden size|shape": {"hidden_size": 512}, "format of the experts": {
                     "weight_format": SimpleNamespace(name="nvfp4")}, "layer": {"prefix": "model.layers.3.ffn.experts"}}
        for fact, given in facts.items():
            with self.subTest(fact):
                experts = self.load(self.made, loads=self.wrong(), **given)
                self.assertFalse(self.skipped)
                self.assertRegex(self.said(), f"vLLM loads it: .*({fact})")
                self.expect(experts, self.wrong())

    def test_a_layer_that_is_lost(self):
        from mxfp4_repack.vllm.hook import BlobRefused
        made = copied(self.made)
        self.proved(made)
        layer, = (os.path.join(made[1], name) for name in os.listdir(made[1]) if name.startswith("layer-"))
        with self.assertRaisesRegex(BlobRefused, "the raw experts were not loaded"):
            self.load(made, before_finish=lambda: shutil.move(layer, layer + ".away"))
        self.assertTrue(self.skipped)
        experts = self.load(made, loads=self.wrong())
        self.assertRegex(self.said(), "vLLM loads it: ")
        self.expect(experts, self.wrong())


if __name__ == "__main__":
    unittest.main()
