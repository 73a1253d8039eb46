"""Stand-in for Quark's method class: the gpt_oss converter, F32 biases, static input scales."""
import torch
from vllm.model_executor.layers.fused_moe.oracle.mxfp4 import (
    convert_gpt_oss_weight_to_mxfp4_moe_kernel_format)
from vllm.model_executor.layers.quantization.mxfp4 import GptOssMxfp4MoEMethod, make_parameters


class QuarkOCP_MX_MoEMethod(GptOssMxfp4MoEMethod):
    static_input_scales = False

    def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition,
                       params_dtype, **extra_weight_attrs):
        make_parameters(layer, num_experts, hidden_size, intermediate_size_per_partition,
                        torch.float32, layer.moe_config.has_bias, extra_weight_attrs)
        layer.w13_input_scale = layer.w2_input_scale = None
        if self.static_input_scales:
            del layer.w13_input_scale, layer.w2_input_scale
            for name in ("w13_input_scale", "w2_input_scale"):
                scale = torch.nn.Parameter(torch.ones(num_experts, dtype=torch.float32),
                                           requires_grad=False)
                for key, value in extra_weight_attrs.items():
                    setattr(scale, key, value)
                layer.register_parameter(name, scale)

    def convert(self, **arguments):
        return convert_gpt_oss_weight_to_mxfp4_moe_kernel_format(**arguments)
