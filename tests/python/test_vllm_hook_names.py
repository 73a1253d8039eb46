"""Which layer of a blob a layer of vLLM is, and which release its code is."""
import os
import sys
import tempfile
import unittest
from types import SimpleNamespace

import hook_env
from hook_env import PREFIX, World, golden, make_blob

TRITON = "triton/gpt_oss_sm90_e3*"


class Names(unittest.TestCase):
    def setUp(self):
        from mxfp4_repack.plugin import checkpoint
        from mxfp4_repack.vllm import facts, live
        self.checkpoint, self.facts, self.live = checkpoint, facts, live

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

    def test_whose_code_is_known(self):
        """A blob is taken from code of its own release, or of one for which the program makes the same bytes: the CPU's are those of 0.33.0,
        TRITON's not. A file that was edited, or a converter that another plug-in replaced, is nobody's code."""
        for pattern, release, known in (("cpu/gpt_oss_e2*", "vllm-0.33.0", True), ("triton/gpt_oss_sm90*", "vllm-0.33.0", False),
                                        ("triton/gpt_oss_sm90*", hook_env.REVISIONS["seed"], True)):
            case = golden(pattern)
            model, blob = make_blob(case)
            with self.subTest(pattern, release=release), World(blob=blob, model=model, MXFP4_REPACK=hook_env.BIN) as world, hook_env.versions("seed"):
                from mxfp4_repack.vllm import converter_code
                world.start(known=False)
                converter_code.REVISIONS[release]["code"] = converter_code.installed_code()
                world.convert(case)
                self.assertEqual(len(world.hook.taken), int(known))
        with World() as world:
            world.start()
            from mxfp4_repack.vllm import converter_code
            known = converter_code.installed_code()
            self.assertTrue(converter_code.releases_with(known))
            vars(sys.modules[hook_env.ORACLE])["convert_weight_to_mxfp4_moe_kernel_format"] = unittest.main
            converter_code.installed_code.cache_clear()
            self.assertFalse(converter_code.releases_with(converter_code.installed_code()))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, converter_code.FILES[0])
            digests = set()
            for text in (None, "", "edited"):
                if text is not None:
                    with open(path, "w") as file:
                        file.write(text)
                digests.add(converter_code.code([folder]))
            self.assertEqual(len(digests), 3)

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
