"""Layouts of triton_kernels that differ end in vLLM's own conversion, untouched."""
import unittest

import hook_env
from fall_back import FallBack
from hook_env import golden

TRITON = "triton/gpt_oss_sm90_e3*"


class Layouts(FallBack):
    def triton_refused(self, fact, set_up, revision="seed"):
        self.refused(fact, case=golden(TRITON), set_up=set_up, revision=revision)

    def test_layout_class(self):
        def set_up(world):
            from triton_kernels.tensor_details import layout
            layout.HopperMXScaleLayout = type("StridedLayout", (layout.HopperMXScaleLayout,), {})

        self.triton_refused("layout class of w13_weight_scale: the blob has HopperMXScaleLayout, "
                            "vLLM has StridedLayout", set_up)

    def test_layout_options(self):
        def set_up(world):
            import vllm.model_executor.layers.quantization.utils.mxfp4_utils as utils
            utils._swizzle_mxfp4.__defaults__ = (4,)

        self.triton_refused("layout options of w13_weight_scale", set_up)

    def test_shape_before_the_layout(self):
        """A seed blob's scales where vLLM pads them to fours."""
        def set_up(world):
            import vllm.model_executor.layers.quantization.utils.mxfp4_utils as utils
            utils.SCALES_IN_FOURS = True

        self.triton_refused("shape before the layout of w13_weight_scale: the blob has "
                            "\\[3, 3, 128\\], vLLM has \\[3, 4, 128\\]", set_up)

    def test_too_few_calls_of_convert_layout(self):
        def set_up(world):
            oracle = __import__(hook_env.ORACLE, fromlist=["x"])
            real, results = oracle._swizzle_mxfp4, []
            oracle._swizzle_mxfp4 = lambda *a: results.pop() if results else (  # w2 gets w13's
                results.append(real(*a)) or results[0])

        self.triton_refused("calls of convert_layout: the blob has 4, vLLM has 2", set_up)

    def test_converter_fails_after_it_began_to_delete(self):
        """Parameters are put back before vLLM's own conversion runs."""
        def set_up(world):
            from triton_kernels import matmul_ogs
            real, calls = matmul_ogs.PrecisionConfig, []

            def config(**arguments):
                calls.append(arguments)
                if len(calls) == 2:
                    (layer,) = world.layers
                    del layer.w13_weight
                    raise ValueError("broken")
                return real(**arguments)

            matmul_ogs.PrecisionConfig = config

        def on_layer(world, layer):
            world.layers = [layer]

        self.on_layer = on_layer
        self.triton_refused("ValueError: broken", set_up)


if __name__ == "__main__":
    unittest.main()
