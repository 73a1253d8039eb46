"""Stand-in for the module of both converters, with their signatures of a2c8fc6657."""
from vllm.model_executor.layers.quantization.utils.mxfp4_utils import _swizzle_mxfp4
from vllm.standin import TRITON_BACKENDS, Mxfp4MoeBackend, converted  # noqa: F401


def convert_gpt_oss_weight_to_mxfp4_moe_kernel_format(
        mxfp4_backend, layer, w13_weight, w2_weight, w13_weight_scale, w2_weight_scale,
        w13_bias=None, w2_bias=None, _cache_permute_indices=None):
    return converted("gpt_oss", _swizzle_mxfp4, True, mxfp4_backend, layer, w13_weight, w2_weight,
                     w13_weight_scale, w2_weight_scale, w13_bias, w2_bias)


def convert_weight_to_mxfp4_moe_kernel_format(
        mxfp4_backend, layer, w13_weight, w2_weight, w13_weight_scale, w2_weight_scale,
        w13_bias=None, w2_bias=None, _cache_permute_indices=None):
    return converted("generic", _swizzle_mxfp4, True, mxfp4_backend, layer, w13_weight, w2_weight,
                     w13_weight_scale, w2_weight_scale, w13_bias, w2_bias)
