"""Stand-in for the method that quantizes a bf16 checkpoint while it loads."""
from vllm.model_executor.layers.fused_moe.oracle.mxfp4 import (
    convert_weight_to_mxfp4_moe_kernel_format)
from vllm.model_executor.layers.quantization.mxfp4 import Mxfp4MoEMethod


class Mxfp4OnlineMoEMethod(Mxfp4MoEMethod):
    def convert(self, **arguments):
        return convert_weight_to_mxfp4_moe_kernel_format(**arguments)
