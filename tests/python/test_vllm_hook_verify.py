"""MXFP4_REPACK_VERIFY: vLLM's own conversion runs too, and what it makes is compared."""
import logging
import unittest
from unittest import mock

import hook_env
from hook_env import PREFIX, SLOTS, World, golden, make_blob, torch, versions


class Verification(unittest.TestCase):
    def run_verified(self, case, mode, damage=None, made_for="seed", **environment):
        """World after a conversion of the right raw experts; vLLM makes the golden ones."""
        made = make_blob(case, made_for)
        world = World(blob=made[1], model=made[0], MXFP4_REPACK_VERIFY=mode, **environment)
        with world, versions("seed"):
            world.start()
            stored = hook_env.file_tensors(made[1])
            own = {slot: self.as_reference(stored[slot]) if slot in stored else None
                   for slot in SLOTS}
            if damage:
                hook_env.damage(own[damage])
            layer = world.layer(case, right=True)
            layer.own_result = own
            if "layout" in stored["w13_weight"][1]:
                from triton_kernels import tensor
                tensor.answers = [own[slot] for slot in ("w13_weight", "w13_weight_scale",
                                                         "w2_weight", "w2_weight_scale")]
            world.result = world.convert(case, layer)
            world.outcome = (world.hook.taken, world.hook.converted)
        return world

    @staticmethod
    def as_reference(stored):
        array, storage = stored
        kind = storage.get("torch_dtype")
        kinds = {"u1": torch.uint8, "u2": torch.bfloat16, "f4": torch.float32, "i4": torch.int32}
        tensor = hook_env.to_torch(array, getattr(torch, kind, None) if kind else
                                   kinds[array.dtype.str[1:]])
        if "storage_shape" in storage:
            tensor = tensor.as_strided(storage["storage_shape"], storage["storage_strides"])
        return tensor

    CASES = ("cpu/gpt_oss_e2_h128*", "flashinfer_cutlass_mxfp4_mxfp8/gpt_oss*",
             "triton/gpt_oss_sm90*", "deepgemm_mxfp4/gpt_oss*", "triton_unfused/gpt_oss_sm80*")

    def test_equal_result_is_vllms_own(self):
        for pattern in self.CASES:
            with self.subTest(case=pattern):
                world = self.run_verified(golden(pattern), "all")
                self.assertEqual(world.messages.text(), [])
                self.assertEqual(world.outcome, ([], [PREFIX]))
                self.assertIn("equals", world.messages.text(logging.INFO)[-1])

    def test_one_wrong_byte_is_found(self):
        for pattern in self.CASES:
            for slot in ("w13_weight", "w2_weight_scale", "w2_bias"):
                case = golden(pattern)
                if slot not in case.outs:
                    continue
                with self.subTest(case=pattern, slot=slot):
                    world = self.run_verified(case, "all", damage=slot)
                    (message,) = world.messages.text(logging.ERROR)
                    self.assertIn(slot + ": 1 of ", message)

    def test_other_strides_are_found(self):
        from mxfp4_repack.plugin import build
        one = torch.zeros(2, 3, 4, dtype=torch.int32)
        for other, what in ((torch.zeros(2, 4, 3, dtype=torch.int32).transpose(1, 2), "strides"),
                            (torch.zeros(2, 3, 5, dtype=torch.int32), "shape"),
                            (torch.zeros(2, 3, 4, dtype=torch.float32), "type")):
            (found,) = build.tensor_differences("w13_weight", one, other)
            self.assertIn("w13_weight: %s " % what, found)
        self.assertEqual(build.tensor_differences("x", one, one), [])

    def test_blob_of_another_engine_is_compared(self):
        """SGLang's rules are none of vLLM's: by default the first layer has to prove the blob."""
        case = golden("flashinfer_trtllm_mxfp4_mxfp8/gpt_oss*")
        with mock.patch.dict(hook_env.REVISIONS, sglang="sglang-0.5.23"):
            world = self.run_verified(case, None, made_for="sglang")
            self.assertEqual(world.outcome, ([], [PREFIX]))
            self.assertIn("equals", world.messages.text(logging.INFO)[-1])
            world = self.run_verified(case, None, "w2_weight_scale", made_for="sglang")
            (message,) = world.messages.text(logging.ERROR)
            self.assertIn("w2_weight_scale: 1 of ", message)

    def test_first_layer_decides(self):
        """Unknown code of vLLM: the first layer is compared, the next ones come from the blob."""
        case = golden("cpu/gpt_oss_e2_h128*")
        for damaged in (False, True):
            base = make_blob(case)
            with World(blob=base[1], model=base[0]) as world:
                world.start(known=False)
                manifest_layers = self.two_names(world)
                first = world.layer(case, right=True)
                stored = hook_env.file_tensors(base[1])
                first.own_result = {s: self.as_reference(stored[s]) for s in SLOTS}
                if damaged:
                    hook_env.damage(first.own_result["w2_weight"])
                world.convert(case, first)
                second = world.layer(case, name=manifest_layers[1])
                world.convert(case, second)
                self.assertEqual(world.hook.converted,
                                 list(manifest_layers) if damaged else [PREFIX])
                self.assertEqual(world.hook.taken, [] if damaged else [manifest_layers[1]])
                self.assertIs(first.quant_method.values[0], first.own_result["w13_weight"])
                if damaged:
                    self.assertIn("earlier layer", world.messages.text()[-1])

    @staticmethod
    def two_names(world):
        """Lets the blob's one layer answer to a second name too."""
        from mxfp4_repack.plugin import checkpoint
        real = checkpoint.find_layer
        checkpoint.find_layer = lambda entries, name: real(entries, PREFIX)
        world.hook.sources._owners = type("Anybodys", (dict,), {"get": lambda self, key: None})()
        return PREFIX, PREFIX.replace("0", "1")


if __name__ == "__main__":
    unittest.main()
