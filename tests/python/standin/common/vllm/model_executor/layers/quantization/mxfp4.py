"""Stand-in for the module of both method classes: they bind the converters by name."""
import torch
from vllm.model_executor.layers.fused_moe.oracle.mxfp4 import (
    TRITON_BACKENDS, convert_gpt_oss_weight_to_mxfp4_moe_kernel_format,
    convert_weight_to_mxfp4_moe_kernel_format)
from vllm.standin import SLOTS, replace_parameter


def make_parameters(layer, experts, hidden, inner, bias_dtype, has_bias, attributes):
    kinds = {"w13_weight": (experts, 2 * inner, hidden // 2),
             "w13_weight_scale": (experts, 2 * inner, hidden // 32),
             "w2_weight": (experts, hidden, inner // 2),
             "w2_weight_scale": (experts, hidden, inner // 32)}
    if has_bias:
        kinds.update({"w13_bias": (experts, 2 * inner), "w2_bias": (experts, hidden)})
    for name, shape in kinds.items():
        dtype = bias_dtype if name.endswith("bias") else torch.uint8
        parameter = torch.nn.Parameter(torch.zeros(*shape, dtype=dtype), requires_grad=False)
        for key, value in attributes.items():
            setattr(parameter, key, value)
        layer.register_parameter(name, parameter)


class GptOssMxfp4MoEMethod:
    def __init__(self, backend):
        self.mxfp4_backend = backend
        self.w13_precision_config = self.w2_precision_config = None

    def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition,
                       params_dtype, **extra_weight_attrs):
        make_parameters(layer, num_experts, hidden_size, intermediate_size_per_partition,
                        torch.bfloat16, layer.moe_config.has_bias, extra_weight_attrs)

    def convert(self, **arguments):
        return convert_gpt_oss_weight_to_mxfp4_moe_kernel_format(**arguments)

    def process_weights_after_loading(self, layer):
        values = self.convert(
            mxfp4_backend=self.mxfp4_backend, layer=layer,
            **{slot: getattr(layer, slot, None) for slot in SLOTS}, _cache_permute_indices={})
        if self.mxfp4_backend.name in TRITON_BACKENDS:
            layer.w13_weight, layer.w2_weight = values[:2]
            self.w13_precision_config, self.w2_precision_config = values[2:4]
        else:
            for slot, value in zip(SLOTS[:4], values):
                replace_parameter(layer, slot, value)
        for slot, value in zip(SLOTS[4:], values[4:]):
            if value is not None:
                replace_parameter(layer, slot, value)
        self.values = values


class Mxfp4MoEMethod(GptOssMxfp4MoEMethod):
    def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition,
                       params_dtype, **extra_weight_attrs):
        make_parameters(layer, num_experts, hidden_size, intermediate_size_per_partition,
                        torch.bfloat16, layer.moe_config.has_bias, extra_weight_attrs)

    def convert(self, **arguments):
        return convert_weight_to_mxfp4_moe_kernel_format(**arguments)
