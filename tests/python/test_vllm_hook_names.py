"""Which layer of a blob a layer of vLLM is, and which release its code is."""
import os
import unittest
from types import SimpleNamespace
from unittest import mock

import hook_env
from hook_env import PREFIX, World, golden, make_blob

TRITON = "triton/gpt_oss_sm90_e3*"


class Names(unittest.TestCase):
    def setUp(self):
        from mxfp4_repack.plugin import checkpoint
        from mxfp4_repack.vllm import converter_code, facts, live
        self.checkpoint, self.code, self.facts, self.live = checkpoint, converter_code, facts, live

    def find(self, name, *layers):
        entries = [{"prefix": p, "engine_prefix": e} if e else {"prefix": p} for p, e in layers]
        try:
            return self.checkpoint.find_layer(entries, name)["prefix"]
        except self.facts.Mismatch as mismatch:
            return str(mismatch.fact)

    def test_names(self):
        gpt_oss = [("model.layers.%d.mlp.experts" % i, "") for i in (1, 11)]
        self.assertEqual(self.find("model.layers.1.mlp.experts", *gpt_oss), gpt_oss[0][0])
        self.assertEqual(self.find("model.layers.11.mlp.experts.routed_experts", *gpt_oss),
                         gpt_oss[1][0])
        self.assertEqual(self.find("model.layers.1.mlp.experts.base_layer", *gpt_oss),
                         gpt_oss[0][0])
        self.assertEqual(self.find("language_model.model.layers.1.mlp.experts", *gpt_oss),
                         gpt_oss[0][0])
        self.assertEqual(self.find("model.layers.2.mlp.experts", *gpt_oss), "layer")

    def test_deepseek(self):
        layers = [("layers.3.ffn.experts", "model.layers.3.ffn.experts"),
                  ("mtp.0.ffn.experts", "model.layers.61.ffn.experts")]
        self.assertEqual(self.find("model.layers.3.ffn.experts", *layers), layers[0][0])
        self.assertEqual(self.find("model.layers.61.ffn.experts", *layers), layers[1][0])

    def test_draft_beside_the_model(self):
        """Qwen3.5's layers have other words in front than in vLLM, and a draft's layer of the same number lies beside them."""
        layers = [("model.language_model.layers.%d.mlp.experts" % i, "") for i in (0, 1, 10)] + [("mtp.layers.0.mlp.experts", "")]
        for i, number in enumerate((0, 1, 10)):
            self.assertEqual(self.find("language_model.model.layers.%d.mlp.experts" % number, *layers), layers[i][0])
        self.assertEqual(self.find("mtp.layers.0.mlp.experts", *layers), layers[3][0])
        # MiniMax-M3's draft is called as a layer of the model is, and gets none where both may be meant.
        layers = [("language_model.model.layers.3.mlp.experts", ""), ("language_model.model.mtp.layers.3.mlp.experts", "")]
        self.assertEqual(self.find("language_model.model.layers.3.mlp.experts", *layers), layers[0][0])
        self.assertEqual(self.find("model.layers.3.mlp.experts", *layers), "layer")

    def test_inkling(self):
        layers = [("model.llm.layers.%d.mlp.experts" % i, "") for i in (2, 12)]
        self.assertEqual(self.find("model.layers.2.mlp.experts.routed_experts", *layers), layers[0][0])
        self.assertEqual(self.find("language_model.model.layers.12.mlp.experts", *layers), layers[1][0])

    def test_raw_names(self):
        """What is left out of a covered layer's load: codes and scales under each model's names, nothing else."""
        for name in ("0.gate_proj.weight", "3.up_proj.weight_scale", "12.down_proj.weight_scale_inv", "0.w1.scale",
                     "0.w3.weight_packed", "gate_up_proj_blocks", "down_proj_scales", "w13_weight",
                     "w2_weight_scale"):
            self.assertTrue(self.checkpoint.is_raw_name(name), name)
        for name in ("w13_weight.original_shape", "w13_weight.input_amax", "0.w1.input_scale", "gate.weight",
                     "w13_weight_scale_2", "0.gate_proj.weight_scale_2"):
            self.assertFalse(self.checkpoint.is_raw_name(name), name)

    def test_two_towers(self):
        layers = [("a.layers.0.mlp.experts", ""), ("b.layers.0.mlp.experts", "")]
        self.assertEqual(self.find("c.layers.0.mlp.experts", *layers), "layer")
        self.assertEqual(self.find("b.layers.0.mlp.experts", *layers), layers[1][0])

    def test_a_layer_is_given_once(self):
        """A draft model with the target's names inside does not get the target's experts."""
        case = golden(TRITON)
        made = make_blob(case)
        with World(blob=made[1], model=made[0]) as world:
            world.start().convert(case)
            other = world.layer(case, name="draft." + PREFIX)
            world.convert(case, other)
            self.assertEqual(world.hook.taken, [PREFIX])
            self.assertIn("which " + PREFIX + " took", world.messages.text()[0])

    def test_releases_are_known_by_the_branch_in_use(self):
        """A change in another backend's branch leaves a release known."""
        live = self.live.Live(SimpleNamespace(), method=None, family="gpt_oss", backend="MARLIN",
                               biases={}, fingerprint="none of them", origin=None, activation="",
                               shapes={})
        branches = self.code.RELEASES["gpt_oss"]["MARLIN"]
        digest = next(name for name, releases in branches.items() if "0.28.0" in releases)
        with mock.patch.object(self.code, "installed_branch", lambda family, backend: digest):
            self.assertTrue(live.knows("vllm-0.28.0"))
            self.assertFalse(live.knows("vllm-0.22.0"))
            self.assertFalse(live.knows("vllm-2026-05-18"))
        with mock.patch.object(self.code, "installed_branch", lambda family, backend: "other"):
            self.assertFalse(live.knows("vllm-0.28.0"))
        live.fingerprint = next(iter(self.code.RELEASES["converters"]))
        self.assertTrue(live.knows("vllm-0.21.0"))

    def test_slices(self):
        """The loaders' rules, by the examples of the reference."""
        def live(family, inner, rank, ranks, padded):
            layer = SimpleNamespace(moe_config=SimpleNamespace(
                moe_parallel_config=SimpleNamespace(tp_rank=rank, tp_size=ranks),
                intermediate_size_per_partition_unpadded=inner // ranks))
            return self.live.Live(
                layer, method=None, family=family, backend="", biases={}, fingerprint="",
                origin=None, activation="", shapes={"w13_weight": (1, 2 * padded, 1)})

        seed, newer = hook_env.REVISIONS["seed"], hook_env.REVISIONS["newer"]
        for family, loader, revision, inner, rank, ranks, padded, want in (
                ("gpt_oss", "gpt_oss_stacked", seed, 2880, 7, 8, 512, [2688, 2880]),
                ("gpt_oss", "gpt_oss_stacked", newer, 2880, 3, 4, 768, [2208, 2880]),
                ("gpt_oss", "gpt_oss_stacked", seed, 2880, 15, 16, 192, [2880, 2880]),
                ("generic", "generic", seed, 192, 1, 2, 128, [128, 192]),
                ("generic", "generic", newer, 192, 1, 2, 128, [96, 192]),
                ("generic", "generic", seed, 3072, 6, 8, 512, [3072, 3072]),
                ("generic", "loaded", seed, 2880, 0, 1, 3072, [0, 2880])):
            found = live(family, inner, rank, ranks, padded).intermediate_range(loader, revision)
            self.assertEqual(found, want)


if __name__ == "__main__":
    unittest.main()
